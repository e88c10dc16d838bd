//! A `claude` typed by hand in a tab: the person's start-up files run first, then it gets our hooks, in every
//! shell (K10) and beside settings of their own (K09). Claude is a stand-in here that writes down how it was
//! started; the real one is driven elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails where it stands, starts programs and looks at the real clock"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{PATIENCE, TestServer, place, purplemux, start};

/// Writes its arguments to `started` and waits for `leave`.
const CLAUDE: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.332 (Claude Code)'; exit; fi
for argument in "$@"; do printf '%s\n' "$argument"; done >~/arguments
printf '%s\n' "$$" >~/pid
env >~/environment
mv ~/arguments ~/started
while [ ! -e ~/leave ]; do sleep 0.02; done
rm ~/leave
"#;

struct Person {
    server: TestServer,
    tab: String,
}

impl Person {
    /// Logs in with this shell and these start-up files, and opens a tab.
    fn with(shell: &str, files: &[(&str, &str)]) -> Self {
        let dir = place();
        let home = dir.path().join("person");
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        let claude = home.join(".local/bin/claude");
        fs::write(&claude, CLAUDE).unwrap();
        fs::set_permissions(&claude, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, text) in files {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut command = purplemux(dir.path());
        command
            .args(["serve", "--port", "0"])
            .env("PURPLEMUX_SHELL", shell)
            .env("PATH", "/usr/bin:/bin");
        let (child, port) = start(command);
        let server = TestServer::adopt(dir, port, child);
        let made = server.json(&["tab", "create", "--json", "--cwd", home.to_str().unwrap()]);
        let tab = made["tab"].as_str().unwrap().to_owned();
        Self { server, tab }
    }

    fn home(&self) -> PathBuf {
        self.server.dir.path().join("person")
    }

    fn types(&self, line: &str) {
        self.server.cli_ok(&["tab", "send", &self.tab, line]);
    }

    fn wait<T>(&self, what: &str, mut there: impl FnMut() -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = there() {
                return found;
            }
            assert!(
                Instant::now() < until,
                "{what}; the screen:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn screen(&self) -> String {
        let sockets = fs::read_dir(self.server.dir.path()).unwrap().flatten();
        let socket = sockets
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("tmux-"))
            .flat_map(|entry| fs::read_dir(entry.path()).unwrap().flatten())
            .map(|entry| entry.path())
            .next();
        let output = std::process::Command::new("tmux")
            .arg("-S")
            .arg(socket.expect("a tmux server"))
            .args(["capture-pane", "-p", "-t", &format!("={}:", self.tab)])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The arguments of the Claude that was started last.
    fn started(&self) -> Vec<String> {
        let path = self.home().join("started");
        let text = self.wait("no claude was started", || fs::read_to_string(&path).ok());
        fs::remove_file(&path).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Types the line, and gives the settings and the other arguments of the Claude that it starts.
    fn claude(&self, line: &str) -> (PathBuf, Vec<String>) {
        self.types(line);
        let mut arguments = self.started();
        assert_eq!(
            arguments.first().map(String::as_str),
            Some("--settings"),
            "{arguments:?}"
        );
        let rest = arguments.split_off(2);
        (PathBuf::from(&arguments[1]), rest)
    }

    fn leave(&self) {
        fs::write(self.home().join("leave"), "").unwrap();
        let path = self.home().join("leave");
        self.wait("claude does not leave", || (!path.exists()).then_some(()));
    }

    fn item(&self) -> Value {
        let items = self.server.json(&["status", "--json"]);
        let items = items.as_array().unwrap();
        let ours = items.iter().find(|item| item["tab"] == self.tab.as_str());
        ours.cloned().unwrap_or_default()
    }

    /// The settings are ours as they stand: nothing of the person's was given.
    fn assert_ours(&self, settings: &Path) {
        assert!(
            settings.starts_with(self.server.home().join("hooks.d")),
            "{}",
            settings.display()
        );
        let hooks = read(settings)["hooks"].clone();
        assert_eq!(hooks.as_object().unwrap().len(), 17, "the version is known");
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

const LOCAL_BIN: &str =
    "PATH=\"$HOME/.local/bin:$PATH\"; FROM_PROFILE=yes; export PATH FROM_PROFILE\n";

#[test]
fn k10_a_login_bash_reads_its_files_first_and_claude_gets_the_hooks() {
    let person = Person::with(
        "/bin/bash",
        &[
            (".profile", &format!("{LOCAL_BIN}. ~/.bashrc\n")),
            (".bashrc", "alias greet='echo hello'\nPS1='> '\n"),
        ],
    );
    let (settings, rest) = person.claude("claude 'two words' --model \"a'b\"");
    person.assert_ours(&settings);
    assert_eq!(rest, ["two words", "--model", "a'b"]);
    let environment = fs::read_to_string(person.home().join("environment")).unwrap();
    assert!(environment.contains("FROM_PROFILE=yes"));
    // Claude itself is the shell's child, known by its own pid.
    let pid: u32 = fs::read_to_string(person.home().join("pid"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    person.wait("the row has no process", || {
        let item = person.item();
        (item["pid"] == pid && item["hooks"] == true).then_some(())
    });
    person.leave();
    person.wait("the row keeps its process", || {
        (person.item()["pid"] == Value::Null).then_some(())
    });
    person.types("greet; alias claude; type -t claude; echo path=$PATH; set -o | grep posix");
    let screen = person.wait("no answer", || {
        let screen = person.screen();
        screen.contains("posix").then_some(screen)
    });
    assert!(screen.contains("\nhello\n"), "{screen}");
    assert!(!screen.contains("shell/bin"), "{screen}");
}

#[test]
fn k10_bash_honours_aliases_and_functions() {
    let person = Person::with(
        "/bin/bash",
        &[
            (".bash_profile", LOCAL_BIN),
            (".profile", "FROM_PROFILE=wrong\n"),
        ],
    );
    for (setup, expected) in [
        ("alias claude='claude --verbose'", vec!["--verbose", "x"]),
        ("alias claude=~/.local/bin/claude", vec!["x"]),
        (
            "alias claude='FOO=1 ~/.local/bin/claude --verbose'",
            vec!["--verbose", "x"],
        ),
        (
            "claude() { command claude --from-function \"$@\"; }",
            vec!["--from-function", "x"],
        ),
    ] {
        let profile = format!("{LOCAL_BIN}shopt -s expand_aliases\n{setup}\n");
        fs::write(person.home().join(".bash_profile"), profile).unwrap();
        person.types("exec $BASH --rcfile \"$PURPLEMUX_HOME/shell/bash.rc\"");
        let (settings, rest) = person.claude("claude x");
        person.assert_ours(&settings);
        assert_eq!(rest, expected, "{setup}");
        person.leave();
    }
}

#[test]
fn k10_zsh_reads_its_files_first_and_claude_gets_the_hooks() {
    let person = Person::with(
        "/usr/bin/zsh",
        &[
            (".zshenv", "export ORDER=zshenv:${ZDOTDIR-none}\n"),
            (".zprofile", &format!("{LOCAL_BIN}ORDER=$ORDER,zprofile\n")),
            (
                ".zshrc",
                "ORDER=$ORDER,zshrc; unsetopt PROMPT_SP; PS1='> '\n",
            ),
            (".zlogin", "ORDER=$ORDER,zlogin\n"),
        ],
    );
    let (settings, rest) = person.claude("claude 'two words'");
    person.assert_ours(&settings);
    assert_eq!(rest, ["two words"]);
    let environment = fs::read_to_string(person.home().join("environment")).unwrap();
    assert!(
        environment.contains("ORDER=zshenv:none,zprofile,zshrc,zlogin\n"),
        "{environment}"
    );
    assert!(!environment.contains("ZDOTDIR="), "{environment}");
    assert!(!environment.contains("shell/bin"), "{environment}");
    person.leave();
}

#[test]
fn k10_zsh_honours_aliases_and_functions() {
    let person = Person::with("/usr/bin/zsh", &[(".zprofile", LOCAL_BIN)]);
    for (setup, expected) in [
        ("alias claude='claude --verbose'", vec!["--verbose", "x"]),
        ("alias claude=~/.local/bin/claude", vec!["x"]),
        (
            "claude() { command claude --from-function \"$@\" }",
            vec!["--from-function", "x"],
        ),
    ] {
        fs::write(person.home().join(".zshrc"), format!("{setup}\n")).unwrap();
        person.types("ZDOTDIR=$PURPLEMUX_HOME/shell/zsh exec zsh -l");
        let (settings, rest) = person.claude("claude x");
        person.assert_ours(&settings);
        assert_eq!(rest, expected, "{setup}");
        person.leave();
    }
}

#[test]
fn k10_fish_honours_its_files_aliases_and_functions() {
    let config = ".config/fish/config.fish";
    let path = "set -gx PATH ~/.local/bin $PATH\nset -gx FROM_CONFIG yes\n";
    let person = Person::with("/usr/bin/fish", &[(config, path)]);
    for (setup, expected) in [
        ("", vec!["x"]),
        ("alias claude='claude --verbose'", vec!["--verbose", "x"]),
        ("alias claude=~/.local/bin/claude", vec!["x"]),
        (
            "function claude; command claude --from-function $argv; end",
            vec!["--from-function", "x"],
        ),
    ] {
        fs::write(person.home().join(config), format!("{path}{setup}\n")).unwrap();
        person.types("exec fish -l -C \"source $PURPLEMUX_HOME/shell/fish.fish\"");
        let (settings, rest) = person.claude("claude x");
        person.assert_ours(&settings);
        assert_eq!(rest, expected, "{setup}");
        let environment = fs::read_to_string(person.home().join("environment")).unwrap();
        assert!(environment.contains("FROM_CONFIG=yes"), "{environment}");
        assert!(!environment.contains("shell/bin"), "{environment}");
        person.leave();
    }
}

#[test]
fn k09_settings_of_theirs_and_ours_both_hold() {
    let person = Person::with("/bin/bash", &[(".profile", LOCAL_BIN)]);
    let theirs =
        r#"{"model":"m","hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    fs::write(person.home().join("x.json"), theirs).unwrap();
    for line in [
        "claude --settings x.json say",
        "claude --settings=x.json say",
        "claude --settings /nowhere.json --settings x.json say",
        &format!("claude say --settings '{theirs}'"),
    ] {
        let (settings, rest) = person.claude(line);
        assert_eq!(rest, ["say"], "{line}");
        let mode = fs::metadata(&settings).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", settings.display());
        let merged = read(&settings);
        assert_eq!(merged["model"], "m", "{line}");
        let stop = merged["hooks"]["Stop"].as_array().unwrap();
        assert_eq!(stop.len(), 2, "{line}");
        assert_eq!(stop[0]["hooks"][0]["command"], "true");
        assert_eq!(merged["hooks"].as_object().unwrap().len(), 17);
        person.leave();
        person.wait("the merged file stays", || {
            (!settings.exists()).then_some(())
        });
    }
}

#[test]
fn k09_what_starts_no_session_or_cannot_be_merged_passes_as_it_was_typed() {
    let person = Person::with("/bin/bash", &[(".profile", LOCAL_BIN)]);
    fs::write(person.home().join("broken.json"), "{").unwrap();
    for (line, expected) in [
        ("claude mcp list", vec!["mcp", "list"]),
        (
            "claude --settings broken.json a",
            vec!["--settings", "broken.json", "a"],
        ),
        (
            "claude --settings '{broken' a",
            vec!["--settings", "{broken", "a"],
        ),
        (
            "claude --settings /nowhere.json",
            vec!["--settings", "/nowhere.json"],
        ),
    ] {
        person.types(line);
        assert_eq!(person.started(), expected, "{line}");
        if line.contains("broken.json") {
            person.wait("the row claims to have hooks", || {
                let item = person.item();
                (item["pid"] != Value::Null && item["hooks"] == false).then_some(())
            });
        }
        person.leave();
    }
    person.types("claude --version");
    person.wait("no version", || {
        person
            .screen()
            .contains("2.1.332 (Claude Code)")
            .then_some(())
    });
}

#[test]
fn a_directory_s_name_is_a_name_and_never_a_command() {
    let person = Person::with("/bin/bash", &[]);
    let odd = person.home().join("odd");
    for name in [
        "p #(touch ~/pwned) q",
        "#S",
        "#{session_name}",
        "#{pid}",
        "a#",
        "##",
        "#[bold]x",
        "##[y",
        "###z",
        "#,a#}b",
        "%H:%M",
        "$(touch pwned) `touch pwned`",
        "'\"; display-message x; {",
        "日本 ＃ #日",
    ] {
        let dir = odd.join(name);
        fs::create_dir_all(&dir).unwrap();
        let cwd = dir.to_str().unwrap();
        let made = person
            .server
            .json(&["tab", "create", "--json", "--cwd", cwd]);
        let socket = made["tmux"]["socket"].as_str().unwrap().to_owned();
        let tab = made["tab"].as_str().unwrap().to_owned();
        let place = dir.canonicalize().unwrap();
        // Between fork and chdir it is where tmux is.
        person.wait(&format!("no shell in {name}"), || {
            let output = std::process::Command::new("tmux")
                .args(["-S", &socket, "-u", "display-message", "-p", "-t", &tab])
                .arg("#{pane_pid}")
                .output()
                .unwrap();
            let pid = String::from_utf8(output.stdout).unwrap();
            let cwd = fs::read_link(format!("/proc/{}/cwd", pid.trim())).ok()?;
            (cwd == place).then_some(())
        });
        person.server.cli_ok(&["tab", "close", &tab]);
    }
    for dir in [person.home(), odd, PathBuf::from("/")] {
        assert!(!dir.join("pwned").exists());
    }
}
