//! Screens of the real Claude Code 2.1.332, captured by tmux with their colours at 40, 80 and 200 columns, and what is
//! read from each: `tests/dialogs/NAME.COLS.screen` and `NAME.COLS.read` beside it. `UPDATE_EXPECT=1` writes the
//! latter anew; read the difference before it is committed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use purplemux_wire::dialog::{Dialog, Front, read};

/// One captured screen.
struct Screen {
    name: String,
    path: PathBuf,
    cols: u16,
    rows: Vec<String>,
}

fn screens() -> Vec<Screen> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogs");
    let mut screens: Vec<Screen> = fs::read_dir(&dir)
        .expect("the screens are there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "screen"))
        .map(|path| {
            let stem = path.file_stem().expect("a name").to_string_lossy();
            let (name, cols) = stem.rsplit_once('.').expect("NAME.COLS");
            Screen {
                name: name.to_owned(),
                cols: cols.parse().expect("a width"),
                rows: rows(&fs::read_to_string(&path).expect("UTF-8")),
                path: path.clone(),
            }
        })
        .collect();
    screens.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!screens.is_empty(), "no screens in {}", dir.display());
    screens
}

fn rows(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// What was read, as a person would check it.
fn told(front: &Front) -> String {
    match front {
        Front::Prompt { draft } => match draft {
            Some(draft) => format!("prompt with {draft:?}\n"),
            None => "prompt, empty\n".to_owned(),
        },
        Front::Menu(title) => format!("menu {title:?}\n"),
        Front::Other => "other\n".to_owned(),
        Front::Dialog(dialog) => told_dialog(dialog),
    }
}

fn told_dialog(dialog: &Dialog) -> String {
    let mut out = format!("{:?} {:?}\n", dialog.kind, dialog.title);
    let mut line = |text: std::fmt::Arguments<'_>| {
        out.write_fmt(text).expect("a string takes everything");
        out.push('\n');
    };
    if let Some(part) = &dialog.part {
        line(format_args!(
            "part {} of {} {:?} answered {:?}",
            part.index, part.count, part.titles, part.answered
        ));
    }
    dialog
        .subject
        .iter()
        .for_each(|row| line(format_args!("| {row}")));
    line(format_args!("? {}", dialog.question));
    for (at, option) in dialog.options.iter().enumerate() {
        let mark = if at == dialog.marked { '>' } else { ' ' };
        let number = option.number.map_or("-".to_owned(), |n| n.to_string());
        let checked = match option.checked {
            None => "",
            Some(true) => " [x]",
            Some(false) => " [ ]",
        };
        let note = if option.note.is_empty() {
            String::new()
        } else {
            format!(" ({})", option.note)
        };
        line(format_args!(
            "{mark} {number}{checked} {}{note}",
            option.label
        ));
    }
    let extra = [(dialog.submit, "submit"), (dialog.offers_words, "words")];
    let extra: Vec<&str> = extra
        .iter()
        .filter(|(is, _)| *is)
        .map(|(_, word)| *word)
        .collect();
    if !extra.is_empty() {
        line(format_args!("{}", extra.join(" ")));
    }
    out
}

