//! Which TCP ports the programs of a row listen on: the kernel's table of sockets matched with the open files
//! of the row's processes. Asks nobody, starts nothing; what can't be read has no port.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::sys;

/// Ports of one row that are shown; a program that opens hundreds is no help to anybody.
const PORTS_MAX: usize = 16;
/// Processes below one row that are looked at: a build may start hundreds for a moment.
const TREE_MAX: usize = 512;
/// Open files of one process that are looked at.
const FILES_MAX: usize = 4096;

/// The listening ports of each row, lowest first, from the processes at the top of each; rows without any
/// are left out.
#[must_use]
pub fn listening(rows: Vec<(String, Vec<u32>)>) -> BTreeMap<String, Vec<u16>> {
    let mut sockets = BTreeMap::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        sockets.extend(
            fs::read_to_string(table)
                .iter()
                .flat_map(|text| listed(text)),
        );
    }
    if sockets.is_empty() {
        return BTreeMap::new();
    }
    let of = |roots: Vec<u32>| {
        let ports: BTreeSet<u16> = sys::tree(roots, TREE_MAX)
            .into_iter()
            .flat_map(open_sockets)
            .filter_map(|inode| sockets.get(&inode).copied())
            .collect();
        ports.into_iter().take(PORTS_MAX).collect::<Vec<u16>>()
    };
    rows.into_iter()
        .map(|(row, roots)| (row, of(roots)))
        .filter(|(_, ports)| !ports.is_empty())
        .collect()
}

/// Inode and port of the sockets that listen, of a table such as `/proc/net/tcp` (proc(5)).
fn listed(table: &str) -> Vec<(u64, u16)> {
    /// TCP_LISTEN.
    const LISTENS: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, port) = fields.get(1)?.rsplit_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let inode = fields.get(9)?.parse().ok()?;
        (*fields.get(3)? == LISTENS).then_some((inode, port))
    };
    table.lines().skip(1).filter_map(socket).collect()
}

/// The inodes of a process's sockets.
fn open_sockets(pid: u32) -> Vec<u64> {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    files
        .flatten()
        .take(FILES_MAX)
        .filter_map(|file| {
            let link = fs::read_link(file.path()).ok()?;
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            inode.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn only_what_listens_is_listed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F56 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 29410 1 0 100 0 0 10 0\n   \
            1: 0100007F:C350 0100007F:1F56 01 00000000:00000000 00:00000000 00000000     0        0 29411 1 0 20 4 30 10 -1\n   \
            2: nonsense\n";
        assert_eq!(listed(table), [(29410, 8022)]);
    }

    #[test]
    fn a_program_that_listens_is_found_below_its_row_and_not_when_it_has_stopped() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ports = || {
            let mut ports = listening(vec![("t-1".to_owned(), vec![std::process::id()])]);
            ports.remove("t-1").unwrap_or_default()
        };
        assert!(ports().contains(&port));
        drop(listener);
        assert!(!ports().contains(&port));
        assert!(listening(vec![("t-2".to_owned(), Vec::new())]).is_empty());
    }
}
