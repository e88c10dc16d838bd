//! `purplemux hooks install --global` and `uninstall --global`: the one place where the person's own settings
//! of Claude Code are written. What was there before comes back to the byte, whatever happens on the way.

#![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]
#![allow(
    clippy::disallowed_methods,
    reason = "it starts the program and writes settings while it runs"
)]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use support::{place, purplemux};

/// Laid out as nobody's program would, with hooks of the person's own on the same events.
const THEIRS: &str = r#"{
   "model" : "opus",
   "hooks": {
      "Stop": [ { "hooks": [ {"type": "command", "command": "notify-send 'done'"} ] } ],
      "PermissionRequest": [
        { "matcher": "Bash",
          "hooks": [{ "type": "command", "command": "./decide.sh", "timeout": 9 }] }
      ]
   },
   "statusLine": { "type": "command", "command": "~/.claude/line.sh" }
}

"#;

/// A person with a Claude Code of a version of their own, and Claude's directory.
struct Person {
    dir: tempfile::TempDir,
}

impl Person {
    fn new(version: &str) -> Self {
        let dir = place();
        let person = Self { dir };
        let bin = person.home().join(".local/bin");
        let versions = person.home().join(".local/share/claude/versions");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&versions).unwrap();
        let program = versions.join(version);
        fs::write(&program, "#!/bin/sh\nexit 9\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        symlink(&program, bin.join("claude")).unwrap();
        fs::create_dir(person.claude()).unwrap();
        person
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("person")
    }

    fn claude(&self) -> PathBuf {
        self.home().join(".claude")
    }

    fn file(&self) -> PathBuf {
        self.claude().join("settings.json")
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = purplemux(self.dir.path());
        // Nothing of this machine's may be found in its place.
        let path = format!("{}:/usr/bin:/bin", self.home().join(".local/bin").display());
        command.env("PATH", path).args(arguments);
        command
    }

    /// What it printed on either side, and its exit code.
    fn run(&self, arguments: &[&str]) -> (String, i32) {
        let output = self.command(arguments).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            String::from_utf8(said).unwrap(),
            output.status.code().unwrap(),
        )
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (said, code) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {said}");
        said
    }

    fn install(&self) -> String {
        self.ok(&["hooks", "install", "--global"])
    }

    fn uninstall(&self) -> String {
        self.ok(&["hooks", "uninstall", "--global"])
    }

    fn settings(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.file()).unwrap()).unwrap()
    }

    fn events(&self) -> Vec<String> {
        let script = format!("'{}/home/status-hook.sh' ", self.dir.path().display());
        let settings = self.settings();
        let hooks = settings["hooks"].as_object();
        let ours = |groups: &Value| {
            groups.as_array().unwrap().iter().any(|group| {
                let command = group["hooks"][0]["command"].as_str();
                command.is_some_and(|command| command.starts_with(&script))
            })
        };
        hooks
            .into_iter()
            .flatten()
            .filter(|(_, groups)| ours(groups))
            .map(|(event, _)| event.clone())
            .collect()
    }

    fn nothing_left(&self) {
        let left: Vec<_> = fs::read_dir(self.claude())
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name().into_string().unwrap())
            .filter(|name| name != "settings.json")
            .collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!self.dir.path().join("home/global").exists());
    }
}

#[test]
fn k03_every_settings_file_is_to_the_byte_what_it_was() {
    for text in [THEIRS, "{}", "{\n\t\"a\": 1\n}", " \n", ""] {
        let person = Person::new("2.1.332");
        fs::write(person.file(), text).unwrap();
        fs::set_permissions(person.file(), fs::Permissions::from_mode(0o640)).unwrap();
        let said = person.install();
        assert!(said.contains("2.1.332"), "{said}");
        assert_eq!(person.events().len(), 17);
        let with = fs::read(person.file()).unwrap();
        // Again changes nothing, and neither does what a server does at its start.
        assert!(person.install().contains("already"));
        assert_eq!(fs::read(person.file()).unwrap(), with);
        assert_eq!(
            fs::metadata(person.file()).unwrap().mode() & 0o777,
            0o640,
            "the mode is theirs"
        );
        person.uninstall();
        assert_eq!(fs::read_to_string(person.file()).unwrap(), text);
        assert_eq!(fs::metadata(person.file()).unwrap().mode() & 0o777, 0o640);
        person.nothing_left();
        assert!(person.uninstall().contains("None of our hooks"));
    }
}