#[test]
fn a09_every_captured_screen_is_read_right_or_not_at_all() {
    let mut wrong = Vec::new();
    for screen in screens() {
        let is = told(&read(&screen.rows, screen.cols));
        let expected = screen.path.with_extension("read");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&expected, &is).expect("it can be written");
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if is != wanted {
            wrong.push(format!(
                "{}.{}:\n{is}--- wanted\n{wanted}",
                screen.name, screen.cols
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is offered in this dialog.
fn offered(front: &Front) -> Option<Vec<(Option<u8>, String)>> {
    let Front::Dialog(dialog) = front else {
        return None;
    };
    let options = dialog.options.iter();
    Some(
        options
            .map(|option| (option.number, option.label.clone()))
            .collect(),
    )
}

/// Reads a damaged screen: it may say the same or nothing, and nothing else.
fn never_another(screen: &Screen, how: &str, damaged: &[String], cols: u16) {
    let whole = read(&screen.rows, screen.cols);
    let Some(offers) = offered(&read(damaged, cols)) else {
        return;
    };
    assert_eq!(
        Some(offers),
        offered(&whole),
        "{}.{} {how}:\n{}",
        screen.name,
        screen.cols,
        damaged.join("\n")
    );
}

#[test]
fn a09_a_part_of_a_dialog_is_never_another_one() {
    for screen in screens() {
        let rows = &screen.rows;
        for at in 0..=rows.len() {
            never_another(&screen, "cut below", &rows[..at], screen.cols);
            never_another(&screen, "cut above", &rows[at..], screen.cols);
            let mut half = rows.clone();
            half[at..]
                .iter_mut()
                .for_each(|row| *row = "\x1b[0m".to_owned());
            never_another(&screen, "half drawn", &half, screen.cols);
            let mut late = rows.clone();
            late[..at].iter_mut().for_each(|row| row.clear());
            never_another(&screen, "drawn from below", &late, screen.cols);
            if at < rows.len() {
                let mut without = rows.clone();
                without[at] = "\x1b[0m".to_owned();
                never_another(&screen, "a row is missing", &without, screen.cols);
            }
        }
    }
}

#[test]
fn a09_the_same_dialog_keeps_its_reading() {
    let all = screens();
    let reading = |name: &str, cols: u16| {
        let screen = all
            .iter()
            .find(|screen| screen.name == name && screen.cols == cols)
            .unwrap_or_else(|| panic!("no {name}.{cols}"));
        match read(&screen.rows, cols) {
            Front::Dialog(dialog) => dialog.reading(),
            other @ (Front::Prompt { .. } | Front::Menu(_) | Front::Other) => {
                panic!("{name}.{cols} is {other:?}")
            }
        }
    };
    for cols in [40, 80, 200] {
        for (one, other) in [
            ("bash", "bash-marked4"),
            ("trust", "trust-down"),
            ("multi", "multi-checked"),
            ("multi", "multi-type"),
            ("multi", "multi-submit"),
            ("two", "two-back"),
            ("ask", "ask-type"),
        ] {
            assert_eq!(
                reading(one, cols),
                reading(other, cols),
                "{one} {other} {cols}"
            );
        }
        for (one, other) in [
            ("bash", "bash-long"),
            ("two", "two-second"),
            ("multi", "twom-second"),
        ] {
            assert_ne!(
                reading(one, cols),
                reading(other, cols),
                "{one} {other} {cols}"
            );
        }
    }
}

/// What is offered can be shown and pressed.
fn holds_together(front: &Front) -> bool {
    let Front::Dialog(dialog) = front else {
        return true;
    };
    let numbers = dialog.options.iter().filter_map(|option| option.number);
    let named = dialog.options.iter().all(|option| !option.label.is_empty());
    let marked = dialog.options.is_empty() || dialog.marked < dialog.options.len();
    named && marked && numbers.zip(1..).all(|(is, wanted)| is == wanted)
}

proptest! {
    #[test]
    fn a09_no_text_is_too_strange(
        rows in prop::collection::vec("\\PC{0,60}|[─▔╌❯│☐☒✔←→ 0-9.\\[\\]\u{1b}m;a-z漢]{0,60}", 0..30),
        cols in 0u16..250,
    ) {
        prop_assert!(holds_together(&read(&rows, cols)));
    }

    /// Rows of real screens in any order, with any one of them damaged.
    #[test]
    fn a09_no_mixture_of_screens_is_too_strange(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..40),
        cols in prop::sample::select(vec![40u16, 80, 200]),
    ) {
        static ALL: OnceLock<Vec<Screen>> = OnceLock::new();
        let all = ALL.get_or_init(screens);
        let rows: Vec<String> = picks
            .iter()
            .map(|(screen, row)| row.get(&screen.get(all).rows).clone())
            .collect();
        prop_assert!(holds_together(&read(&rows, cols)));
    }
}
