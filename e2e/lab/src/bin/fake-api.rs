//! `fake-api [--home]`: the fake of the Messages API for tests that are not written in Rust. Prints one line of
//! JSON, then serves until its standard input ends, so that it can't outlive the test that started it.
//!
//! With `--home` it also makes a throw-away home whose Claude talks to it; the line then holds the home's root, its
//! environment and its trusted directories, and the home is removed at the end.

use std::io::{Read as _, Write as _};

use purplemux_lab::fake::Fake;
use purplemux_lab::home::Home;
use serde_json::{Map, Value, json};

fn main() -> anyhow::Result<()> {
    let seeded = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--home" => true,
        _ => anyhow::bail!("usage: fake-api [--home]"),
    };
    let fake = Fake::start(None)?;
    let mut line = json!({"port": fake.port(), "url": fake.url()});
    let home = seeded.then(|| Home::new(&fake.url())).transpose()?;
    if let Some(home) = &home {
        let env: Map<String, Value> = home
            .env()
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect();
        let projects: Vec<_> = (1..)
            .map(|number| home.project(number))
            .take_while(|dir| dir.is_dir())
            .collect();
        line["root"] = json!(home.root());
        line["env"] = env.into();
        line["projects"] = json!(projects);
    }
    println!("{line}");
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
