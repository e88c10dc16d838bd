//! The throw-away home: everything Claude Code and purplemux may read or write in a test, under one directory of
//! its own, seeded so that no dialog of Claude's blocks. Removed when dropped.
//!
//! Must never hold anything of the person's: the key is made up and the only address in it is on loopback.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clock::until;

/// How long processes are given to end before they are asked more firmly.
const GRACE: Duration = Duration::from_secs(3);

/// Made up. Claude asks about a key unless its last 20 characters are approved in `.claude.json`.
const KEY: &str = "sk-ant-dummy-lab-0000000000000000000000000000-labkey00";

/// The version pinned in `e2e/package.json`; the onboarding is skipped for it.
pub const CLAUDE_VERSION: &str = "2.1.332";

/// Directories that are trusted from the start; one for each tab that a test may want.
const PROJECTS: usize = 12;

/// As Debian's: puts `~/.local/bin` in front, which a login shell does after anything that we could set before it.
const PROFILE: &str = r#"# ~/.profile: executed by the command interpreter for login shells.
if [ -n "$BASH_VERSION" ] && [ -f "$HOME/.bashrc" ]; then
    . "$HOME/.bashrc"
fi
if [ -d "$HOME/.local/bin" ]; then
    PATH="$HOME/.local/bin:$PATH"
fi
export LAB_PROFILE=read
"#;

/// Shows that the person's own file ran, and gives the tests a prompt that they can wait for.
const BASHRC: &str = r#"case $- in *i*) ;; *) return ;; esac
PS1='lab\$ '
unset PROMPT_COMMAND
export LAB_BASHRC=read
"#;

/// A seeded home.
pub struct Home {
    root: TempDir,
}

impl Home {
    /// Makes one whose Claude, the pinned one, talks to `api_url`.
    pub fn new(api_url: &str) -> anyhow::Result<Self> {
        Self::with(api_url, &Claude::pinned()?)
    }

    /// Makes one with this Claude.
    pub fn with(api_url: &str, claude: &Claude) -> anyhow::Result<Self> {
        // Short, because the path of a unix socket inside it may have 107 bytes at most.
        let root = tempfile::Builder::new()
            .prefix("pmx-lab-")
            .tempdir_in("/tmp")
            .context("make a home")?;
        let home = Self { root };
        home.seed(api_url, claude)?;
        Ok(home)
    }

    fn seed(&self, api_url: &str, claude: &Claude) -> anyhow::Result<()> {
        let dir = self.dir();
        fs::create_dir_all(dir.join(".local/bin"))?;
        symlink(&claude.program, dir.join(".local/bin/claude"))?;
        fs::write(dir.join(".profile"), PROFILE)?;
        fs::write(dir.join(".bashrc"), BASHRC)?;
        // Made beforehand, so that it can be watched from the first moment; Claude makes it with the same mode.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.sessions())?;
        let mut projects = serde_json::Map::new();
        for number in 1..=PROJECTS {
            let project = self.project(number);
            fs::create_dir_all(&project)?;
            fs::write(project.join("notes.txt"), "lab notes\n")?;
            projects.insert(project.display().to_string(), trusted());
        }
        write_json(&dir.join(".claude.json"), &state(projects, claude))?;
        write_json(
            &dir.join(".claude/settings.json"),
            &settings(api_url, claude),
        )
    }

    /// Makes another directory of Claude's in the home, for a `CLAUDE_CONFIG_DIR`, as seeded as the first.
    pub fn config_dir(&self, name: &str) -> anyhow::Result<PathBuf> {
        let dir = self.dir().join(name);
        fs::create_dir(&dir).with_context(|| format!("make {}", dir.display()))?;
        // There the state lies inside of the directory, and not beside it.
        for (from, to) in [
            (".claude.json", ".claude.json"),
            (".claude/settings.json", "settings.json"),
        ] {
            fs::copy(self.dir().join(from), dir.join(to))?;
        }
        Ok(dir)
    }

    /// Changes Claude's settings of this home, as an editor would: by another file in their place.
    pub fn edit_settings(&self, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
        let path = self.dir().join(".claude/settings.json");
        let mut settings = serde_json::from_str(&fs::read_to_string(&path)?)?;
        change(&mut settings);
        let next = path.with_extension("next");
        write_json(&next, &settings)?;
        fs::rename(next, path).context("put the changed settings in place")
    }

    /// Every process that lives in this home, or in a directory of it that a test made another home: it stands
    /// in their environment, and in no other's.
    pub fn processes(&self) -> Vec<Pid> {
        let wanted = format!("HOME={}", self.dir().display()).into_bytes();
        let within = |entry: &[u8]| {
            let rest = entry.strip_prefix(wanted.as_slice());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(within)
        };
        pids.filter(ours).filter_map(Pid::from_raw).collect()
    }

    /// Everything lives under it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// `$HOME`.
    pub fn dir(&self) -> PathBuf {
        self.root().join("home")
    }

    /// `$PURPLEMUX_HOME`; made by the server.
    pub fn product(&self) -> PathBuf {
        self.root().join("pmx")
    }

    /// Where Claude keeps its status files.
    pub fn sessions(&self) -> PathBuf {
        self.dir().join(".claude/sessions")
    }

    /// One of the trusted directories, counted from 1.
    pub fn project(&self, number: usize) -> PathBuf {
        self.dir().join(format!("proj-{number}"))
    }