#[test]
fn k03_theirs_stay_first_and_as_they_are_and_ours_decide_nothing() {
    let person = Person::new("2.1.332");
    fs::write(person.file(), THEIRS).unwrap();
    let before = person.settings();
    person.install();
    let after = person.settings();
    assert_eq!(after["model"], before["model"]);
    assert_eq!(after["statusLine"], before["statusLine"]);
    for event in ["Stop", "PermissionRequest"] {
        assert_eq!(after["hooks"][event][0], before["hooks"][event][0]);
        assert_eq!(after["hooks"][event].as_array().unwrap().len(), 2);
    }
    // A decision is made by what a hook prints, and by exit code 2.
    let command = after["hooks"]["PermissionRequest"][1]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    let mut ours = person.command(&[]);
    let environment: Vec<_> = ours
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    let output = std::process::Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    ours.arg("--version");
}

#[test]
fn k03_what_was_changed_meanwhile_stays_and_only_ours_go() {
    let person = Person::new("2.1.332");
    fs::write(person.file(), THEIRS).unwrap();
    person.install();
    // As Claude Code does it: everything written anew.
    let mut settings = person.settings();
    settings["theme"] = json!("light");
    let own = json!({ "hooks": [{ "type": "command", "command": "mine" }] });
    let list = settings["hooks"]["SessionEnd"].as_array_mut().unwrap();
    list.push(own.clone());
    fs::write(person.file(), settings.to_string()).unwrap();
    let said = person.uninstall();
    assert!(said.contains("has stayed"), "{said}");
    let mut wanted: Value = serde_json::from_str(THEIRS).unwrap();
    wanted["theme"] = json!("light");
    wanted["hooks"]["SessionEnd"] = json!([own]);
    assert_eq!(person.settings(), wanted);
    person.nothing_left();
}

#[test]
fn k03_every_directory_that_is_named_is_meant() {
    let person = Person::new("2.1.332");
    let other = person.home().join("other claude");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("settings.json"), THEIRS).unwrap();
    fs::write(person.file(), "{}").unwrap();
    let run = |action: &str| {
        let mut command = person.command(&["hooks", action, "--global", "--json"]);
        let output = command.env("CLAUDE_CONFIG_DIR", &other).output().unwrap();
        assert!(output.status.success());
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let told = run("install");
    assert_eq!(told.as_array().unwrap().len(), 2, "{told}");
    assert!(told[0]["done"] == "installed" && told[1]["done"] == "installed");
    assert!(
        fs::read_to_string(other.join("settings.json"))
            .unwrap()
            .contains("status-hook.sh")
    );
    // Taken out wherever they were put, whatever the environment says now.
    person.uninstall();
    assert_eq!(
        fs::read_to_string(other.join("settings.json")).unwrap(),
        THEIRS
    );
    assert_eq!(fs::read_to_string(person.file()).unwrap(), "{}");

    let named = other.to_str().unwrap();
    person.ok(&["hooks", "install", "--global", "--config-dir", named]);
    assert_eq!(fs::read_to_string(person.file()).unwrap(), "{}");
    person.ok(&["hooks", "uninstall", "--global", "--config-dir", named]);
    assert_eq!(
        fs::read_to_string(other.join("settings.json")).unwrap(),
        THEIRS
    );
    person.nothing_left();
}

