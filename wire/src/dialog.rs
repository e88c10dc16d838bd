//! What stands in front on Claude's screen (measured, Claude Code 2.1.332): its box, a dialog with its options, a menu
//! of the person's own. Read from a pane as tmux captures it, to show a dialog on a card and to know, before a key is
//! sent, that the same dialog is still drawn.
//!
//! Must never guess: what is not read with certainty is [`Front::Other`], and nothing is offered for it. Must never
//! decide a badge: a screen holds whatever a program has printed.

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use unicode_width::UnicodeWidthStr as _;

/// What the keys that are pressed now go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Front {
    /// Claude's box.
    Prompt {
        /// What stands in it. Words that Claude shows in an empty box count as one where the colours tell them apart.
        draft: Option<Arc<str>>,
    },
    /// Claude asks.
    Dialog(Dialog),
    /// A menu that the person has opened, such as `/model`: its title.
    Menu(Arc<str>),
    /// Anything else: a shell, Claude's transcript, a screen half drawn, a dialog that does not fit on it.
    Other,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DialogKind {
    /// Whether a tool may run.
    Permission,
    /// Claude's own question, one part of several, or their review.
    Question,
    /// Whether a plan is to be carried out.
    Plan,
    /// Before Claude has started: whether the folder is trusted.
    Trust,
    /// What a program that Claude talks to wants to know. Its fields are not read.
    Form,
    /// Another one. It has options, or can only be rejected.
    Other,
}

/// A dialog that is drawn completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialog {
    /// Of which kind, told by its shape.
    pub kind: DialogKind,
    /// Its first row: `Bash command`, `Edit file`; the short name of a question.
    pub title: String,
    /// What it is about as drawn, row by row: command, path, difference, plan.
    pub subject: Vec<String>,
    /// What is asked, in Claude's words.
    pub question: String,
    /// In the order in which they are drawn. Empty: nothing can be chosen, only rejected.
    pub options: Vec<Choice>,
    /// The place in `options` that Enter would choose.
    pub marked: usize,
    /// Where it is one of several.
    pub part: Option<Part>,
    /// The page on which the answers to several questions are sent.
    pub submit: bool,
    /// Words can be given instead of a choice: by Tab on a permission's option, by an option of a question's.
    pub offers_words: bool,
}

/// Which of several questions is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Counted from 0; on the page that sends them all, `count`.
    pub index: usize,
    /// How many questions there are.
    pub count: usize,
    /// Their short names.
    pub titles: Vec<String>,
    /// Which have an answer by now.
    pub answered: Vec<bool>,
}

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The digit that chooses it, where one is drawn.
    pub number: Option<u8>,
    /// In Claude's words.
    pub label: String,
    /// What is said about it below.
    pub note: String,
    /// Where several can be chosen: whether this one is.
    pub checked: Option<bool>,
}

impl Dialog {
    /// A name for what is asked: the same as long as the same dialog stands at the same width, whatever is marked or
    /// checked in it, and another one for every other. Nobody can make two that agree.
    #[must_use]
    pub fn reading(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update(text.len().to_be_bytes());
            hash.update(text);
        };
        add(&format!("{:?} {}", self.kind, self.submit));
        add(&self.title);
        add(&self.subject.len().to_string());
        self.subject.iter().for_each(|row| add(row));
        add(&self.question);
        for option in &self.options {
            add(&format!("{:?} {}", option.number, option.checked.is_some()));
            // Where the note begins is told by colours, and those change with the mark.
            add(&squeezed(&format!("{}{}", option.label, option.note)));
        }
        if let Some(part) = &self.part {
            add(&format!("{} {}", part.index, part.count));
            part.titles.iter().for_each(|title| add(title));
        }
        hash.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Whether this text stands in what the dialog is about, however it was broken into rows.
    #[must_use]
    pub fn shows(&self, text: &str) -> bool {
        let wanted = squeezed(text);
        squeezed(&self.subject.concat()).contains(&wanted)
            || squeezed(&self.question).contains(&wanted)
    }
}

/// Text without its blanks, and without the edge that Claude draws beside several rows: what is left of it however it
/// is broken into rows.
#[must_use]
pub fn squeezed(text: &str) -> String {
    let is_drawn = |c: &char| !c.is_whitespace() && *c != '│';
    text.chars().filter(is_drawn).collect()
}

/// What Claude asks below a plan.
const PLAN_QUESTION: &str =
    "Claude has written up a plan and is ready to execute. Would you like to proceed?";

/// What stands in front, from the rows of the visible pane and its width. The rows may hold colours
/// (`capture-pane -e`); some things are told apart by them alone.
#[must_use]
pub fn read(rows: &[String], cols: u16) -> Front {
    let mut rows = Row::all(rows);
    let end = rows
        .iter()
        .rposition(|row| !row.is_blank())
        .map_or(0, |at| at + 1);
    rows.truncate(end);
    let screen = Screen {
        rows,
        cols: usize::from(cols),
    };
    screen.front().unwrap_or(Front::Other)
}

/// How a character is drawn, as far as something is told by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Look {
    bold: bool,
    faint: bool,
    inverse: bool,
    colour: u32,
    ground: u32,
}

