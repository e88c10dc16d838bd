//! `purplemux hook EVENT`: hands what Claude Code writes to a hook's standard input to the server, in
//! milliseconds, or spools it. It must never print, never fail and never hold Claude up.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command if `arguments` (without the program's name) ask for it; `None`: another command.
/// Called first in `main`, before the command line is parsed and before any runtime exists.
pub fn run(arguments: &[OsString]) -> Option<ExitCode> {
    if arguments.first()? != "hook" {
        return None;
    }
    Some(ExitCode::SUCCESS)
}
