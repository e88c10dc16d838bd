//! `status-hook.sh`: what Claude Code runs for every event. It hands its input to `purplemux hook`; if
//! that is missing, to curl. It prints nothing and always succeeds. And `status-line.sh`, which stands before
//! the person's own status line.

use std::path::Path;

use anyhow::Result;

use crate::home::write_atomic;
use crate::hooks::shell::quote;

const SCRIPT: &str = r#"#!/bin/sh
# Written by purplemux at every start; changes are lost.
# Hands one event of Claude Code to the purplemux server. Prints nothing and always succeeds.
exec >/dev/null 2>&1
PURPLEMUX_HOME=@HOME@
export PURPLEMUX_HOME
[ -x @PROGRAM@ ] && exec @PROGRAM@ hook "$1"

# The program is gone (an update, an uninstall): the event goes the slow way, if a server is there.
read -r port <"$PURPLEMUX_HOME/port" || exit 0
read -r boot_id </proc/sys/kernel/random/boot_id
read -r up rest </proc/uptime
set -- "$1" -H "x-pmux-event: $1" -H "x-pmux-stamp: ${up%.*}${up#*.}0000000,$boot_id,$(date +%s%3N)"
[ -z "$CLAUDE_PID" ] || set -- "$@" -H "x-pmux-pid: $CLAUDE_PID"
[ -z "$TMUX_PANE" ] || set -- "$@" -H "x-pmux-pane: $TMUX_PANE"
[ -z "$TMUX" ] || set -- "$@" -H "x-pmux-tmux: $TMUX"
shift
curl --noproxy '*' --silent --max-time 0.05 -H @"$PURPLEMUX_HOME/hook-headers" \
    -H 'content-type: application/json' "$@" --data-binary @- "http://127.0.0.1:$port/api/status/hook"
exit 0
"#;

/// What stands in the place of the person's status line: without our program, their command alone.
const STATUS_LINE: &str = r#"#!/bin/sh
# Written by purplemux at every start; changes are lost.
# Shows the status line's own command, $1, unchanged, and tells purplemux what Claude Code told it.
PURPLEMUX_HOME=@HOME@
export PURPLEMUX_HOME
[ -x @PROGRAM@ ] && exec @PROGRAM@ status-line "$1"
exec /bin/sh -c "$1"
"#;

/// Writes the scripts, and the header with the token that curl reads from a file: a process's arguments
/// are everybody's to read.
pub fn write(home: &Path, program: &Path) -> Result<()> {
    for (name, text) in [("status-hook.sh", SCRIPT), ("status-line.sh", STATUS_LINE)] {
        let text = text
            .replace("@HOME@", &quote(&home.to_string_lossy()))
            .replace("@PROGRAM@", &quote(&program.to_string_lossy()));
        write_atomic(&home.join(name), text.as_bytes(), 0o700)?;
    }
    if let Ok(token) = std::fs::read_to_string(home.join("cli-token")) {
        let header = format!("x-pmux-token: {}\n", token.trim());
        write_atomic(&home.join("hook-headers"), header.as_bytes(), 0o600)?;
    }
    Ok(())
}