/// One row without its colours, and without blanks at its end.
#[derive(Clone, Debug, Default)]
struct Row {
    text: String,
    /// Of each character of `text`.
    looks: Vec<Look>,
}

impl Row {
    /// tmux goes on with a row's colours in the next one.
    fn all(rows: &[String]) -> Vec<Self> {
        let mut look = Look::default();
        rows.iter().map(|row| Self::of(row, &mut look)).collect()
    }

    fn of(drawn: &str, look: &mut Look) -> Self {
        let mut row = Self::default();
        let mut chars = drawn.chars();
        while let Some(c) = chars.next() {
            if c == '\x1b' {
                control(&mut chars, look);
            } else if !c.is_control() {
                row.text.push(c);
                row.looks.push(*look);
            }
        }
        row.text.truncate(row.text.trim_end().len());
        row.looks.truncate(row.text.chars().count());
        row
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    fn indent(&self) -> usize {
        self.text.chars().take_while(|c| *c == ' ').count()
    }

    fn words(&self) -> &str {
        self.text.trim_start()
    }

    /// How the first character that is drawn looks.
    fn look(&self) -> Look {
        self.looks.get(self.indent()).copied().unwrap_or_default()
    }

    /// Nothing but this character, so many times.
    fn is_line_of(&self, c: char, count: usize) -> bool {
        count > 0 && self.text.chars().count() == count && self.text.chars().all(|is| is == c)
    }
}

/// Reads what follows an escape: colours into `look`, anything else is passed over.
fn control(chars: &mut std::str::Chars<'_>, look: &mut Look) {
    match chars.next() {
        Some('[') => {
            let mut arguments = String::new();
            for c in chars.by_ref() {
                if ('\x40'..='\x7e').contains(&c) {
                    if c == 'm' {
                        colours(&arguments, look);
                    }
                    return;
                }
                arguments.push(c);
            }
        }
        Some(']') => {
            let mut before = ' ';
            for c in chars.by_ref() {
                if c == '\x07' || (before == '\x1b' && c == '\\') {
                    return;
                }
                before = c;
            }
        }
        Some(_) | None => {}
    }
}

/// Follows one `SGR`.
fn colours(arguments: &str, look: &mut Look) {
    let mut numbers = arguments
        .split([';', ':'])
        .map(|number| number.parse::<u32>().unwrap_or(0));
    while let Some(number) = numbers.next() {
        match number {
            0 => *look = Look::default(),
            1 => look.bold = true,
            2 => look.faint = true,
            22 => (look.bold, look.faint) = (false, false),
            7 => look.inverse = true,
            27 => look.inverse = false,
            30..=37 | 90..=97 => look.colour = number,
            39 => look.colour = 0,
            40..=47 | 100..=107 => look.ground = number,
            49 => look.ground = 0,
            38 | 48 => {
                let value = match numbers.next() {
                    Some(2) => numbers
                        .by_ref()
                        .take(3)
                        .fold(1, |all, part| (all << 8) | (part & 0xff)),
                    Some(5) => 0x200_0000 | numbers.next().unwrap_or(0),
                    Some(_) | None => 0,
                };
                if number == 38 {
                    look.colour = value;
                } else {
                    look.ground = value;
                }
            }
            _ => {}
        }
    }
}

/// The visible pane down to the last row that is drawn.
struct Screen {
    rows: Vec<Row>,
    cols: usize,
}

impl Screen {
    fn is_rule(&self, at: usize) -> bool {
        self.rows[at].is_line_of('─', self.cols)
    }

    /// The upper edge of a menu of the person's, and of a small dialog about a plan.
    fn is_ceiling(&self, at: usize) -> bool {
        self.rows[at].is_line_of('▔', self.cols)
    }

    fn front(&self) -> Option<Front> {
        let edges: Vec<usize> = (0..self.rows.len())
            .filter(|at| self.is_rule(*at) || self.is_ceiling(*at))
            .collect();
        let edge = *edges.last()?;
        if self.is_ceiling(edge) {
            return self.below_ceiling(edge);
        }
        if let Some(draft) = self.prompt(edge) {
            return Some(Front::Prompt { draft });
        }
        // A question separates its last option by a rule.
        let next = self.rows.get(edge + 1)?;
        let goes_on = Drawn::numbered(next).is_some_and(|(number, _)| number > 1);
        let top = if goes_on {
            *edges.iter().rev().nth(1).filter(|at| self.is_rule(**at))?
        } else {
            edge
        };
        let body = top + 1..self.rows.len();
        self.dialog(body).map(Front::Dialog)
    }

