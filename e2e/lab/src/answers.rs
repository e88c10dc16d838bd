//! Answers to what Claude asks, as every client of the product gives them: with the ask and the reading of the card
//! that was seen, over the server's own socket. And a person at a terminal, whose keys go through a client of tmux.
//!
//! Must never look at the screen to find out what to press: the card alone says that.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::clock::wall_ns;
use crate::product::{Lab, PATIENCE, Tab};

/// What is asked, as a client saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The row.
    pub item: String,
    /// The ask.
    pub ask: u64,
    /// The dialog on its card.
    pub reading: String,
    /// The card.
    pub card: Value,
}

impl Asked {
    /// What this item asks, if its dialog was read.
    pub fn of(item: &Value) -> Option<Self> {
        let ask = &item["detail"]["ask"];
        let card = ask["card"].as_object()?;
        Some(Self {
            item: item["id"].as_str()?.to_owned(),
            ask: ask["id"].as_u64()?,
            reading: card["reading"].as_str()?.to_owned(),
            card: ask["card"].clone(),
        })
    }

    /// Why nothing can be pressed.
    pub fn cannot(&self) -> Option<&str> {
        self.card["cannot"].as_str()
    }

    /// The labels of its options.
    pub fn labels(&self) -> Vec<&str> {
        let options = self.card["options"].as_array();
        let options = options.map(Vec::as_slice).unwrap_or_default();
        options
            .iter()
            .filter_map(|option| option["label"].as_str())
            .collect()
    }

    /// All that it is about, in one line.
    pub fn subject(&self) -> String {
        let rows = self.card["subject"].as_array();
        let rows = rows.map(Vec::as_slice).unwrap_or_default();
        let rows: Vec<&str> = rows.iter().filter_map(Value::as_str).collect();
        rows.join("\n")
    }

    /// The answer that chooses the option with this label.
    pub fn choice(&self, label: &str) -> Result<Value> {
        let at = self.labels().iter().position(|is| *is == label);
        let at = at.with_context(|| format!("no option {label:?} in {}", self.card))?;
        Ok(json!({"do": "choose", "option": at}))
    }
}

/// What became of an answer.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of HTTP.
    pub status: u16,
    /// What came with it.
    pub body: Value,
    /// When it was asked for, unix ns.
    pub from_ns: i64,
    /// When it was known, unix ns.
    pub to_ns: i64,
}

impl Outcome {
    /// The dialog was seen to close.
    pub fn is_sent(&self) -> bool {
        self.status == 200
    }

    /// The sentence with which it was refused: nothing was typed.
    pub fn refused(&self) -> Option<&str> {
        (self.status == 409).then(|| self.body["error"].as_str().unwrap_or_default())
    }

    /// What else there is to know.
    pub fn why(&self) -> &str {
        self.body["why"].as_str().unwrap_or_default()
    }
}

/// Posts to the server behind this socket, as the command line does.
pub fn post_at(socket: &Path, path: &str, body: &Value) -> Result<Outcome> {
    let from_ns = wall_ns();
    let mut stream = UnixStream::connect(socket).context("connect to the server")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: purplemux\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .context("the server's answer")?;
    let to_ns = wall_ns();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("no answer of HTTP: {answer:?}"))?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(Outcome {
        status: status.with_context(|| format!("no status: {head:?}"))?,
        body: serde_json::from_str(body).unwrap_or(Value::Null),
        from_ns,
        to_ns,
    })
}

/// Answers what was seen, through this socket; for several at once.
pub fn answer_at(socket: &Path, asked: &Asked, answer: &Value) -> Result<Outcome> {
    let body = json!({"ask": asked.ask, "reading": asked.reading, "answer": answer});
    post_at(socket, &format!("/api/tabs/{}/answer", asked.item), &body)
}

impl Lab {
    /// The server's own socket.
    pub fn socket(&self) -> PathBuf {
        self.home().product().join("purplemux.sock")
    }

    /// As [`post_at`].
    pub fn post(&self, path: &str, body: &Value) -> Result<Outcome> {
        post_at(&self.socket(), path, body)
    }

