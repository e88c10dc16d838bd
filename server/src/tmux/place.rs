//! Where our tmux server is: its socket, its configuration file and the environment it is started with.
//! The default home has a name that a person can type (`tmux -L purple`); any other home has its own.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};

use crate::home::{SOCKET_PATH_BYTES_MAX, hex, write_atomic};
use crate::hooks;
use crate::tmux::environment;

/// One tmux server of ours.
#[derive(Debug)]
pub struct Place {
    /// `$PURPLEMUX_HOME`.
    pub home: PathBuf,
    /// The environment of the server, of every tab and of every client.
    pub environment: Vec<(OsString, OsString)>,
    socket: PathBuf,
}

impl Place {
    /// The server that belongs to a home.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        let name = if is_default(home) {
            "purple".to_owned()
        } else {
            let hash = hex(&Sha256::digest(home.as_os_str().as_bytes()));
            format!("purple-{}", &hash[..8])
        };
        Self {
            home: home.to_owned(),
            environment: environment::clean(),
            socket: socket(&name),
        }
    }

    /// The socket's path.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The arguments that lead any tmux client to this server.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        vec![
            "-f".into(),
            self.configuration().into(),
            "-S".into(),
            self.socket.clone().into(),
        ]
    }

    /// The file that the server is set up with.
    #[must_use]
    pub fn configuration(&self) -> PathBuf {
        self.home.join("tmux.conf")
    }

    /// What a server says of itself (`#{@purplemux-conf}`) that was set up with this very configuration.
    #[must_use]
    pub fn set_up(&self) -> String {
        mark(&self.text())
    }

    fn text(&self) -> String {
        let shell = hooks::shell::launch(&self.home, &environment::shell());
        configuration(&shell)
    }

    /// Writes the configuration and makes the socket's directory, as `tmux -L` would.
    ///
    /// # Errors
    /// The home can't be written, or the directory belongs to somebody else.
    pub fn prepare(&self) -> anyhow::Result<()> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        let text = self.text();
        let text = format!("{text}\nset -s @purplemux-conf {}\n", mark(&text));
        write_atomic(&self.configuration(), text.as_bytes(), 0o600)?;
        if let Some(folder) = self.socket.parent() {
            match std::fs::DirBuilder::new().mode(0o700).create(folder) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
            let meta = std::fs::symlink_metadata(folder)?;
            anyhow::ensure!(
                meta.is_dir() && meta.uid() == geteuid().as_raw(),
                "{} is not a directory of yours; tmux can't use it.",
                folder.display()
            );
        }
        Ok(())
    }
}

/// Stands for a configuration's text.
fn mark(text: &str) -> String {
    let hash = hex(&Sha256::digest(text.as_bytes()));
    hash[..8].to_owned()
}

fn is_default(home: &Path) -> bool {
    std::env::home_dir()
        .map(|dir| dir.join(".purplemux"))
        .map(|dir| std::fs::canonicalize(&dir).unwrap_or(dir))
        .is_some_and(|default| default == home)
}

/// Where tmux itself puts the socket of `-L name`; where that is too long for a socket, the runtime
/// directory.
fn socket(name: &str) -> PathBuf {
    let folder = |variable: &str| {
        std::env::var_os(variable)
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
    };
    let base = folder("TMUX_TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    let base = std::fs::canonicalize(&base).unwrap_or(base);
    let usual = base.join(format!("tmux-{}", geteuid().as_raw())).join(name);
    if usual.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return usual;
    }
    folder("XDG_RUNTIME_DIR")
        .unwrap_or_else(|| PathBuf::from("/tmp"))
        .join(format!("tmux-{}", geteuid().as_raw()))
        .join(name)
}

/// Our tmux.conf. Read when the server starts, and by one that was started without it.
fn configuration(shell: &hooks::shell::Launch) -> String {
    let default_command = shell
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={}", hooks::shell::quote(value)))
        .chain(["exec".to_owned()])
        .chain(shell.command.iter().map(|word| hooks::shell::quote(word)))
        .collect::<Vec<String>>()
        .join(" ");
    let quote = |text: &str| purplemux_wire::tmux::quote(text).unwrap_or_default();
    format!(
        r#"# Written by purplemux at every start; changes are lost.

# The page has its own bar of tabs.
set -g status off
# No key belongs to us: all of them are the program's.
set -g prefix None
set -g prefix2 None
unbind-key -a -T prefix
# Menus that would be drawn over the program.
unbind-key -q -T root MouseDown3Pane
unbind-key -q -T root M-MouseDown3Pane
unbind-key -q -T root MouseDown3Status
unbind-key -q -T root MouseDown3StatusLeft
unbind-key -q -T root MouseDown3StatusRight

# Before the first window is made: a window keeps the limit it was made with.
set -g history-limit 50000
set -s escape-time 0
set -s focus-events on
set -s extended-keys on
# A program that wants the mouse gets it; otherwise it is the page's, for selecting and for scrolling back.
set -g mouse off
set -g default-terminal tmux-256color
set -g window-size latest
set -g exit-empty off
set -g destroy-unattached off
set -g remain-on-exit off
set -g visual-bell off
set -g bell-action any
set -g monitor-activity off
set -g display-time 1

# What a program writes to the clipboard is passed on to the page, which asks. tmux would keep it as well and answer
# the next program's question with it: so it is forgotten at once.
set -s set-clipboard on
set -gq pane-set-clipboard[0] delete-buffer
set -gq allow-passthrough off

# The pair that the page reads; as the window's name it also tells the control client of every change.
set -g set-titles on
set -g set-titles-string '#{{pane_current_command}}|#{{pane_current_path}}'
set -g automatic-rename on
set -g automatic-rename-format '#{{pane_current_command}}|#{{pane_current_path}}'
set -g allow-rename off

# A terminal that attaches brings nothing of its own into the tabs.
set -g update-environment ''
set -g default-shell {}
set -g default-command {}
"#,
        quote(&shell.program),
        quote(&default_command),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_home_has_another_server() {
        let a = Place::of(Path::new("/some/home/a"));
        let b = Place::of(Path::new("/some/home/b"));
        assert_ne!(a.socket(), b.socket());
        let name = a.socket().file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("purple-") && name.len() == "purple-".len() + 8);
    }
}