    /// Claude's box with `bottom` for its lower edge; what stands in it.
    fn prompt(&self, bottom: usize) -> Option<Option<Arc<str>>> {
        // Below it Claude indents everything; a shell does not.
        let below = &self.rows[bottom + 1..];
        below
            .iter()
            .all(|row| (row.is_blank() || row.indent() > 0) && Drawn::numbered(row).is_none())
            .then_some(())?;
        let first = (0..bottom).rev().find(|at| {
            let row = &self.rows[*at];
            !row.is_blank() && row.indent() < 2
        })?;
        let is_edge = |row: &Row| {
            row.text.width() == self.cols && row.text.starts_with("──") && row.text.ends_with('─')
        };
        (first > 0 && is_edge(&self.rows[first - 1])).then_some(())?;
        let opening = &self.rows[first];
        let mark = opening.text.chars().next()?;
        matches!(mark, '❯' | '!').then_some(())?;
        // Where it has words of its own to show, they are faint behind the cursor.
        let drawn = opening.looks.get(2..).unwrap_or_default();
        let faint = drawn.len() > 1 && drawn[1..].iter().all(|look| look.faint);
        // What is typed behind `!` is run by a shell: never an empty box.
        let skipped = if mark == '!' { 0 } else { mark.len_utf8() };
        let mut lines = vec![opening.text[skipped..].trim()];
        lines.extend(
            self.rows[first + 1..bottom]
                .iter()
                .map(|row| row.text.trim()),
        );
        let text = lines.join("\n");
        let draft = (!text.trim().is_empty() && !faint).then(|| Arc::from(text.trim_end()));
        Some(draft)
    }

    fn below_ceiling(&self, ceiling: usize) -> Option<Front> {
        let from = (ceiling + 1..self.rows.len()).find(|at| !self.rows[*at].is_blank())?;
        let first = &self.rows[from];
        if self.is_inner(first, '─') {
            return self.dialog(from + 1..self.rows.len()).map(Front::Dialog);
        }
        let rows = &self.rows[from..];
        let indented = rows.iter().all(|row| row.is_blank() || row.indent() > 0);
        indented.then(|| Front::Menu(Arc::from(first.words())))
    }

    /// The dialog in these rows, which begin below its upper edge.
    fn dialog(&self, rows: Range<usize>) -> Option<Dialog> {
        let rows = trimmed(&self.rows[rows]);
        let title = rows.first()?;
        // A part of it is scrolled away.
        rows.iter().all(|row| !says_more(row)).then_some(())?;
        if let Some(tabs) = Tabs::of(title) {
            return self.question(&rows[1..], tabs);
        }
        if let Some(plan) = self.plan(rows) {
            return Some(plan);
        }
        let Some((rows, footer)) = split_footer(rows) else {
            // One kind says in its last option how it is left, and nothing below it.
            let options = self.numbered(rows)?;
            let says = options.choices.last()?.label.ends_with(" (esc)");
            return says.then(|| self.permission(rows, "", options))?;
        };
        if let Some(options) = self.numbered(rows) {
            return self.permission(rows, &footer, options);
        }
        self.trust(rows, &footer).or_else(|| only_rejected(rows))
    }

    /// How a plan is to be carried out, or whether its mode is left. Neither has a last row that says what Esc does.
    fn plan(&self, rows: &[Row]) -> Option<Dialog> {
        let title = rows.first()?.words();
        let (subject, asked, last) = match title {
            "Exit plan mode?" => (&rows[..0], &rows[1..], "No"),
            "Ready to code?" => {
                let rule = rows.iter().rposition(|row| self.is_inner(row, '─'))?;
                // Both of its edges are on the screen.
                let plan = trimmed(&rows[1..rule]);
                let edges = plan.iter().filter(|row| self.is_inner(row, '╌')).count();
                let ends = self.is_inner(plan.last()?, '╌');
                (edges >= 2 && ends).then_some(())?;
                (
                    &rows[1..rule],
                    &rows[rule + 1..],
                    "Tell Claude what to change",
                )
            }
            _ => return None,
        };
        // Below the options there may be how the plan is edited.
        let end = asked.iter().rposition(Row::is_blank)?;
        let edits = asked[end + 1].words().starts_with("ctrl+g to edit in ");
        let asked = if edits { trimmed(&asked[..end]) } else { asked };
        let options = self.numbered(asked)?;
        // The last one is known, or the dialog is not drawn to its end.
        let mut options = options;
        let end = options.choices.last_mut()?;
        let said = end.label.strip_prefix(last)?.trim_start();
        if !said.is_empty() {
            end.note = said.to_owned();
            end.label = last.to_owned();
        }
        let question = self.paragraphs(&asked[..options.from]).join("\n");
        let known = ["Claude wants to exit plan mode", PLAN_QUESTION];
        known.contains(&question.as_str()).then_some(())?;
        let drawn = trimmed(subject)
            .iter()
            .filter(|row| !self.is_inner(row, '╌'));
        Some(Dialog {
            kind: DialogKind::Plan,
            title: title.to_owned(),
            subject: drawn
                .map(|row| row.text.strip_prefix("   ").unwrap_or(&row.text).to_owned())
                .collect(),
            question,
            options: options.choices,
            marked: options.marked,
            part: None,
            submit: false,
            offers_words: title == "Ready to code?",
        })
    }

    /// A line across a dialog that has an edge of its own inside a menu's.
    fn is_inner(&self, row: &Row, c: char) -> bool {
        let line = row.words();
        row.indent() == 2
            && line.chars().count() == self.cols.saturating_sub(4)
            && line.chars().all(|is| is == c)
    }

