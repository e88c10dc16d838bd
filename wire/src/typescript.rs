//! The page's view of our messages: the types of [`crate::browser`], [`crate::explain`] and [`crate::push`] and the
//! numbers of [`crate::frame`] as one TypeScript file. It is checked in and compared in CI, so that no shape is spelled out twice.
//!
//! Must never hold a shape of its own.

use ts_rs::{Config, TS};

use crate::browser::{
    Answer, Ask, AskKind, Card, CardOption, CardPart, ClientMsg, Color, Detail, Item, PaneArea,
    PaneSplit, PaneTree, Presence, Resume, Sending, ServerMsg, Shell, SplitDir, State, Tokens,
    Workspace,
};
use crate::explain::{Explanation, Reason, Source, Stand, Testimony, Transition};
use crate::frame;
use crate::push::{About, Buttons, Push};
use crate::sentence::{Cause, Moment, Notice, Sentence, Then};

/// The whole text of `web/src/wire/protocol.ts`.
#[must_use]
pub fn types() -> String {
    let cfg = Config::new();
    let mut out = String::from(
        "// The messages between server and page. Owns every shape that crosses the wire; must never be edited\n\
         // by hand: `cargo xtask gen` writes it from wire/src/{browser,explain,push,sentence,frame}.rs.\n",
    );
    declare::<Then>(&cfg, &mut out);
    declare::<Moment>(&cfg, &mut out);
    declare::<Cause>(&cfg, &mut out);
    declare::<Sentence>(&cfg, &mut out);
    declare::<Notice>(&cfg, &mut out);
    declare::<State>(&cfg, &mut out);
    declare::<Presence>(&cfg, &mut out);
    declare::<Shell>(&cfg, &mut out);
    declare::<AskKind>(&cfg, &mut out);
    declare::<CardOption>(&cfg, &mut out);
    declare::<CardPart>(&cfg, &mut out);
    declare::<Card>(&cfg, &mut out);
    declare::<Ask>(&cfg, &mut out);
    declare::<Detail>(&cfg, &mut out);
    declare::<Tokens>(&cfg, &mut out);
    declare::<Resume>(&cfg, &mut out);
    declare::<Item>(&cfg, &mut out);
    declare::<Color>(&cfg, &mut out);
    declare::<SplitDir>(&cfg, &mut out);
    declare::<PaneArea>(&cfg, &mut out);
    declare::<PaneSplit>(&cfg, &mut out);
    declare::<PaneTree>(&cfg, &mut out);
    declare::<Workspace>(&cfg, &mut out);
    declare::<Sending>(&cfg, &mut out);
    declare::<ServerMsg>(&cfg, &mut out);
    declare::<Answer>(&cfg, &mut out);
    declare::<ClientMsg>(&cfg, &mut out);
    declare::<Reason>(&cfg, &mut out);
    declare::<Source>(&cfg, &mut out);
    declare::<Stand>(&cfg, &mut out);
    declare::<Testimony>(&cfg, &mut out);
    declare::<Transition>(&cfg, &mut out);
    declare::<Explanation>(&cfg, &mut out);
    declare::<About>(&cfg, &mut out);
    declare::<Buttons>(&cfg, &mut out);
    declare::<Push>(&cfg, &mut out);
    out.push_str("\n/** First byte of every binary frame of `/api/terminal`; all numbers big-endian. */\nexport const FrameKind = {\n");
    for (name, kind) in frame::KINDS {
        out.push_str(&format!("  {name}: {kind},\n"));
    }
    out.push_str("} as const;\n");
    out.push_str(&format!(
        "\n/** Bytes the server may have in flight before the first credit. */\nexport const INITIAL_CREDIT = {};\n",
        frame::INITIAL_CREDIT
    ));
    out
}

/// The whole text of `web/src/wire/sentences.ts`: what the server says, in English.
#[must_use]
pub fn sentences() -> String {
    let mut out = String::from(
        "// What the server says to a person, in English: of each code what happened, and what to do. Owns these words; must\n\
         // never be edited by hand: `cargo xtask gen` writes it from wire/src/sentence.rs.\n\
         \nimport type { Cause, Then } from \"./protocol.ts\";\n\
         \nexport type Sentences = { readonly then: Readonly<Record<Then, string>>; readonly causes: Readonly<Record<Cause[\"code\"], readonly [what: string, act: string]>> };\n\
         \nexport const ENGLISH: Sentences = {\n  then: {\n",
    );
    for (code, text) in Then::ALL {
        out.push_str(&format!("    {code}: {},\n", quoted(text)));
    }
    out.push_str("  },\n  causes: {\n");
    for (code, what, act) in Cause::ALL {
        out.push_str(&format!(
            "    {code}: [{}, {}],\n",
            quoted(what),
            quoted(act)
        ));
    }
    out.push_str("  },\n};\n");
    out
}

/// As a literal; `{x:?}` becomes `“{x}”`, as a page would write it.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(":?}") {
        let (head, name) = before.rsplit_once('{').unwrap_or((before, ""));
        out.push_str(&format!("{head}“{{{name}}}”"));
        rest = after;
    }
    out.push_str(rest);
    serde_json::Value::from(out.replace('\'', "’")).to_string()
}

fn declare<T: TS + 'static>(cfg: &Config, out: &mut String) {
    out.push('\n');
    out.push_str(&short_comments(&T::docs().unwrap_or_default(), ""));
    let decl = T::decl(cfg);
    let (first, fields) = decl.split_once('\n').unwrap_or((&decl, ""));
    out.push_str("export ");
    out.push_str(first.trim_end());
    out.push('\n');
    out.push_str(&short_comments(fields, "  "));
}

/// Every line behind `indent` and without trailing blanks, each comment of one sentence on one line: the
/// generator spreads it over three.
fn short_comments(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let joined = text.replace("/**\n * ", "/** ").replace("\n */", " */");
    for line in joined.lines() {
        out.push_str(indent);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
