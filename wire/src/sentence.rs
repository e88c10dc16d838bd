//! Every sentence that the server says to a person, as a code with its arguments: programs compare the code, the command
//! line and logs print the English that stands here, and the page says it in the person's own language.
//!
//! The English exists once, here; the page's copy is generated from it. Each sentence has two parts: what happened, and
//! what to do about it. Must never hold Claude's words but as an argument.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A sentence: what happened, what became of what was asked for, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(type = "Cause & { then?: Then }")]
pub struct Sentence {
    /// What happened; its code and arguments stand beside the other fields.
    #[serde(flatten)]
    pub cause: Cause,
    /// What became of what was asked for, where the code does not say it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub then: Option<Then>,
}

impl Sentence {
    /// In English, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn english(&self) -> String {
        self.to_string()
    }
}

/// A sentence in English and as a code: for viewers, which say it in the person's language where they have words for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Notice {
    /// In English.
    pub why: String,
    /// The same as a code.
    pub said: Sentence,
}

impl From<Cause> for Notice {
    fn from(cause: Cause) -> Self {
        let said = Sentence::from(cause);
        Self {
            why: said.english(),
            said,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, act) = self.english();
        f.write_str(&what)?;
        if act.is_empty() {
            return Ok(());
        }
        write!(f, " {act}")
    }
}

impl From<Cause> for Sentence {
    fn from(cause: Cause) -> Self {
        Self { cause, then: None }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(then) = self.then else {
            return self.cause.fmt(f);
        };
        let (what, act) = self.cause.english();
        write!(f, "{what} {}", then.english())?;
        if act.is_empty() {
            return Ok(());
        }
        write!(f, " {act}")
    }
}

/// A moment that is said as hour and minute: in English by this machine's clock, on the page by the person's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(type = "number")]
pub struct Moment(
    /// Unix ms.
    pub i64,
);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        let at = at.to_zoned_datetime(jiff::tz::TimeZone::system());
        write!(f, "{}", at.strftime("%H:%M"))
    }
}