    /// Whether a tool may run, or another dialog of the same shape.
    fn permission(&self, rows: &[Row], footer: &str, options: Options) -> Option<Dialog> {
        let (title, head) = self.title(&rows[..options.from])?;
        let is_frame = |row: &Row| row.is_line_of('╌', self.cols);
        let from = head
            .iter()
            .rposition(|row| row.is_blank() || is_frame(row))
            .map_or(0, |at| at + 1);
        let (above, asked) = head.split_at(from);
        let question = self.joined(1, &words(asked));
        let asks = question.starts_with("Do you want ") && question.ends_with('?');
        let first = &options.choices.first()?.label;
        let is_left = footer.is_empty() || footer.starts_with("Esc to cancel");
        let kind = if asks && first == "Yes" && is_left {
            DialogKind::Permission
        } else if footer.starts_with("Enter to confirm") {
            DialogKind::Other
        } else {
            return None;
        };
        let subject: Vec<String> = trimmed(self.without_tip(above))
            .iter()
            .filter(|row| !is_frame(row))
            .map(without_padding)
            .collect();
        // What is to be changed is worked out after the rest is drawn.
        subject.iter().all(|row| row != "…").then_some(())?;
        Some(Dialog {
            kind,
            title,
            subject,
            question,
            options: options.choices,
            marked: options.marked,
            part: None,
            submit: false,
            offers_words: footer.contains("Tab to amend"),
        })
    }

    /// A permission's title and the rows below it. Where who asks does not fit behind what is asked, they are drawn in
    /// two columns.
    fn title<'a>(&self, rows: &'a [Row]) -> Option<(String, &'a [Row])> {
        let (first, below) = rows.split_first()?;
        let Some((left, right)) = first.words().split_once("  ") else {
            return Some((first.words().to_owned(), trimmed(below)));
        };
        if !right.trim_start().starts_with("· ") {
            let title = without_count(first.words());
            return Some((title, trimmed(below)));
        }
        let column = first.text.chars().position(|c| c == '·')?;
        let mut columns = (vec![left], vec![right.trim_start()]);
        let rows = below
            .iter()
            .take_while(|row| row.indent() >= column || row.look() == first.look());
        let count = rows.clone().count();
        for row in rows {
            let at = row.text.char_indices().nth(column);
            let at = at.map_or(row.text.len(), |(at, _)| at);
            let (left, right) = row.text.split_at(at);
            columns.0.push(left.trim());
            columns.1.push(right.trim());
        }
        columns.0.extend(columns.1);
        columns.0.retain(|part| !part.is_empty());
        Some((columns.0.join(" "), trimmed(&below[count..])))
    }

