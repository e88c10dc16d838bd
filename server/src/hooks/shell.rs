//! The shell integration: a `claude` typed by hand in a tab gets our hooks. The person's own start-up
//! files run first, as in any login shell; then `claude` becomes a function that hands over to
//! `purplemux claude-exec`. No PATH, no file and no alias of theirs is changed.

use std::path::Path;

use anyhow::Result;

use crate::home::write_atomic;
use crate::hooks::make_private;

/// How a tab's shell is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The shell's path.
    pub program: String,
    /// The whole command, the program first.
    pub command: Vec<String>,
    /// Variables it needs beside the clean environment; its start-up removes them.
    pub environment: Vec<(String, String)>,
}

/// How to start this shell as a login shell with the integration; a shell that we know nothing of starts
/// as a plain login shell.
#[must_use]
pub fn launch(home: &Path, shell: &str) -> Launch {
    let folder = home.join("shell");
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let name = shell.rsplit('/').next().unwrap_or(shell);
    let (arguments, environment) = match name {
        // A bash that is a login shell reads no file of ours: ours reads what a login shell would.
        "bash" => (vec!["--rcfile".to_owned(), file("bash.rc")], Vec::new()),
        "zsh" => (
            vec!["-l".to_owned()],
            vec![("ZDOTDIR".to_owned(), file("zsh"))],
        ),
        "fish" => (
            vec![
                "-l".to_owned(),
                "-C".to_owned(),
                format!("source {}", quote(&file("fish.fish"))),
            ],
            Vec::new(),
        ),
        _ => (vec!["-l".to_owned()], Vec::new()),
    };
    let mut command = vec![shell.to_owned()];
    command.extend(arguments);
    Launch {
        program: shell.to_owned(),
        command,
        environment,
    }
}

/// One word for sh, bash, zsh and fish alike.
#[must_use]
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes the start-up files.
pub fn write(home: &Path, program: &Path) -> Result<()> {
    let folder = home.join("shell");
    make_private(&folder)?;
    make_private(&folder.join("zsh"))?;
    make_private(&folder.join("bin"))?;
    let files = [
        ("bash.rc", BASH, 0o600),
        ("zsh/.zshenv", ZSH, 0o600),
        ("fish.fish", FISH, 0o600),
        ("bin/claude", ON_PATH, 0o700),
    ];
    for (name, text, mode) in files {
        let text = text
            .replace("@PROGRAM@", &quote(&program.to_string_lossy()))
            .replace("@HOME@", &quote(&home.to_string_lossy()))
            .replace("@BIN@", &quote(&folder.join("bin").to_string_lossy()));
        write_atomic(&folder.join(name), text.as_bytes(), mode)?;
    }
    Ok(())
}

const BASH: &str = r#"# Written by purplemux at every start; changes are lost.
# The start-up files of a login shell, in their order (bash(1), INVOCATION); then `claude` gets its hooks.
if [ -r /etc/profile ]; then . /etc/profile; fi
if [ -r ~/.bash_profile ]; then . ~/.bash_profile
elif [ -r ~/.bash_login ]; then . ~/.bash_login
elif [ -r ~/.profile ]; then . ~/.profile
fi
declare -F logout >/dev/null || logout() { exit "$@"; }
if [ -r ~/.bash_logout ] && [ -z "$(trap -p EXIT)" ]; then trap '. ~/.bash_logout' EXIT; fi

