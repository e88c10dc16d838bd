//! The systemd scope that our tmux server is started in when purplemux itself is a service. Stopping or
//! restarting a service ends every process in its control group, and tabs must outlive us.
//!
//! Decides only what the command line begins with; starts nothing itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::hooks::version::find_on_path;
use crate::tmux::Place;

/// A scope to start a program in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    systemd_run: PathBuf,
    unit: String,
}

/// What is known about where we run.
struct Here<'a> {
    /// `/proc/self/cgroup`.
    cgroup: &'a str,
    /// `$PATH` of what is started.
    path: &'a std::ffi::OsStr,
    /// `$XDG_RUNTIME_DIR`, where the user's own manager listens.
    runtime: Option<&'a Path>,
}

/// The scope for a server that is about to be started; `None` if it runs already, or there is nothing to leave
/// or nobody to ask for a scope.
#[must_use]
pub fn of(place: &Place) -> Option<Scope> {
    if std::os::unix::net::UnixStream::connect(place.socket()).is_ok() {
        return None;
    }
    let variable = |name: &str| {
        let mut environment = place.environment.iter();
        environment
            .find(|(there, _)| there == name)
            .map(|(_, value)| value)
    };
    let cgroup = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    choose(
        &Here {
            cgroup: &cgroup,
            path: variable("PATH")?,
            runtime: variable("XDG_RUNTIME_DIR").map(Path::new),
        },
        place,
    )
}

fn choose(here: &Here<'_>, place: &Place) -> Option<Scope> {
    if !in_service(here.cgroup) {
        return None;
    }
    // Where the user's own manager takes orders; without one nobody could make the scope.
    let manager = here.runtime?.join("systemd/private");
    if !manager.exists() {
        return None;
    }
    let name = place.socket().file_name()?.to_string_lossy().into_owned();
    Some(Scope {
        systemd_run: find_on_path("systemd-run", here.path, None)?,
        unit: format!("purplemux-tmux-{name}.scope"),
    })
}

/// Whether a process with this `/proc/PID/cgroup` is in a service, and not in a login's or a terminal's scope.
fn in_service(cgroup: &str) -> bool {
    cgroup.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next().unwrap_or_default();
        let group = fields.next().unwrap_or_default();
        let last = group.rsplit('/').find(|part| !part.is_empty());
        matches!(controllers, "" | "name=systemd")
            && last.is_some_and(|last| last.ends_with(".service"))
    })
}

impl Scope {
    /// What the command line begins with. A scope holds processes that others start, so the program is our child
    /// as it would be without; only its control group is another. The unit goes with its last process.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![self.systemd_run.clone().into_os_string()];
        words.extend(["--user", "--scope", "--quiet", "--collect", "--unit"].map(OsString::from));
        words.push(self.unit.clone().into());
        words.push("--".into());
        words
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SERVICE: &str =
        "0::/user.slice/user-1000.slice/user@1000.service/app.slice/purplemux.service\n";

    fn place() -> (tempfile::TempDir, Place) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("run/systemd")).unwrap();
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        let place = Place::of(&dir.path().join("home"));
        (dir, place)
    }

    #[test]
    fn only_what_is_in_a_service_leaves_it() {
        assert!(in_service(SERVICE));
        assert!(in_service(
            "12:pids:/x\n1:name=systemd:/system.slice/purplemux.service\n"
        ));
        for other in [
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n",
            "0::/\n",
            "4:memory:/system.slice/purplemux.service\n",
            "",
        ] {
            assert!(!in_service(other), "{other}");
        }
    }

    #[test]
    fn tmux_is_started_in_a_scope_of_its_own_where_one_can_be_had() {
        let (dir, place) = place();
        let (bin, runtime) = (dir.path().join("bin"), dir.path().join("run"));
        let here = |cgroup| Here {
            cgroup,
            path: bin.as_os_str(),
            runtime: Some(&runtime),
        };
        assert_eq!(
            choose(&here(SERVICE), &place),
            None,
            "no systemd-run, no manager"
        );
        let program = bin.join("systemd-run");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(choose(&here(SERVICE), &place), None, "no manager");
        std::fs::write(runtime.join("systemd/private"), "").unwrap();
        assert_eq!(
            choose(&here("0::/user.slice/session-3.scope"), &place),
            None
        );
        let scope = choose(&here(SERVICE), &place).unwrap();
        let name = place.socket().file_name().unwrap().to_str().unwrap();
        let unit = format!("purplemux-tmux-{name}.scope");
        let expected = [
            program.to_str().unwrap(),
            "--user",
            "--scope",
            "--quiet",
            "--collect",
            "--unit",
            &unit,
            "--",
        ];
        assert_eq!(scope.words(), expected);
    }
}