    /// Claude's own words about its auto mode are not what is asked.
    fn without_tip<'a>(&self, rows: &'a [Row]) -> &'a [Row] {
        const TIP: &str =
            "Tip: auto mode handles these prompts for you — choose \"switch to auto mode\" below";
        let tip = squeezed(TIP);
        let mut read = String::new();
        for (at, row) in rows.iter().enumerate() {
            read.push_str(&squeezed(&row.text));
            if read == tip {
                return &rows[at + 1..];
            }
            if !tip.starts_with(&read) {
                break;
            }
        }
        rows
    }

    fn trust(&self, rows: &[Row], footer: &str) -> Option<Dialog> {
        const LABELS: [&str; 2] = ["No, exit", "Yes, I trust this folder"];
        let title = rows.first()?.words();
        let is_trust = title == "Accessing workspace:" && footer.starts_with("Enter to confirm");
        is_trust.then_some(())?;
        // They have no numbers, so that a broken one could be two: only the known ones are read.
        let from = rows.len().checked_sub(LABELS.len())?;
        let (head, drawn) = rows.split_at(from);
        let mut marks = Vec::new();
        for (row, label) in drawn.iter().zip(LABELS) {
            let marked = row.text.strip_prefix(" ❯ ");
            let text = marked.or_else(|| row.text.strip_prefix("   "))?;
            (text == label).then_some(())?;
            marks.push(marked.is_some());
        }
        let mut paragraphs = self.paragraphs(head[1..].as_ref());
        let question = paragraphs
            .iter()
            .position(|paragraph| paragraph.contains('?'))
            .map(|at| paragraphs.remove(at))?;
        Some(Dialog {
            kind: DialogKind::Trust,
            title: title.to_owned(),
            subject: paragraphs,
            question,
            options: LABELS
                .iter()
                .map(|label| Choice {
                    number: None,
                    label: (*label).to_owned(),
                    note: String::new(),
                    checked: None,
                })
                .collect(),
            marked: only_one(&marks)?,
            part: None,
            submit: false,
            offers_words: false,
        })
    }

    /// A question of Claude's, one of several, or the page that sends their answers. `rows` begin below its tabs.
    fn question(&self, rows: &[Row], tabs: Tabs) -> Option<Dialog> {
        let rows = trimmed(rows);
        if rows.first()?.text == "Review your answers" {
            return self.review(&rows[1..], tabs);
        }
        let (rows, footer) = split_footer(rows)?;
        footer.starts_with("Enter to select").then_some(())?;
        let options = self.numbered(rows)?;
        let part = tabs.part();
        if tabs.several {
            // Where the colours do not say which one is drawn, nothing does.
            part.as_ref()?;
        }
        let words = ["Type something.", "Type something"];
        let offers_words = options
            .choices
            .iter()
            .any(|choice| words.contains(&choice.label.as_str()));
        Some(Dialog {
            kind: DialogKind::Question,
            title: tabs.title(),
            subject: Vec::new(),
            question: self.asked(&rows[..options.from]),
            options: options.choices,
            marked: options.marked,
            part,
            submit: false,
            offers_words,
        })
    }

    fn review(&self, rows: &[Row], tabs: Tabs) -> Option<Dialog> {
        let options = self.numbered(rows)?;
        let labels: Vec<&str> = options.choices.iter().map(|c| c.label.as_str()).collect();
        (labels == ["Submit answers", "Cancel"]).then_some(())?;
        let subject = trimmed(&rows[..options.from]);
        let count = tabs.titles.len();
        Some(Dialog {
            kind: DialogKind::Question,
            title: "Review your answers".to_owned(),
            subject: subject.iter().map(without_padding).collect(),
            question: String::new(),
            options: options.choices,
            marked: options.marked,
            part: Some(Part {
                index: count,
                count,
                titles: tabs.titles,
                answered: tabs.answered,
            }),
            submit: true,
            offers_words: false,
        })
    }

    /// The numbered options with which these rows end.
    fn numbered(&self, rows: &[Row]) -> Option<Options> {
        let mut found: Vec<(Drawn<'_>, Vec<&Row>)> = Vec::new();
        let mut below: Vec<&Row> = Vec::new();
        // Of the option that was read last: its digit, and where that stands.
        let mut next: Option<(u8, usize)> = None;
        let mut from = rows.len();
        // From the last one up: what looks like options above the first is text.
        for (at, row) in rows.iter().enumerate().rev() {
            from = at;
            let numbered = Drawn::numbered(row).filter(|(number, option)| {
                next.is_none_or(|next| next == (number + 1, option.column))
            });
            if let Some((number, option)) = numbered {
                next = Some((number, option.column));
                below.reverse();
                found.push((option, std::mem::take(&mut below)));
                if number == 1 {
                    break;
                }
            } else if let Some(button) = Drawn::button(row).filter(|_| below.is_empty()) {
                found.push((button, Vec::new()));
            } else if row.is_line_of('─', self.cols) && below.is_empty() && found.len() == 1 {
                // A question separates its last option.
            } else if row.is_blank() || row.indent() < 5 {
                return None;
            } else {
                below.push(row);
            }
        }
        let (first, column) = next?;
        (first == 1 && matches!(column, 2..=5)).then_some(())?;
        found.reverse();
        let marks: Vec<bool> = found.iter().map(|(option, _)| option.marked).collect();
        // Only between boxes to tick is there a button.
        let several = found.iter().any(|(option, _)| option.checked.is_some());
        let buttons = found.iter().any(|(option, _)| option.number.is_none());
        (several || !buttons).then_some(())?;
        let choices = found
            .iter()
            .map(|(option, below)| self.choice(option, below))
            .collect();
        Some(Options {
            from,
            choices,
            marked: only_one(&marks)?,
        })
    }

    /// An option with the rows below it: first what is left of its label, then what is said about it, which is drawn
    /// as its number is.
    fn choice(&self, option: &Drawn<'_>, below: &[&Row]) -> Choice {
        let is_note = |look: &Look| *look != option.look && *look == option.number_look;
        let indent = option.column + 3;
        let (mut label, mut note) = (Vec::new(), Vec::new());
        let rows = below.iter().map(|row| (*row, row.words()));
        for (row, text) in std::iter::once((option.row, option.text)).chain(rows) {
            // Some say it in the same row, behind a dot. Blanks look like anything.
            let chars = row.text.chars().rev().zip(row.looks.iter().rev());
            let tail = chars
                .take_while(|(c, look)| *c == ' ' || is_note(look))
                .count();
            let split = text.chars().count().saturating_sub(tail);
            let at = text
                .char_indices()
                .nth(split)
                .map_or(text.len(), |(at, _)| at);
            // Where colours say nothing: what would have fitted into the row above was not broken off it. Some
            // dialogs leave a few columns free.
            let first = text.split(' ').next().unwrap_or_default();
            let room = self.cols.saturating_sub(indent + 5);
            let fitted = option.look == option.number_look
                && label.last().is_some_and(|above: &Piece<'_>| {
                    above.text.width() + 1 + first.width() <= room
                });
            let is_label = note.is_empty() && !fitted;
            let (labelled, noted) = text.split_at(if is_label { at } else { 0 });
            let labelled = labelled.trim_end();
            let noted = noted.strip_prefix(" ·").unwrap_or(noted).trim_start();
            if !labelled.is_empty() {
                label.push(Piece::of(row, text, labelled));
            }
            if !noted.is_empty() {
                note.push(Piece::of(row, text, noted));
            }
        }
        let label = self.joined(indent, &label);
        // The one that was chosen before is ticked.
        let label = label.strip_suffix(" ✔").unwrap_or(&label);
        Choice {
            number: option.number,
            label: label.to_owned(),
            note: self.joined(indent, &note),
            checked: option.checked,
        }
    }

    /// A question's own text, with its line breaks as far as they can be told from those for want of room.
    fn asked(&self, rows: &[Row]) -> String {
        let is_edged = |row: &Row| row.text.starts_with('│') && row.look().faint;
        let rows = trimmed(rows);
        if !rows.iter().all(is_edged) {
            return self.paragraphs(rows).join("\n");
        }
        let room = self.cols.saturating_sub(3);
        let mut lines: Vec<Vec<Piece<'_>>> = Vec::new();
        let mut above = 0;
        for row in rows {
            let text = row.text.trim_start_matches('│');
            let text = text.strip_prefix(' ').unwrap_or(text);
            let first = text.split(' ').next().unwrap_or_default();
            let goes_on = above > 0 && !first.is_empty() && above + 1 + first.width() > room;
            match lines.last_mut().filter(|_| goes_on) {
                Some(line) => line.push(Piece::end_of(row, text)),
                None => lines.push(vec![Piece::end_of(row, text)]),
            }
            above = text.width();
        }
        let lines: Vec<String> = lines.iter().map(|line| self.joined(2, line)).collect();
        lines.join("\n")
    }

    /// The paragraphs of these rows, each as one line.
    fn paragraphs(&self, rows: &[Row]) -> Vec<String> {
        rows.split(Row::is_blank)
            .filter(|rows| !rows.is_empty())
            .map(|rows| self.joined(rows[0].indent(), &words(rows)))
            .collect()
    }

    /// Rows that were one line before they were broken: between words, or within one that is too long for a row.
    fn joined(&self, indent: usize, rows: &[Piece<'_>]) -> String {
        let room = self.cols.saturating_sub(indent + 1);
        let mut line = String::new();
        let mut above: Option<&Piece<'_>> = None;
        for row in rows {
            let before = line.rsplit(' ').next().unwrap_or_default();
            let after = row.text.split(' ').next().unwrap_or_default();
            let within = above.is_some_and(|above| {
                let is_full = above.text.width() + 1 >= room;
                is_full && above.last == row.first && before.width() + after.width() > room
            });
            if above.is_some() && !within {
                line.push(' ');
            }
            line.push_str(row.text);
            above = Some(row);
        }
        line
    }
}