__purplemux_claude() {
    if [ -x @PROGRAM@ ]; then @PROGRAM@ claude-exec @HOME@ "$@"; else command "$@"; fi
}
__purplemux_setup() {
    local theirs word words
    if theirs=$(declare -f claude); then
        # A function of their own: the `claude` that it starts is found on this PATH.
        eval "__purplemux_theirs ${theirs#claude }"
        function claude { PATH=@BIN@:"$PATH" __purplemux_theirs "$@"; }
    else
        # Not `claude()`: an alias of theirs would be expanded in it.
        function claude {
            local program
            program=$(type -P claude) || { command claude "$@"; return; }
            __purplemux_claude "$program" "$@"
        }
    fi
    # An alias to `claude …` leads to the function above. One to a path leads to a function of that name.
    read -r -a words <<<"${BASH_ALIASES[claude]-}"
    for word in "${words[@]}"; do
        case $word in
            [A-Za-z_]*=*) continue ;;
            '~/'*) word=$HOME/${word#??} ;;
        esac
        case $word in
            *[!A-Za-z0-9_./@+-]*) ;;
            /*/claude) if [ -x "$word" ]; then eval "function $word { __purplemux_claude $word \"\$@\"; }"; fi ;;
        esac
        break
    done
}
__purplemux_setup
unset -f __purplemux_setup
"#;

const ZSH: &str = r#"# Written by purplemux at every start; changes are lost.
# Stands in for ~/.zshenv: gives ZDOTDIR back, so that every other start-up file is theirs, reads theirs,
# and lets `claude` get its hooks before the first prompt, after all of them have run.
unset ZDOTDIR
if [[ -r ~/.zshenv ]]; then . ~/.zshenv; fi

if [[ -o interactive ]]; then
__purplemux_claude() {
    if [[ -x @PROGRAM@ ]]; then @PROGRAM@ claude-exec @HOME@ "$@"; else command "$@"; fi
}
__purplemux_setup() {
    emulate -L zsh
    local word
    if (( ${+functions[claude]} )); then
        # A function of their own: the `claude` that it starts is found on this PATH.
        functions[__purplemux_theirs]=$functions[claude]
        functions[claude]='local -x PATH='@BIN@':$PATH; __purplemux_theirs "$@"'
    else
        functions[claude]='
            local program
            program=$(whence -p claude) || { command claude "$@"; return; }
            __purplemux_claude "$program" "$@"'
    fi
    # An alias to `claude …` leads to the function above. One to a path leads to a function of that name.
    for word in ${(z)aliases[claude]-}; do
        [[ $word == [A-Za-z_]*=* ]] && continue
        [[ $word == '~/'* ]] && word=$HOME/${word#??}
        if [[ $word == /*/claude && $word != *[^A-Za-z0-9_./@+-]* && -x $word ]]; then
            functions[$word]="__purplemux_claude $word \"\$@\""
        fi
        break
    done
    precmd_functions=(${precmd_functions:#__purplemux_setup})
    unfunction __purplemux_setup
}
typeset -ga precmd_functions
precmd_functions+=(__purplemux_setup)
fi
"#;

const FISH: &str = r#"# Written by purplemux at every start; changes are lost.
# Read after all of their start-up files: `claude` gets its hooks.
function __purplemux_claude
    if test -x @PROGRAM@
        @PROGRAM@ claude-exec @HOME@ $argv
    else
        command $argv
    end
end
if functions -q claude
    # A function or an alias of their own: the `claude` that it starts is found on this PATH, and one
    # that it starts by its path is handed over.
    functions claude | string replace -r '^function claude\b' 'function __purplemux_theirs' \
        | string replace -r '^(\s*)(~?/[A-Za-z0-9_./@+-]*claude)(?=\s)' '$1__purplemux_claude $2' | source
    function claude --wraps claude
        set -lx PATH @BIN@ $PATH
        __purplemux_theirs $argv
    end
else
    function claude --wraps claude
        set -l program (command -s claude)
        if test -z "$program"
            command claude $argv
            return
        end
        __purplemux_claude $program $argv
    end
end
"#;

const ON_PATH: &str = r#"#!/bin/sh
# Written by purplemux at every start; changes are lost.
# Stands before the real `claude` only while a function of the person's own runs.
if [ -x @PROGRAM@ ]; then exec @PROGRAM@ claude-exec @HOME@ claude "$@"; fi
PATH=$(printf %s "$PATH" | sed "s|^[^:]*/shell/bin:||")
exec claude "$@"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_starts_as_a_login_shell() {
        let home = Path::new("/h");
        assert_eq!(
            launch(home, "/bin/bash").command,
            ["/bin/bash", "--rcfile", "/h/shell/bash.rc"]
        );
        let zsh = launch(home, "/usr/bin/zsh");
        assert_eq!(zsh.command, ["/usr/bin/zsh", "-l"]);
        assert_eq!(
            zsh.environment,
            [("ZDOTDIR".to_owned(), "/h/shell/zsh".to_owned())]
        );
        assert_eq!(launch(home, "/bin/dash").command, ["/bin/dash", "-l"]);
    }

    #[test]
    fn a_word_stays_a_word() {
        assert_eq!(quote("a b'c"), r"'a b'\''c'");
    }
}