    /// The whole environment for the server, its commands and whatever starts Claude directly.
    pub fn env(&self) -> Vec<(String, String)> {
        let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
        let pairs = [
            ("HOME", self.dir().display().to_string()),
            ("PURPLEMUX_HOME", self.product().display().to_string()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("USER", user.clone()),
            ("LOGNAME", user),
            ("SHELL", "/bin/bash".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            // The socket goes with the home; in tmux's usual folder it would stay behind.
            ("TMUX_TMPDIR", self.root().display().to_string()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

impl Drop for Home {
    /// Ends what still lives in the home: tabs outlive their server, and a process that writes its last words
    /// would put files back while they are removed.
    fn drop(&mut self) {
        for signal in [Signal::TERM, Signal::HUP, Signal::KILL] {
            for pid in self.processes() {
                // It fails only for one that has just ended.
                kill_process(pid, signal).ok();
            }
            if until(GRACE, || self.processes().is_empty().then_some(())).is_some() {
                return;
            }
        }
    }
}

/// What Claude remembers of a person who has used it before.
fn state(projects: serde_json::Map<String, Value>, claude: &Claude) -> Value {
    json!({
        "hasCompletedOnboarding": true,
        "lastOnboardingVersion": claude.version,
        "theme": "dark",
        "numStartups": 50,
        "autoUpdates": false,
        // Claude offers, once, to make its auto mode the default when another one is set.
        "hasSeenAutoDefaultNudge": true,
        "hasSeenAutoDefaultNotice": true,
        "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        "projects": projects,
    })
}

/// The tabs of purplemux have a clean environment: what Claude needs to know comes from its own settings.
fn settings(api_url: &str, claude: &Claude) -> Value {
    json!({
        "env": {
            "ANTHROPIC_BASE_URL": api_url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        "permissions": {"defaultMode": claude.permission_mode()},
    })
}

fn trusted() -> Value {
    json!({"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true, "projectOnboardingSeenCount": 9,
        "allowedTools": []})
}

fn write_json(path: &Path, value: &Value) -> anyhow::Result<()> {
    fs::write(path, value.to_string()).with_context(|| format!("write {}", path.display()))
}

/// The `e2e` directory of the repository.
pub fn e2e_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the crate lies in e2e/lab")
        .to_owned()
}

/// A Claude Code to be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claude {
    /// Three numbers.
    pub version: String,
    /// Its own binary, or the script that node runs.
    pub program: PathBuf,
}

/// The first version tested here that knows the mode `manual`; for 2.1.128 it is an error (measured).
const MANUAL_SINCE: [u32; 3] = [2, 1, 200];

/// The first version with a `status` in its own file, of those tested here (measured).
const STATUS_SINCE: [u32; 3] = [2, 1, 128];

impl Claude {
    /// The newest that is tested: [`CLAUDE_VERSION`].
    pub fn pinned() -> anyhow::Result<Self> {
        Ok(Self {
            version: CLAUDE_VERSION.to_owned(),
            program: claude_binary()?,
        })
    }

    /// A version from before Claude wrote its status into its file, from `e2e/package.json`.
    pub fn without_status() -> anyhow::Result<Self> {
        Self::in_package(&e2e_dir().join("node_modules/claude-code-without-status"))
    }

    /// The one that was installed with npm in this directory.
    pub fn installed_in(dir: &Path) -> anyhow::Result<Self> {
        let packages = dir.join("node_modules/@anthropic-ai");
        let own = packages.join(format!("claude-code-{}", platform()));
        // From about 2.1.113 on the package is a launcher of this platform's binary.
        Self::in_package(&if own.is_dir() {
            own
        } else {
            packages.join("claude-code")
        })
    }

    fn in_package(package: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(package.join("package.json"))
            .with_context(|| format!("{} is missing: run `npm ci` in e2e/", package.display()))?;
        let about: Value = serde_json::from_str(&text)?;
        let version = about["version"].as_str().context("a version")?.to_owned();
        let found = ["claude", "cli.js"]
            .into_iter()
            .map(|name| package.join(name))
            .find(|path| path.is_file());
        let program = found.with_context(|| format!("no program in {}", package.display()))?;
        Ok(Self { version, program })
    }

    /// Whether it writes `status` into its own file.
    pub fn has_status(&self) -> bool {
        self.numbers() >= STATUS_SINCE
    }

    /// Whether Claude's last words can be known: 2.1.31 has them neither in its Stop nor in a line of its
    /// transcript that is marked as the last one (measured).
    pub fn tells_last_words(&self) -> bool {
        self.numbers() != [2, 1, 31]
    }

    /// What asks before anything is done, in this version's word.
    pub fn permission_mode(&self) -> &'static str {
        if self.numbers() >= MANUAL_SINCE {
            "manual"
        } else {
            "default"
        }
    }

    fn numbers(&self) -> [u32; 3] {
        let mut numbers = self.version.split('.').map(|n| n.parse().unwrap_or(0));
        [(); 3].map(|()| numbers.next().unwrap_or(0))
    }
}

/// Of npm's names for platforms.
fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "linux-arm64"
    } else {
        "linux-x64"
    }
}

/// The pinned Claude Code: `$PURPLEMUX_CLAUDE`, else this platform's own binary under `e2e/node_modules`, because
/// npm may have skipped the step that would put it behind a launcher.
pub fn claude_binary() -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os("PURPLEMUX_CLAUDE") {
        return Ok(path.into());
    }
    let path = format!(
        "node_modules/@anthropic-ai/claude-code-{}/claude",
        platform()
    );
    let path = e2e_dir().join(path);
    ensure!(
        path.is_file(),
        "{} is missing: run `npm ci` in e2e/",
        path.display()
    );
    Ok(path)
}