/// A part of a row, and how it looks at its ends.
struct Piece<'a> {
    text: &'a str,
    first: Look,
    last: Look,
}

impl<'a> Piece<'a> {
    /// `text` is what the row ends with.
    fn end_of(row: &'a Row, text: &'a str) -> Self {
        Self::of(row, text, text)
    }

    /// `part` begins or ends `text`, which is what the row ends with.
    fn of(row: &'a Row, text: &'a str, part: &'a str) -> Self {
        let start = row.looks.len().saturating_sub(text.chars().count());
        let chars = part.chars().count();
        let from = if text.starts_with(part) {
            start
        } else {
            row.looks.len().saturating_sub(chars)
        };
        let look = |at: usize| row.looks.get(at).copied().unwrap_or_default();
        Self {
            text: part,
            first: look(from),
            last: look((from + chars).saturating_sub(1)),
        }
    }
}

/// What the rows hold, without what they are indented by.
fn words<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Piece<'a>> {
    rows.into_iter()
        .map(|row| Piece::end_of(row, row.words()))
        .collect()
}

/// Without the blank rows at both ends.
fn trimmed(rows: &[Row]) -> &[Row] {
    let drawn = |row: &Row| !row.is_blank();
    let from = rows.iter().position(drawn).unwrap_or(rows.len());
    let to = rows.iter().rposition(drawn).map_or(from, |at| at + 1);
    &rows[from..to]
}

/// The rows above the last paragraph, where that says what the keys do, and what it says.
fn split_footer(rows: &[Row]) -> Option<(&[Row], String)> {
    let from = rows.iter().rposition(Row::is_blank)? + 1;
    // With two blank rows above it something of the dialog is not drawn yet.
    let above = rows.get(from.checked_sub(2)?)?;
    (!above.is_blank()).then_some(())?;
    let footer: Vec<&str> = rows[from..].iter().map(Row::words).collect();
    let footer = footer.join(" ");
    let cancels = footer.contains("Esc to cancel");
    cancels.then(|| (trimmed(&rows[..from]), footer))
}

/// The padding that Claude draws on the left is no part of the text, and nor is the faint edge that it draws beside
/// more than one row; blanks beyond that are.
fn without_padding(row: &Row) -> String {
    let text = row.text.strip_prefix(' ').unwrap_or(&row.text);
    let inner = text.strip_prefix('│').filter(|_| row.look().faint);
    inner
        .map_or(text, |text| text.strip_prefix(' ').unwrap_or(text))
        .to_owned()
}

/// A title without `1 of 2` at its right end, which changes while the dialog stands.
fn without_count(title: &str) -> String {
    let (words, end) = title.rsplit_once("  ").unwrap_or((title, ""));
    let is_count = end
        .split_once(" of ")
        .is_some_and(|(at, all)| at.parse::<u32>().is_ok() && all.parse::<u32>().is_ok());
    if is_count { words.trim_end() } else { title }.to_owned()
}

