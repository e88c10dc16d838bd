//! The environment of tabs: what a person's login would give them, and what they set for Claude; nothing
//! of the terminal, the multiplexer or the Claude that this server may have been started from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::process::getuid;

/// Kept by name.
const KEPT: [&str; 17] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "LANG",
    "LANGUAGE",
    "TZ",
    "SSH_AUTH_SOCK",
    "DBUS_SESSION_BUS_ADDRESS",
    "TMUX_TMPDIR",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "API_TIMEOUT_MS",
    "MAX_THINKING_TOKENS",
    "CLOUD_ML_REGION",
    "PURPLEMUX_HOME",
];

/// Kept by their beginning: the session, the locale, and what is set for Claude and its model's host.
const KEPT_PREFIXES: [&str; 10] = [
    "XDG_",
    "LC_",
    "ANTHROPIC_",
    "AWS_",
    "GOOGLE_",
    "VERTEX_",
    "DISABLE_",
    "MCP_",
    "BASH_DEFAULT_",
    "BASH_MAX_",
];

/// Proxies, in both spellings: Claude reaches its API through them.
const PROXIES: [&str; 4] = ["http_proxy", "https_proxy", "no_proxy", "all_proxy"];

/// The clean environment, from our own and the passwd entry.
#[must_use]
pub fn clean() -> Vec<(OsString, OsString)> {
    clean_from(std::env::vars_os(), login().as_ref())
}

fn clean_from(
    ours: impl Iterator<Item = (OsString, OsString)>,
    login: Option<&Login>,
) -> Vec<(OsString, OsString)> {
    let mut clean: Vec<(OsString, OsString)> = ours
        .filter(|(name, value)| is_kept(name) && !value.is_empty())
        .collect();
    let mut missing = |name: &str, value: &OsStr| {
        if !clean.iter().any(|(there, _)| there == name) {
            clean.push((name.into(), value.to_owned()));
        }
    };
    if let Some(login) = login {
        missing("HOME", login.home.as_os_str());
        missing("USER", &login.name);
        missing("LOGNAME", &login.name);
    }
    missing(
        "PATH",
        OsStr::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    );
    if !speaks_utf8(&clean) {
        clean.retain(|(name, _)| name != "LC_ALL" && name != "LC_CTYPE" && name != "LANG");
        clean.push(("LANG".into(), "C.UTF-8".into()));
    }
    clean.push(("SHELL".into(), shell().into()));
    clean.push(("COLORTERM".into(), "truecolor".into()));
    clean
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    KEPT.contains(&name)
        || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || PROXIES.contains(&name.to_ascii_lowercase().as_str())
}

/// The locale that decides about characters: LC_ALL, else LC_CTYPE, else LANG (locale(7)).
fn speaks_utf8(environment: &[(OsString, OsString)]) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| environment.iter().find(|(there, _)| there == name))
        .is_some_and(|(_, locale)| {
            let locale = locale.to_string_lossy().to_ascii_lowercase();
            locale.ends_with("utf-8") || locale.ends_with("utf8")
        })
}

/// The shell of tabs: `$PURPLEMUX_SHELL` if the person set it, else their login shell.
#[must_use]
pub fn shell() -> String {
    let chosen = std::env::var("PURPLEMUX_SHELL").ok();
    chosen
        .filter(|shell| shell.starts_with('/'))
        .or_else(|| Some(login()?.shell))
        .filter(|shell| !shell.is_empty())
        .unwrap_or_else(|| "/bin/sh".to_owned())
}

/// What passwd(5) says about the person.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Login {
    name: OsString,
    home: PathBuf,
    shell: String,
}

fn login() -> Option<Login> {
    let passwd = std::fs::read("/etc/passwd").ok()?;
    entry(&passwd, getuid().as_raw())
}

fn entry(passwd: &[u8], uid: u32) -> Option<Login> {
    passwd.split(|&byte| byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b':').collect();
        let [name, _, id, _, _, home, shell] = fields[..] else {
            return None;
        };
        (id == uid.to_string().as_bytes()).then(|| Login {
            name: OsStr::from_bytes(name).to_owned(),
            home: PathBuf::from(OsStr::from_bytes(home)),
            shell: String::from_utf8_lossy(shell).into_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean_of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let ours = pairs
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let login = Login {
            name: "dev".into(),
            home: "/home/dev".into(),
            shell: "/bin/bash".to_owned(),
        };
        clean_from(ours, Some(&login))
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect()
    }

    fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found: Vec<&str> = environment
            .iter()
            .filter(|(there, _)| there == name)
            .map(|(_, value)| value.as_str())
            .collect();
        assert!(found.len() <= 1, "{name} twice");
        found.first().copied()
    }

    #[test]
    fn n09_nothing_of_the_claude_around_us_reaches_a_tab() {
        let environment = clean_of(&[
            ("CLAUDECODE", "1"),
            ("CLAUDE_CODE_SESSION_ID", "x"),
            ("CLAUDE_CONFIG_DIR", "/x"),
            ("CLAUDE_PID", "1"),
            ("TMUX", "/tmp/t,1,0"),
            ("TMUX_PANE", "%1"),
            ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1"),
            ("ANTHROPIC_API_KEY", "k"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("HTTPS_PROXY", "http://proxy"),
            ("SECRET", "s"),
            ("HOME", "/throw/away"),
        ]);
        for gone in [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_PID",
            "TMUX",
            "TMUX_PANE",
            "SECRET",
        ] {
            assert_eq!(value(&environment, gone), None, "{gone}");
        }
        assert_eq!(value(&environment, "ANTHROPIC_API_KEY"), Some("k"));
        assert_eq!(value(&environment, "DISABLE_AUTOUPDATER"), Some("1"));
        assert_eq!(value(&environment, "HTTPS_PROXY"), Some("http://proxy"));
        assert_eq!(value(&environment, "HOME"), Some("/throw/away"));
        assert_eq!(value(&environment, "USER"), Some("dev"));
        assert_eq!(value(&environment, "LANG"), Some("C.UTF-8"));
        assert_eq!(value(&environment, "COLORTERM"), Some("truecolor"));
    }

    #[test]
    fn a_locale_of_the_persons_is_kept_if_it_is_utf8() {
        let kept = clean_of(&[("LANG", "zh_TW.UTF-8")]);
        assert_eq!(value(&kept, "LANG"), Some("zh_TW.UTF-8"));
        let replaced = clean_of(&[("LANG", "zh_TW.UTF-8"), ("LC_ALL", "POSIX")]);
        assert_eq!(value(&replaced, "LANG"), Some("C.UTF-8"));
        assert_eq!(value(&replaced, "LC_ALL"), None);
    }

    #[test]
    fn passwd_is_read_by_user_id() {
        let passwd =
            b"root:x:0:0:root:/root:/bin/bash\ndev:x:1000:1000:Dev,,,:/home/dev:/usr/bin/zsh\n";
        let dev = entry(passwd, 1000).unwrap();
        assert_eq!(dev.shell, "/usr/bin/zsh");
        assert_eq!(entry(passwd, 7), None);
    }
}
