//! Texts of strangers made safe to show: nothing invisible stays invisible, nothing is longer than its bound.
//!
//! What Claude, a tool or a repository wrote reaches the page, lists and alerts only through here, so that an
//! approval never looks different from what it does. Must never drop a character without a trace.

use std::sync::Arc;

/// What a tool works on, and what is asked: long enough to judge a command by, and the rest is counted.
pub(crate) const ASK_CHARS_MAX: usize = 4000;
/// Claude's last words, a prompt, an error: a few lines on a card.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2000;
/// Names: of tools, types, reasons, titles, option labels.
pub const NAME_CHARS_MAX: usize = 200;
/// Paths: Linux's PATH_MAX. A longer one can't be opened.
pub(crate) const PATH_BYTES_MAX: usize = 4096;
/// Claude's ids are UUIDs and `toolu_…`; anything much longer is none of them.
pub(crate) const ID_BYTES_MAX: usize = 256;

/// Several lines: line breaks stay, everything else that can't be seen is written out.
pub(crate) fn block(text: &str, chars_max: usize) -> Arc<str> {
    Arc::from(visible(text.trim_end(), chars_max, "\n"))
}

/// One line: line breaks become `⏎`.
#[must_use]
pub fn line(text: &str, chars_max: usize) -> Arc<str> {
    Arc::from(visible(text.trim(), chars_max, " ⏎ "))
}

/// A path as it is used, not as it is shown: kept byte for byte, or not at all.
pub(crate) fn path(text: &str) -> Option<Arc<str>> {
    let usable = text.starts_with('/') && text.len() <= PATH_BYTES_MAX && !text.contains('\0');
    usable.then(|| Arc::from(text))
}

/// An id that is only ever compared: kept as it is, or not at all.
pub(crate) fn id(text: &str) -> Option<Arc<str>> {
    let usable = !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && text.bytes().all(|b| b.is_ascii_graphic());
    usable.then(|| Arc::from(text))
}

fn visible(text: &str, chars_max: usize, line_break: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4 * chars_max));
    let mut chars = text.chars().enumerate().peekable();
    let mut before = ' ';
    while let Some((index, c)) = chars.next() {
        if index >= chars_max {
            let left = 1 + chars.count();
            out.push_str(&format!("… (+{left})"));
            return out;
        }
        match c {
            '\r' if chars.peek().is_some_and(|&(_, next)| next == '\n') => {}
            '\n' => out.push_str(line_break),
            '\t' => out.push(' '),
            '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\x7f' => out.push('␡'),
            _ if deceives(c, before) => out.push_str(&format!("‹U+{:04X}›", u32::from(c))),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

/// Takes no room or turns the reading direction, and is not needed where it stands: behind `before`.
#[must_use]
pub fn deceives(c: char, before: char) -> bool {
    match c {
        // Joiners belong into emoji and into Arabic to Sinhala script; elsewhere they hide.
        '\u{200c}' | '\u{200d}' => !matches!(before,
            '\u{0600}'..='\u{0dff}' | '\u{2190}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
            | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}'),
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_hides_is_written_out() {
        assert_eq!(&*line("rm -rf \u{202e}txt.a", 100), "rm -rf ‹U+202E›txt.a");
        assert_eq!(&*line("a\u{200b}b\x1b[31mc\x07", 100), "a‹U+200B›b␛[31mc␇");
        assert_eq!(&*line("one\r\ntwo\n", 100), "one ⏎ two");
        assert_eq!(&*line("one\rtwo", 100), "one␍two");
        assert_eq!(&*block("one\ntwo\tthree\n\n", 100), "one\ntwo three");
        assert_eq!(&*line("c1\u{9b}31m", 100), "c1‹U+009B›31m");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "touch a.txt",
            "漢字と한국어",
            "👨‍👩‍👧 ❤️",
            "می‌خواهم",
            "naïve café",
        ] {
            assert_eq!(&*line(text, 100), text);
        }
    }

    #[test]
    fn a_cut_says_how_much_is_missing() {
        assert_eq!(&*line("abcdef", 6), "abcdef");
        assert_eq!(&*line("abcdefgh", 5), "abcde… (+3)");
    }

    #[test]
    fn paths_and_ids_are_whole_or_absent() {
        assert_eq!(path("/home/dev/a b").as_deref(), Some("/home/dev/a b"));
        assert_eq!(path("relative"), None);
        assert_eq!(path("/nul\0"), None);
        assert_eq!(path(&format!("/{}", "a".repeat(5000))), None);
        assert_eq!(id("toolu_1").as_deref(), Some("toolu_1"));
        assert_eq!(id(""), None);
        assert_eq!(id("a b"), None);
    }

    proptest! {
        #[test]
        fn nothing_invisible_comes_out(text in "\\PC*|[\\x00-\\x1f\u{200b}-\u{202e}a]*", max in 0usize..50) {
            let shown = line(&text, max);
            let hidden = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
            prop_assert!(!shown.chars().any(hidden), "hidden");
        }
    }
}