/// `↑ 45 more lines`, or an arrow at the right edge, in a dialog that is taller than the screen.
fn says_more(row: &Row) -> bool {
    let words = row.words();
    let counts = words.ends_with(" more lines") || words.ends_with(" more line");
    let edge = words.ends_with("  ↓") || words.ends_with("  ↑");
    edge || (words.starts_with(['↑', '↓']) && counts)
}

/// The place of the one that is true. `None`: there is none, or more than one.
fn only_one(marks: &[bool]) -> Option<usize> {
    let at = marks.iter().position(|mark| *mark)?;
    (!marks[at + 1..].contains(&true)).then_some(at)
}

/// A dialog whose options are not read, but whose last row says that Esc leaves it.
fn only_rejected(rows: &[Row]) -> Option<Dialog> {
    let title = rows.first()?.words();
    let is_form = title.starts_with("MCP server ") && title.ends_with(" requests your input");
    let kind = match title {
        _ if is_form => DialogKind::Form,
        "Auto mode can't check actions in this session" => DialogKind::Other,
        _ => return None,
    };
    Some(Dialog {
        kind,
        title: title.to_owned(),
        subject: trimmed(&rows[1..]).iter().map(without_padding).collect(),
        question: String::new(),
        options: Vec::new(),
        marked: 0,
        part: None,
        submit: false,
        offers_words: false,
    })
}

/// The options with which a dialog ends, and where they begin.
struct Options {
    from: usize,
    choices: Vec<Choice>,
    marked: usize,
}

/// The row on which an option begins.
struct Drawn<'a> {
    marked: bool,
    number: Option<u8>,
    /// Of the digit.
    column: usize,
    number_look: Look,
    checked: Option<bool>,
    row: &'a Row,
    /// What of its label stands in the row.
    text: &'a str,
    look: Look,
}

impl<'a> Drawn<'a> {
    /// With its digit.
    fn numbered(row: &'a Row) -> Option<(u8, Self)> {
        let text = row.words();
        let (marked, text) = match text.strip_prefix("❯ ") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u8 = text[..digits].parse().ok()?;
        let label = text[digits..].strip_prefix(". ")?;
        let boxes = [("[ ] ", false), ("[✔] ", true)];
        let ticked = boxes
            .iter()
            .find_map(|(mark, is)| Some((label.strip_prefix(mark)?, *is)));
        let (label, checked) = ticked.map_or((label, None), |(rest, is)| (rest, Some(is)));
        (number > 0 && !label.starts_with(' ') && !label.is_empty()).then_some(())?;
        let column = row.indent() + if marked { 2 } else { 0 };
        let ahead = row.text.chars().count() - label.chars().count();
        let look = |at: usize| row.looks.get(at).copied().unwrap_or_default();
        let option = Self {
            marked,
            number: Some(number),
            column,
            number_look: look(column),
            checked,
            row,
            text: label,
            look: look(ahead),
        };
        Some((number, option))
    }

    /// What goes on to the next question, or sends the answers, below boxes to tick.
    fn button(row: &'a Row) -> Option<Self> {
        let marked = row.text.strip_prefix('❯');
        let text = marked.or_else(|| row.text.strip_prefix(' '))?;
        let text = text.strip_prefix("    ")?;
        matches!(text, "Submit" | "Next").then(|| Self {
            marked: marked.is_some(),
            number: None,
            column: 2,
            number_look: Look::default(),
            checked: None,
            row,
            text,
            look: Look::default(),
        })
    }
}

/// The first row of a question: the short name of each, whether it is answered, and which one is drawn.
struct Tabs {
    titles: Vec<String>,
    answered: Vec<bool>,
    several: bool,
    current: Option<usize>,
}

impl Tabs {
    fn of(row: &Row) -> Option<Self> {
        let text = row.text.trim();
        let inner = text
            .strip_prefix('←')
            .and_then(|rest| rest.strip_suffix('→'))
            .and_then(|rest| rest.trim_end().strip_suffix("✔ Submit"));
        let mut tabs = Self {
            titles: Vec::new(),
            answered: Vec::new(),
            several: inner.is_some(),
            current: None,
        };
        let places: Vec<usize> = row
            .text
            .char_indices()
            .enumerate()
            .filter(|(_, (_, c))| matches!(c, '☐' | '☒'))
            .map(|(place, _)| place)
            .collect();
        let boxes = inner.unwrap_or(text).trim();
        boxes.starts_with(['☐', '☒']).then_some(())?;
        for piece in boxes.split_inclusive(['☐', '☒']).skip(1) {
            let title = piece.trim_end_matches(['☐', '☒']).trim();
            tabs.titles.push(title.to_owned());
        }
        tabs.answered = boxes
            .chars()
            .filter_map(|c| match c {
                '☐' => Some(false),
                '☒' => Some(true),
                _ => None,
            })
            .collect();
        // The one that is drawn stands on a ground of its own.
        let grounds: Vec<bool> = places
            .iter()
            .map(|place| row.looks[*place].ground != 0 || row.looks[*place].inverse)
            .collect();
        tabs.current = only_one(&grounds);
        let named = tabs.titles.iter().all(|title| !title.is_empty());
        (named && (tabs.several || tabs.titles.len() == 1)).then_some(tabs)
    }

