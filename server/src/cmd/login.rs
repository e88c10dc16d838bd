//! `purplemux login`: a sign-in link from the running server. The code is printed and kept nowhere else; as a picture
//! it is for the camera of a phone, which must be able to open the address in it.

use std::io::IsTerminal as _;

use anyhow::{Context as _, Result};
use http::Method;
use qrcode::{Color, EcLevel, QrCode};

use super::Common;
use super::client::{Client, block_on, print};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Draw the link as a QR code as well, for the camera of a phone
    #[arg(long, conflicts_with = "json")]
    qr: bool,
    #[command(flatten)]
    common: Common,
}

/// Runs it.
///
/// # Errors
/// No server runs, or it can't mint a code.
pub fn run(options: &Options) -> Result<()> {
    let client = Client::new(&options.common.home()?);
    let minted = block_on(client.ask(Method::POST, "/api/login/code", None))?;
    if options.common.json {
        return print(&minted.to_string());
    }
    let url = minted["url"]
        .as_str()
        .context("The server sent no link; is it another version of purplemux?")?;
    if options.qr {
        print(&picture(url, std::io::stdout().is_terminal())?)?;
        if !url.starts_with("https://") {
            eprintln!(
                "purplemux: a phone can't open this address. Start the server with --public-url and an https address that reaches it; docs/remote.md says how."
            );
        }
    }
    print(url)
}

/// Rows and columns that a camera needs to be left empty around the code (ISO/IEC 18004).
const QUIET: usize = 4;

/// The code in half blocks, two rows of it in one of text. `colours`: black on white whatever the terminal's own
/// colours are, without which half of all readers give up on a dark one.
fn picture(text: &str, colours: bool) -> Result<String> {
    // The lowest level of correction: a screen is not scratched, and a smaller code is easier to read.
    let code = QrCode::with_error_correction_level(text, EcLevel::L)
        .context("The link is too long for a QR code")?;
    let width = code.width();
    let side = width + 2 * QUIET;
    let dark = |x: usize, y: usize| {
        let inside = (QUIET..QUIET + width).contains(&x) && (QUIET..QUIET + width).contains(&y);
        inside && code[(x - QUIET, y - QUIET)] == Color::Dark
    };
    let mut rows = Vec::new();
    for y in (0..side).step_by(2) {
        let blocks = (0..side).map(|x| match (dark(x, y), dark(x, y + 1)) {
            (false, false) => ' ',
            (true, false) => '\u{2580}',
            (false, true) => '\u{2584}',
            (true, true) => '\u{2588}',
        });
        let row: String = blocks.collect();
        rows.push(if colours {
            format!("\u{1b}[38;5;16;48;5;231m{row}\u{1b}[0m")
        } else {
            row
        });
    }
    Ok(rows.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every module back from its half block: `true` is dark.
    fn modules(picture: &str) -> Vec<Vec<bool>> {
        let mut found = Vec::new();
        for line in picture.lines() {
            let halves = |upper: bool| {
                line.chars()
                    .map(|block| match block {
                        '\u{2588}' => true,
                        '\u{2580}' => upper,
                        '\u{2584}' => !upper,
                        _ => false,
                    })
                    .collect::<Vec<bool>>()
            };
            found.push(halves(true));
            found.push(halves(false));
        }
        found
    }

    #[test]
    fn the_picture_holds_the_code_with_room_around_it() {
        let url = "https://forge.example.ts.net/#login=0123456789abcdefghijkl";
        let drawn = modules(&picture(url, false).expect("fits"));
        let code = QrCode::with_error_correction_level(url, EcLevel::L).expect("fits");
        let side = code.width() + 2 * QUIET;
        assert!(drawn.len() >= side && drawn.iter().all(|row| row.len() == side));
        for (y, row) in drawn.iter().enumerate() {
            for (x, dark) in row.iter().enumerate() {
                let inside =
                    (QUIET..side - QUIET).contains(&x) && (QUIET..side - QUIET).contains(&y);
                let wanted = inside && code[(x - QUIET, y - QUIET)] == Color::Dark;
                assert_eq!(*dark, wanted, "{x} {y}");
            }
        }
    }

    #[test]
    fn its_colours_are_its_own_and_end_with_each_line() {
        let drawn = picture("https://a.example/#login=x", true).expect("fits");
        for line in drawn.lines() {
            assert!(line.starts_with("\u{1b}[38;5;16;48;5;231m") && line.ends_with("\u{1b}[0m"));
        }
    }
}