#[test]
fn k03_doctor_and_show_tell_how_it_stands() {
    let person = Person::new("2.1.332");
    let doctor = || -> Value {
        let (said, _) = person.run(&["doctor", "--json"]);
        let said: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
        let checks = said["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == "global hooks");
        found.unwrap().clone()
    };
    assert!(doctor()["said"].as_str().unwrap().contains("not installed"));
    person.install();
    let told = doctor();
    assert!(
        told["verdict"] == "ok" && told["said"].as_str().unwrap().contains("17 in"),
        "{told}"
    );
    assert!(
        person
            .ok(&["hooks", "show"])
            .contains("settings.json as well")
    );
    // An older Claude Code in its place would stop at every start.
    let older = person.home().join(".local/share/claude/versions/2.1.31");
    fs::copy(person.home().join(".local/bin/claude"), &older).unwrap();
    fs::remove_file(person.home().join(".local/bin/claude")).unwrap();
    symlink(&older, person.home().join(".local/bin/claude")).unwrap();
    let told = doctor();
    assert!(
        told["verdict"] == "fail" && told["said"].as_str().unwrap().contains("2.1.31"),
        "{told}"
    );
    person.install();
    assert!(!person.events().contains(&"StopFailure".to_owned()));
    assert_eq!(doctor()["verdict"], "ok");
    fs::write(person.file(), "{\"disableAllHooks\": true}").unwrap();
    assert!(
        doctor()["said"]
            .as_str()
            .unwrap()
            .contains("taken our hooks out")
    );
    person.install();
    assert!(
        doctor()["said"]
            .as_str()
            .unwrap()
            .contains("disableAllHooks")
    );
    person.uninstall();
    assert_eq!(
        fs::read_to_string(person.file()).unwrap(),
        "{\"disableAllHooks\": true}"
    );
}

#[test]
fn k03_without_global_nothing_is_touched() {
    let person = Person::new("2.1.332");
    for action in ["install", "uninstall"] {
        let (said, code) = person.run(&["hooks", action]);
        assert!(code == 2 && said.contains("--global"), "{said}");
    }
    assert!(!person.file().exists());
}

#[test]
fn k06_a_malformed_file_is_refused_with_what_to_do() {
    for (text, why) in [
        ("{\"a\": 1,}\n", "no JSON"),
        ("[]", "no JSON object"),
        ("{\"hooks\": []}", "hooks"),
        ("{\"hooks\": {\"Stop\": {}}}", "Stop"),
        ("{\"hooks\": {}, \"hooks\": {}}", "twice"),
        ("// mine\n{}", "no JSON"),
    ] {
        let person = Person::new("2.1.332");
        fs::write(person.file(), text).unwrap();
        let (said, code) = person.run(&["hooks", "install", "--global"]);
        assert!(
            code == 1 && said.contains(why) && said.contains("Mend it"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(person.file()).unwrap(), text);
        person.nothing_left();
    }
    let person = Person::new("2.1.332");
    fs::write(person.file(), b"{\"a\": \"\xff\"}").unwrap();
    let (said, code) = person.run(&["hooks", "install", "--global"]);
    assert!(code == 1 && said.contains("UTF-8"), "{said}");
    // Malformed since: ours can't be told from theirs, and the way out stays open.
    fs::write(person.file(), "{}").unwrap();
    person.install();
    let with = fs::read_to_string(person.file()).unwrap();
    fs::write(person.file(), with.replacen('{', "", 1)).unwrap();
    let (said, code) = person.run(&["hooks", "uninstall", "--global"]);
    assert!(code == 1 && said.contains("Mend it"), "{said}");
    fs::write(person.file(), with).unwrap();
    person.uninstall();
    assert_eq!(fs::read_to_string(person.file()).unwrap(), "{}");
}

#[test]
fn k06_a_read_only_or_shared_file_is_left_alone() {
    let person = Person::new("2.1.332");
    fs::write(person.file(), THEIRS).unwrap();
    let refused = |what: &str| {
        let (said, code) = person.run(&["hooks", "install", "--global"]);
        assert!(code == 1 && said.contains(what), "{said}");
        assert!(said.contains("purplemux hooks show"), "{said}");
        assert_eq!(fs::read_to_string(person.file()).unwrap(), THEIRS);
    };
    fs::set_permissions(person.file(), fs::Permissions::from_mode(0o444)).unwrap();
    refused("read-only");
    fs::set_permissions(person.file(), fs::Permissions::from_mode(0o644)).unwrap();
    let second = person.home().join("second name");
    fs::hard_link(person.file(), &second).unwrap();
    refused("hard links");
    fs::remove_file(second).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(person.file(), Some(65534), None).unwrap();
        refused("another user");
    }
}

#[test]
fn k06_a_link_into_a_dotfiles_folder_stays_a_link() {
    let person = Person::new("2.1.332");
    let dotfiles = person.home().join("dotfiles");
    fs::create_dir(&dotfiles).unwrap();
    let real = dotfiles.join("claude.json");
    fs::write(&real, THEIRS).unwrap();
    symlink("../dotfiles/claude.json", person.file()).unwrap();
    person.install();
    let link = || fs::read_link(person.file()).unwrap();
    assert_eq!(link(), Path::new("../dotfiles/claude.json"));
    assert!(
        fs::read_to_string(&real)
            .unwrap()
            .contains("status-hook.sh")
    );
    person.uninstall();
    assert_eq!(link(), Path::new("../dotfiles/claude.json"));
    assert_eq!(fs::read_to_string(&real).unwrap(), THEIRS);
    assert_eq!(
        fs::read_dir(&dotfiles).unwrap().count(),
        1,
        "nothing beside it"
    );

    // Claude's whole directory may be one.
    let moved = dotfiles.join("claude");
    fs::rename(person.claude(), &moved).unwrap();
    fs::remove_file(moved.join("settings.json")).unwrap();
    fs::write(moved.join("settings.json"), THEIRS).unwrap();
    symlink(&moved, person.claude()).unwrap();
    person.install();
    person.uninstall();
    assert_eq!(
        fs::read_to_string(moved.join("settings.json")).unwrap(),
        THEIRS
    );
    assert!(fs::symlink_metadata(person.claude()).unwrap().is_symlink());

    // A link to nothing is not guessed at.
    fs::remove_file(moved.join("settings.json")).unwrap();
    symlink("/nowhere/settings.json", moved.join("settings.json")).unwrap();
    let (said, code) = person.run(&["hooks", "install", "--global"]);
    assert!(code == 1 && said.contains("mend the link"), "{said}");
}

#[test]
fn k06_what_is_missing_is_made_or_named() {
    let person = Person::new("2.1.332");
    person.install();
    assert_eq!(person.events().len(), 17);
    assert_eq!(fs::metadata(person.file()).unwrap().mode() & 0o777, 0o600);
    person.uninstall();
    assert!(!person.file().exists());
    person.nothing_left();
    // Removed by the person while ours were in it.
    person.install();
    fs::remove_file(person.file()).unwrap();
    person.uninstall();
    assert!(!person.file().exists());
    person.nothing_left();
    // Something else was put into the file that we made: it stays.
    person.install();
    let mut settings = person.settings();
    settings["theme"] = json!("dark");
    fs::write(person.file(), settings.to_string()).unwrap();
    person.uninstall();
    assert_eq!(person.settings(), json!({ "theme": "dark" }));

    fs::remove_dir_all(person.claude()).unwrap();
    let (said, code) = person.run(&["hooks", "install", "--global"]);
    assert!(code == 1 && said.contains("start claude once"), "{said}");
    fs::create_dir(person.claude()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        person.file(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let (said, code) = person.run(&["hooks", "install", "--global"]);
    assert!(code == 1 && said.contains("no regular file"), "{said}");
}

#[test]
fn k06_an_edit_at_the_same_moment_survives_and_nobody_reads_half_a_file() {
    let person = Person::new("2.1.332");
    let write = |number: u64, in_place: bool| {
        let mut settings: Value = serde_json::from_str(THEIRS).unwrap();
        settings["edit"] = json!(number);
        let text = format!("{settings:#}\n");
        if in_place {
            fs::write(person.file(), text).unwrap();
        } else {
            let beside = person.claude().join("edit.tmp");
            fs::write(&beside, text).unwrap();
            fs::rename(beside, person.file()).unwrap();
        }
    };
    write(0, false);
    let stop = AtomicBool::new(false);
    let run = |action: &str| -> Child {
        let mut command = person.command(&["hooks", action, "--global"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    thread::scope(|scope| {
        // Whoever reads it by its name reads the whole of one version.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let text = fs::read_to_string(person.file()).unwrap();
                serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("half: {text}"));
            }
        });
        for number in 1..=8 {
            let action = if number % 2 == 1 {
                "install"
            } else {
                "uninstall"
            };
            let mut child = run(action);
            // Written by an editor until the command has ended.
            while child.try_wait().unwrap().is_none() {
                write(number, false);
                thread::sleep(Duration::from_millis(2));
            }
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                output.status.success() || said.contains("keeps writing"),
                "{said}"
            );
            assert_eq!(person.settings()["edit"], json!(number), "the edit is lost");
        }
        stop.store(true, Ordering::Relaxed);
    });
    // An editor that writes in place, once, at any moment.
    for number in 9..=24 {
        let action = if number % 2 == 1 {
            "install"
        } else {
            "uninstall"
        };
        let child = run(action);
        write(number, true);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(person.settings()["edit"], json!(number), "the edit is lost");
    }
    person.uninstall();
    let mut wanted: Value = serde_json::from_str(THEIRS).unwrap();
    wanted["edit"] = json!(24);
    assert_eq!(person.settings(), wanted);
    person.nothing_left();
}
