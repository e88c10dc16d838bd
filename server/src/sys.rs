//! Small questions to the kernel about processes, each answered from `/proc` without starting anything.
//! A question that can't be answered says `None`, never a guess.

use std::fs;

/// What `/proc/PID/stat` says (proc(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The command name, at most 15 bytes.
    pub comm: String,
    /// Field 3: `R`, `S`, `D`, `T`, `Z`, ….
    pub state: char,
    /// Field 4.
    pub parent: u32,
    /// Field 22: start time in clock ticks after boot.
    pub start: u64,
    /// Fields 14 and 15: CPU ticks used, user and system.
    pub cpu_ticks: u64,
}

/// Reads `/proc/PID/stat`; `None`: no such process, or not readable.
#[must_use]
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The command may hold spaces and parentheses of its own: the last one closes it.
    let (head, rest) = text.rsplit_once(") ")?;
    let (_, comm) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        comm: comm.to_owned(),
        state: fields.first()?.chars().next()?,
        parent: u32::try_from(number(4)?).ok()?,
        start: number(22)?,
        cpu_ticks: number(14)? + number(15)?,
    })
}

/// The direct children of a process, from every thread's `children` list (a few hundredths of a
/// millisecond, unlike a walk over all of `/proc`).
#[must_use]
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| {
            text.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_and_spaces_is_read_whole() {
        let line = "42 (a) (b c) T 7 42 42 0 -1 4194304 1 0 0 0 3 4 0 0 20 0 1 0 7975 1 1";
        assert_eq!(
            parse_stat(line),
            Some(Stat {
                comm: "a) (b c".to_owned(),
                state: 'T',
                parent: 7,
                start: 7975,
                cpu_ticks: 7
            })
        );
    }

    #[test]
    fn we_exist_and_have_a_parent() {
        let me = stat(std::process::id()).expect("we exist");
        assert!(me.start > 0);
        assert_eq!(stat(u32::MAX), None);
    }
}
