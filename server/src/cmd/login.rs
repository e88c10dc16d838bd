//! `purplemux login`: a sign-in link from the running server. The code is printed and kept nowhere else.

use anyhow::{Context as _, Result};
use http::Method;

use super::Common;
use super::client::{Client, block_on, print};

/// Its options.
#[derive(Debug, clap::Args)]
pub struct Options {
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
    print(
        minted["url"]
            .as_str()
            .context("The server sent no link; is it another version of purplemux?")?,
    )
}