    fn title(&self) -> String {
        let at = self.current.unwrap_or(0);
        self.titles.get(at).cloned().unwrap_or_default()
    }

    fn part(&self) -> Option<Part> {
        (self.several).then_some(())?;
        Some(Part {
            index: self.current?,
            count: self.titles.len(),
            titles: self.titles.clone(),
            answered: self.answered.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(screen: &str, cols: u16) -> Front {
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        read(&rows, cols)
    }

    fn labels(front: &Front) -> Vec<&str> {
        let Front::Dialog(dialog) = front else {
            return Vec::new();
        };
        dialog
            .options
            .iter()
            .map(|option| option.label.as_str())
            .collect()
    }

    /// As in the recorded run s04, in 60 columns: the second dialog, with the first one's end above it.
    const PERMISSION: &str = "\
❯ bash: touch a.txt ;; say finished

● I'll use a tool.

  Did not run 1 call
  ⎿  $ touch a.txt
  ⎿  Interrupted · What should Claude do instead?

────────────────────────────────────────────────────────────
 Bash command
 Run a lab command
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 touch b.txt
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to /home/dev/a/project/of
      many words from this project
   3. No

 Esc to cancel · Tab to amend

";

    /// Recorded run f5: a digit too many.
    const PROMPT: &str = "\
✻ Baked for 0s · done 10:33 AM

────────────────────────────────────────────────────────────
❯ 4
────────────────────────────────────────────────────────────
  ⏸ manual mode on
";

    #[test]
    fn a09_a_dialog_is_read_to_its_last_word() {
        let read = front(PERMISSION, 60);
        let Front::Dialog(dialog) = &read else {
            panic!("{read:?}")
        };
        assert_eq!(dialog.kind, DialogKind::Permission);
        assert_eq!(dialog.title, "Bash command");
        assert_eq!(dialog.subject, ["Run a lab command", "touch b.txt"]);
        assert_eq!(dialog.question, "Do you want to proceed?");
        assert_eq!(
            labels(&read),
            [
                "Yes",
                "Yes, and always allow access to /home/dev/a/project/of many words from this project",
                "No"
            ]
        );
        assert_eq!(dialog.marked, 0);
        assert!(dialog.offers_words);
        assert!(dialog.shows("touch  b.txt"));
        assert!(!dialog.shows("touch a.txt"));
    }

    #[test]
    fn a09_a_draft_is_no_dialog() {
        let draft = Some(Arc::from("4"));
        assert_eq!(front(PROMPT, 60), Front::Prompt { draft });
        let empty = PROMPT.replace("❯ 4", "❯ ");
        assert_eq!(front(&empty, 60), Front::Prompt { draft: None });
        let shell = PROMPT.replace("! ls", "");
        assert_ne!(
            front(&shell.replace("❯ 4", "! "), 60),
            Front::Prompt { draft: None }
        );
    }

    #[test]
    fn a09_what_a_program_prints_is_no_dialog() {
        // The dialog's end, and then Claude's own box, or a shell's line.
        let below = format!("{PERMISSION}\n{PROMPT}");
        assert!(matches!(front(&below, 60), Front::Prompt { .. }));
        assert_eq!(front(&format!("{PERMISSION}$ ls\n"), 60), Front::Other);
        assert_eq!(
            front(&format!("{PROMPT}$ ls\n"), 60),
            Front::Other,
            "Claude has ended"
        );
        // As wide as another pane.
        assert_eq!(front(PERMISSION, 61), Front::Other);
        // Taller than the screen: its upper edge is not on it.
        let tall = PERMISSION
            .split_once("Run a lab")
            .map_or("", |(_, rest)| rest);
        assert_eq!(front(tall, 60), Front::Other);
    }

    #[test]
    fn a09_options_that_do_not_add_up_are_none() {
        for (from, to) in [
            ("   2. Yes", "   4. Yes"),
            ("   3. No", "   3.  No"),
            ("   3. No", " ❯ 3. No"),
            (" ❯ 1. Yes", "   1. Yes"),
            (" ❯ 1. Yes", "❯ 1. Yes"),
        ] {
            let broken = PERMISSION.replace(from, to);
            let read = front(&broken, 60);
            assert_eq!(read, Front::Other, "{from} {to}");
        }
    }

    /// In a command, a text of its own may look like anything.
    #[test]
    fn a09_options_inside_a_command_are_its_text() {
        let fake = PERMISSION.replace(
            " touch b.txt",
            " Do you want to proceed?\n ❯ 1. No\n   2. Yes\n\n Esc to cancel",
        );
        let read = front(&fake, 60);
        assert_eq!(labels(&read).first(), Some(&"Yes"));
        let Front::Dialog(dialog) = read else {
            panic!()
        };
        assert!(dialog.shows("Do you want to proceed? ❯ 1. No"));
    }
}