macro_rules! thens {
    ($($name:ident $code:literal => $text:literal;)*) => {
        /// What became of what was asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
        pub enum Then {
            $(#[doc = $text] #[serde(rename = $code)] $name,)*
        }

        impl Then {
            /// Every code with its English.
            pub const ALL: &'static [(&'static str, &'static str)] = &[$(($code, $text)),*];

            fn english(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

macro_rules! causes {
    ($($name:ident $code:literal $({ $($arg:ident: $kind:ty),* })? => $what:literal, $act:literal;)*) => {
        /// What happened.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
        #[serde(tag = "code")]
        #[expect(missing_docs, reason = "an argument is what its sentence says")]
        pub enum Cause {
            $(#[doc = $what] #[serde(rename = $code)] $name $({ $($arg: $kind),* })?,)*
        }

        impl Cause {
            /// Every code with its English: what happened, and what to do.
            pub const ALL: &'static [(&'static str, &'static str, &'static str)] = &[$(($code, $what, $act)),*];

            /// The code.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    $(Self::$name $({ $($arg: _),* })? => $code,)*
                }
            }

            fn english(&self) -> (String, String) {
                match self {
                    $(Self::$name $({ $($arg),* })? => (format!($what), format!($act)),)*
                }
            }
        }
    };
}

thens! {
    NothingSent "nothing_sent" => "Nothing was sent.";
    NothingConfirmed "nothing_confirmed" => "Nothing was confirmed.";
    WordsNotSent "words_not_sent" => "It was refused, and the words were not sent.";
    NotSubmitted "not_submitted" => "The text stands in Claude's box and was not submitted.";
}

// Answers, stops and prompts: what the gate, the look before a key and the typing say.
causes! {
    BeingAnswered "being_answered" { by: String, what: String } => "It is being answered on {by} ({what}).", "Wait for that.";
    Answered "answered" { by: String, at: Moment, what: String } => "Answered already on {by} at {at} ({what}).", "There is nothing more to do.";
    Over "over" => "It is over already.", "There is nothing more to do.";
    PromptChanged "prompt_changed" => "This prompt changed.", "Read the new one, then answer it.";
    DialogNotRead "dialog_not_read" => "Its dialog could not be read, or runs in no tab of purplemux.", "Answer it in its own terminal.";
    Unfinished "unfinished" => "purplemux could not see it through.", "Open the terminal.";
    StoppingAlready "stopping_already" => "It is being stopped already.", "Wait for that.";
    NoTabToStop "no_tab_to_stop" => "This session runs in no tab of purplemux.", "Stop it in its own terminal.";
    AnotherMessage "another_message" => "Another message is on its way there.", "Send this one when that has been taken.";
    NoClaudeHere "no_claude_here" => "No Claude runs in a tab of purplemux there.", "Use its own terminal.";
    ServerStopping "server_stopping" => "purplemux is stopping.", "Try again when it runs.";

    SomebodyTypes "somebody_types" => "Somebody is typing in this tab's terminal.", "Try again when that is done.";
    ScrolledBack "scrolled_back" => "This tab is scrolled back and does not leave that.", "Press q in it, then try again.";
    MachineBusy "machine_busy" => "This machine is too busy to be sure of what is on the screen.", "Try again.";
    StatusUnreadable "status_unreadable" => "Claude's status can't be read just now.", "Open the terminal.";
    AsksOther "asks_other" => "Claude asks something else by now.", "Read it, then answer it.";
    AnsweredInTerminal "answered_in_terminal" => "It is answered already.", "There is nothing more to do.";
    MenuOpen "menu_open" => "A menu is open in the terminal.", "Close it there.";
    DraftInBox "draft_in_box" => "Something is typed into Claude's box in the terminal.", "Send or clear it there first.";
    NoDialog "no_dialog" => "No dialog is drawn in the terminal.", "Open the terminal.";
    OtherDialog "other_dialog" => "Another dialog is drawn in the terminal.", "Open the terminal.";
    NotTheAsked "not_the_asked" => "The terminal shows another dialog than the one that is asked about.", "Open the terminal.";
    ScreenUnsure "screen_unsure" => "What is on the screen can't be read with certainty.", "Open the terminal.";
    NotWaiting "not_waiting" => "Claude's status does not say that it waits.", "Open the terminal.";
    NoStatus "no_status" => "This Claude Code does not say whether it waits.", "Open the terminal.";
    ProgramExited "program_exited" => "The program in this tab has exited.", "Reopen the tab to start its shell again.";
    InputOff "input_off" => "Input to this pane is switched off.", "`tmux select-pane -e` in it switches it on.";
    Synchronized "synchronized" => "What is typed into this pane goes to others as well (synchronize-panes).", "Switch that off in tmux first.";
    ProcessEnded "process_ended" => "Its process has ended.", "There is nothing more to do.";
    SuspendedThere "suspended_there" => "It is suspended.", "Type `fg` in the terminal.";
    OtherTerminal "other_terminal" => "It runs in another terminal than this tab's own.", "Use that one.";
    OtherInFront "other_in_front" => "Another program is in front in its terminal.", "Open the terminal.";

    AsksSomething "asks_something" => "Claude asks something.", "Answer or reject that first.";
    NotWorking "not_working" => "Claude is not working.", "There is nothing to stop.";
    NotStarted "not_started" => "Claude has not started yet.", "Try again when it has.";
    WorkUnknown "work_unknown" => "It can't be told what Claude does.", "Open the terminal.";
    WentOn "went_on" => "Claude went on all the same.", "Open the terminal.";
    NextRuns "next_runs" => "A prompt was waiting and runs now.", "Stop again to interrupt that one too.";

    Queued "queued" => "It waits until Claude's step ends.", "There is nothing more to do.";
    NoWords "no_words" => "There are no words.", "Write some.";
    PromptTooLong "prompt_too_long" { max: u32 } => "That is longer than {max} characters.", "Put it into a file.";
    TextNotShown "text_not_shown" => "The text did not appear as it was sent.", "Open the terminal.";
    OtherOpened "other_opened" => "Something else opened in the terminal.", "Open the terminal.";
    NotTaken "not_taken" => "Claude did not take it within two seconds: it is not submitted.", "Open the terminal.";

    TakesWords "takes_words" => "This option takes words.", "Write them into the card's field.";
    NothingToSubmit "nothing_to_submit" => "There is nothing to submit.", "Answer the question that stands there.";
    OneAnswerOnly "one_answer_only" => "This question takes one answer only.", "Choose one option.";
    NoSuchBox "no_such_box" => "There is no such box to tick.", "Choose among those that are shown.";
    NoSuchOption "no_such_option" => "There is no such option.", "Choose among those that are shown.";
    BoxNotTicked "box_not_ticked" => "A box was not ticked as wanted.", "Open the terminal.";
    OtherBoxes "other_boxes" => "Other boxes are ticked by now.", "Read them, then answer.";
    TooLongForDialog "too_long_for_dialog" { max: u32 } => "That is longer than the {max} characters that a dialog takes.", "Refuse the dialog, then send it as a prompt.";
    TakesNoWords "takes_no_words" => "The dialog takes no words.", "Open the terminal.";
    WordsNotShown "words_not_shown" => "The words did not appear as they were written.", "Open the terminal.";
    BoxNotInFront "box_not_in_front" => "Claude's box is not in front.", "Open the terminal.";
    BoxTaken "box_taken" => "Something else stands in Claude's box.", "Send or clear it there first.";
    MarkMoved "mark_moved" => "Claude's mark was moved in the terminal.", "Open the terminal.";
    MarkStuck "mark_stuck" => "Claude's mark did not move as expected.", "Open the terminal.";
    NoReaction "no_reaction" => "Claude did not react to it within two seconds.", "Open the terminal.";
    RefusedWordsUnsent "refused_words_unsent" => "It was refused, and the words could not be sent after it.", "Open the terminal.";
    RefusedWordsStand "refused_words_stand" => "It was refused, and the words stand in Claude's box, not submitted.", "Open the terminal.";

    TmuxRefused "tmux_refused" { detail: String } => "tmux: {detail}", "Open the terminal.";
    TmuxSilent "tmux_silent" { detail: String } => "tmux does not answer ({detail}).", "Try again when it does.";
    ShellEnded "shell_ended" => "The shell in this tab has ended.", "Reopen the tab to start it again.";
    TmuxBusy "tmux_busy" => "tmux was too busy.", "Try again.";

    RowGone "row_gone" => "That row is gone.", "There is nothing more to do.";
    ButtonTooOld "button_too_old" => "This notification is of another run of purplemux, or was not sent to this device.", "Open the session and answer there.";
    AgentsMayNot "agents_may_not" => "This is the person's to do, and it was asked by a program that Claude Code started.", "`purplemux workspace agents WORKSPACE --allow`, typed by the person, lets the agents of a workspace do it.";
    AskerUnknown "asker_unknown" => "It can't be told who asks.", "Sign in, or use the command line on that machine.";
    AskerEnded "asker_ended" => "The program that asked has ended.", "Ask again, and wait for the answer.";

    NoTab "no_tab" { id: String } => "There is no tab {id:?}.", "`purplemux tab list` shows them.";
    NoWorkspace "no_workspace" { id: String } => "There is no workspace {id:?}.", "`purplemux workspace list` shows them.";
    NoPane "no_pane" { id: String } => "There is no pane {id:?} here.", "It may have been closed meanwhile; choose another.";
    NoSplit "no_split" { id: String } => "There is no split {id:?} here.", "It may have been closed meanwhile; choose another.";
    LastPane "last_pane" => "The last pane of a workspace stays.", "Close its tabs instead.";
    PanesFull "panes_full" { panes: u32, depth: u32 } => "A workspace may have {panes} panes, and {depth} splits within each other.", "Close one first.";
    Sizes "sizes" { parts: u32, min: u32, whole: u32 } => "These sizes do not fit the {parts} parts.", "Give one size for each, each at least {min} and together {whole}.";
    WorkspacesFull "workspaces_full" { max: u32 } => "There are {max} workspaces already.", "Remove one first.";
    WorkspacesChanged "workspaces_changed" => "The workspaces have changed meanwhile.", "Name each of them once.";
    NameTooLong "name_too_long" { max: u32 } => "A name may have {max} characters.", "Choose a shorter one.";
    NameMissing "name_missing" => "A workspace can't be without a name.", "Give the workspace a name.";
    NoDirectory "no_directory" { dir: String } => "There is no directory {dir:?}.", "Give the absolute path of one that exists.";
    DirectoryNotText "directory_not_text" { dir: String } => "{dir} has a name that is no UTF-8; tabs can't be opened there.", "Give it another name, or open a tab above it and cd.";
    TabEnded "tab_ended" { id: String } => "The shell of tab {id} has ended.", "`purplemux tab reopen {id}` starts it again.";
    NothingOffered "nothing_offered" { id: String } => "No conversation is offered in tab {id}.", "Choose one among the past conversations.";
    ShellNotAtPrompt "shell_not_at_prompt" { id: String } => "The shell of tab {id} is not at its prompt; nothing was typed.", "Try again when it is.";
    ClaudeInTab "claude_in_tab" { id: String } => "Claude is running in tab {id}.", "End it first, or close the tab with --force.";
    LastWorkspace "last_workspace" => "The last workspace stays.", "Make another one first.";
    WorkspaceInUse "workspace_in_use" { name: String, tabs: u32, agents: u32 } => "The workspace {name:?} has {tabs} open tabs, and Claude is running in {agents} of them.", "Close them first, or remove it with --force.";
    NotRestorable "not_restorable" { id: String } => "{id:?} can't be brought back: it has ended, or was never closed.", "Open a new one.";
    NothingToReopen "nothing_to_reopen" { id: String } => "The shell of tab {id} is running; there is nothing to reopen.", "Use it as it is.";
    NotOurs "not_ours" { id: String } => "The session of tab {id} is not purplemux's own.", "`tmux respawn-pane` in it starts its program again.";
    ConversationRuns "conversation_runs" { item: String } => "That conversation is running, in {item:?}.", "Go on there.";
    NoConversation "no_conversation" { id: String } => "There is no conversation {id:?}; its transcript may have been removed.", "Choose another.";
    NoSession "no_session" { id: String } => "There is no session {id:?}.", "`purplemux status` shows them all.";
    SettingsTooLarge "settings_too_large" { max: u32 } => "Settings may have {max} bytes in all.", "Leave something out.";

    LinkUsed "link_used" => "This sign-in link has been used or is too old.", "Run `purplemux login` for a new one.";
    TooManyCodes "too_many_codes" => "Too many wrong codes from here.", "Wait a minute and try again.";
    SignIn "sign_in" => "You are not signed in.", "Sign in first: run `purplemux login` and open the link it prints.";
    NotOurPage "not_our_page" => "This request did not come from purplemux's own page.", "Open the address that purplemux printed.";
    NotCalledThat "not_called_that" => "This server is not called that.", "Open the address that it printed, or start it with --allow-host.";
    NoDevice "no_device" => "There is no such device.", "It may have signed out already; load the list again.";
    NotificationsOff "notifications_off" => "Notifications are off on this device.", "Switch them on first.";
    NoZone "no_zone" { zone: String } => "{zone:?} is no time zone.", "Send an IANA name such as Europe/Berlin.";
    EscalateRange "escalate_range" => "The seconds until a phone is told must be 10 to 3600.", "Choose a number between them.";
    NoSubscription "no_subscription" { detail: String } => "This is no push subscription: {detail}.", "Switch notifications off and on again.";
    PushGone "push_gone" => "This device has unsubscribed.", "Switch notifications on again on it.";
    PushSilent "push_silent" { seconds: u32 } => "The push service did not answer within {seconds} s.", "Try again later.";
    PushUnreachable "push_unreachable" { detail: String } => "The push service can't be reached: {detail}.", "Check this machine's way to the internet.";
    PushAnswered "push_answered" { status: String, text: String } => "The push service answered {status} {text}", "Try again later; if it stays so, switch notifications off and on again.";

    DiskFull "disk_full" { home: String } => "The disk that holds {home} is full.", "Free some space there, then try again. Badges go on meanwhile.";
    Internal "internal" { detail: String } => "Something of purplemux's own failed: {detail}.", "`purplemux doctor` may say more.";
    SearchLength "search_length" { max: u32 } => "A search takes one to {max} characters.", "Search for fewer.";
    TooMuch "too_much" { max: u32 } => "That is more than {max} bytes.", "Send less.";
    NotUnderstood "not_understood" { detail: String } => "{detail}", "";

    HistoryNotSaved "history_not_saved" => "History is not being saved; badges go on from memory.", "Check the disk that holds purplemux's home.";
    WatchRefused "watch_refused" { detail: String } => "Claude's status files can't be watched ({detail}); they are looked at once a second instead.", "Raising fs.inotify.max_user_watches and max_user_instances helps.";
    TmuxOutdated "tmux_outdated" { installed: String, running: String } => "tmux {installed} is installed, but tmux {running} still runs: everything goes on, and all tabs end when tmux is restarted.", "Restart it when nothing runs in them.";
    NoForeignTerminal "no_foreign_terminal" { id: String } => "No tmux has a terminal for {id:?}.", "Use the terminal where it was started.";
    DatabaseDamaged "database_damaged" { why: String, aside: String } => "The database was damaged ({why}) and has been set aside as {aside}; layout, settings and sign-ins come from the last good copy.", "Look through your workspaces.";
    DatabaseAnew "database_anew" { why: String, aside: String } => "The database was damaged ({why}) and has been set aside as {aside}; layout and sign-ins begin anew.", "Sign your devices in again.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_word_and_stands_once() {
        let mut codes: Vec<&str> = Cause::ALL.iter().map(|(code, ..)| *code).collect();
        codes.sort_unstable();
        for pair in codes.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
        for code in codes {
            let word = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(!code.is_empty() && code.chars().all(word), "{code}");
        }
    }

    #[test]
    fn a02_every_refusal_says_what_happened_and_what_to_do() {
        // A mistake of a program's in its request is told as it is.
        let whole = ["not_understood"];
        for (code, what, act) in Cause::ALL {
            assert!(!what.is_empty(), "{code}");
            assert_eq!(act.is_empty(), whole.contains(code), "{code}: what to do");
            assert!(act.is_empty() || act.ends_with('.'), "{code}: {act}");
            assert!(!what.contains('!') && !act.contains('!'), "{code}");
        }
    }

    #[test]
    fn a_sentence_is_its_code_with_arguments() {
        let said = Sentence {
            cause: Cause::BeingAnswered {
                by: "iPhone".to_owned(),
                what: "Yes".to_owned(),
            },
            then: Some(Then::NothingSent),
        };
        let json = serde_json::to_value(&said).unwrap();
        let wanted = serde_json::json!({
            "code": "being_answered", "by": "iPhone", "what": "Yes", "then": "nothing_sent",
        });
        assert_eq!(json, wanted);
        assert_eq!(serde_json::from_value::<Sentence>(json).unwrap(), said);
        assert_eq!(
            said.to_string(),
            "It is being answered on iPhone (Yes). Nothing was sent. Wait for that."
        );
        let over: Sentence = Cause::Over.into();
        assert_eq!(
            serde_json::to_value(&over).unwrap(),
            serde_json::json!({"code": "over"})
        );
    }
}