    /// As [`answer_at`].
    pub fn answer(&self, asked: &Asked, answer: &Value) -> Result<Outcome> {
        answer_at(&self.socket(), asked, answer)
    }
}

impl Tab<'_> {
    /// Waits for a card that fits.
    pub fn card(&self, what: &str, fits: impl Fn(&Asked) -> bool) -> Result<Asked> {
        let item = self.wait_item(what, |item| {
            Asked::of(item).is_some_and(|asked| fits(&asked))
        })?;
        Asked::of(&item).context("it had one a moment ago")
    }

    /// Waits for a card on which something can be pressed.
    pub fn open_card(&self) -> Result<Asked> {
        self.card("a card to be answered", |asked| asked.cannot().is_none())
    }

    /// What stands in Claude's box; `None` where its box is not at the end of the screen.
    pub fn in_box(&self) -> Option<String> {
        in_box(&self.screen())
    }
}

/// What stands in Claude's box at the end of this screen.
pub fn in_box(screen: &str) -> Option<String> {
    let rows: Vec<&str> = screen.trim_end().lines().collect();
    let is_rule = |row: &&str| row.chars().count() > 10 && row.chars().all(|c| c == '─');
    // The upper one may hold the session's title.
    let is_edge = |row: &&str| row.starts_with("──") && row.ends_with('─');
    let bottom = rows.iter().rposition(is_rule)?;
    let top = rows[..bottom].iter().rposition(is_edge)?;
    let inside = &rows[top + 1..bottom];
    let first = inside.first()?.strip_prefix(['❯', '!'])?;
    let mut words = vec![first.trim()];
    words.extend(inside[1..].iter().map(|row| row.trim()));
    Some(words.join(" ").trim().to_owned())
}

/// A person at a terminal of their own, attached to a session. Detached when dropped.
pub struct Person {
    terminal: Child,
}

impl Person {
    /// Attaches to the tab; its size stays as it is.
    pub fn at(lab: &Lab, tab: &Tab<'_>) -> Result<Self> {
        let attach = format!(
            "exec tmux -S {} attach -f ignore-size -t {}",
            tab.pane.socket().display(),
            tab.pane.target()
        );
        let terminal = Command::new("script")
            .args(["-qfec", &attach, "/dev/null"])
            .env_clear()
            .envs(lab.home().env())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("start `script`")?;
        let person = Self { terminal };
        let attached = || {
            let clients = tab.pane.tmux("list-clients", &["-F", "#{client_flags}"]);
            let clients = clients.unwrap_or_default();
            clients.contains("ignore-size").then_some(())
        };
        if crate::clock::until(PATIENCE, attached).is_none() {
            bail!("the person's terminal does not attach");
        }
        Ok(person)
    }

    /// Presses keys, as the bytes that a terminal sends for them; returns when, unix ns.
    pub fn press(&mut self, bytes: &str) -> Result<i64> {
        let stdin = self.terminal.stdin.as_mut().context("a terminal")?;
        let at_ns = wall_ns();
        stdin.write_all(bytes.as_bytes())?;
        stdin.flush()?;
        Ok(at_ns)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        drop(self.terminal.stdin.take());
        // Each fails only when it has ended already.
        drop(self.terminal.kill());
        drop(self.terminal.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_box_is_read() {
        let rule = "─".repeat(30);
        let edge = format!("{} Lab session ─", "─".repeat(16));
        for top in [&rule, &edge] {
            let screen =
                |typed: &str| format!("● said\n{top}\n❯ {typed}\n{rule}\n  ⏸ manual mode on\n\n");
            assert_eq!(in_box(&screen("")).as_deref(), Some(""));
            assert_eq!(in_box(&screen("4")).as_deref(), Some("4"));
            assert_eq!(in_box(&screen("a\n  b")).as_deref(), Some("a b"));
        }
        assert_eq!(in_box(&format!("{rule}\n Bash command\n ❯ 1. Yes\n")), None);
        assert_eq!(in_box("lab$ "), None);
    }
}
