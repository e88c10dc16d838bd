//! Which branch of a Git repository a directory is on, as `.git/HEAD` says; a work tree's `.git` is a file
//! that names the folder with its HEAD. Starts no Git, reads nothing else, and changes nothing.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// HEAD holds one name, `.git` one path; whatever is longer is neither.
const BYTES_MAX: u64 = 8 * 1024;
/// Characters of a name that are shown.
const NAME_CHARS_MAX: usize = 200;
/// Digits of a commit that stand for it where no branch is checked out, as Git itself shortens it.
const COMMIT_DIGITS: usize = 7;

/// The branch, or the shortened commit of a detached HEAD; `None`: no repository, or one that can't be read.
#[must_use]
pub fn of(dir: &Path) -> Option<String> {
    let git = dir
        .ancestors()
        .map(|above| above.join(".git"))
        .find(|git| fs::symlink_metadata(git).is_ok())?;
    let folder = if git.is_dir() {
        git
    } else {
        let named = read(&git)?;
        let named = PathBuf::from(named.strip_prefix("gitdir:")?.trim());
        git.parent()?.join(named)
    };
    name(&read(&folder.join("HEAD"))?)
}

fn name(head: &str) -> Option<String> {
    let head = head.trim();
    let name = match head.strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim();
            name.strip_prefix("refs/heads/").unwrap_or(name)
        }
        None if matches!(head.len(), 40 | 64) && head.bytes().all(|b| b.is_ascii_hexdigit()) => {
            head.get(..COMMIT_DIGITS)?
        }
        None => return None,
    };
    let clean = name.chars().filter(|c| !c.is_control());
    let name: String = clean.take(NAME_CHARS_MAX).collect();
    (!name.is_empty()).then_some(name)
}

/// A small regular file; a pipe in its place is not waited for.
fn read(path: &Path) -> Option<String> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(head: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git")).unwrap();
        fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        fs::write(dir.path().join(".git/HEAD"), head).unwrap();
        dir
    }

    #[test]
    fn a_branch_is_read_from_wherever_in_the_repository() {
        let dir = repository("ref: refs/heads/feature/badge\n");
        for below in ["", "src", "src/deep"] {
            assert_eq!(of(&dir.path().join(below)).unwrap(), "feature/badge");
        }
    }

    #[test]
    fn a_detached_head_is_its_commit() {
        let dir = repository("0123456789abcdef0123456789abcdef01234567\n");
        assert_eq!(of(dir.path()).unwrap(), "0123456");
    }

    #[test]
    fn a_work_tree_names_the_folder_with_its_head() {
        let main = repository("ref: refs/heads/main\n");
        let admin = main.path().join(".git/worktrees/other");
        fs::create_dir_all(&admin).unwrap();
        fs::write(admin.join("HEAD"), "ref: refs/heads/other\n").unwrap();
        let tree = tempfile::tempdir().unwrap();
        let pointer = tree.path().join(".git");
        fs::write(&pointer, format!("gitdir: {}\n", admin.display())).unwrap();
        assert_eq!(of(tree.path()).unwrap(), "other");
        // A submodule's path is relative.
        let sub = main.path().join("src");
        fs::write(sub.join(".git"), "gitdir: ../.git/worktrees/other\n").unwrap();
        assert_eq!(of(&sub).unwrap(), "other");
        assert_eq!(of(main.path()).unwrap(), "main");
    }

    #[test]
    fn what_is_no_repository_has_no_branch_and_holds_nothing_up() {
        let dir = repository("nonsense\n");
        assert_eq!(of(dir.path()), None);
        fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/\u{1b}[31m\n").unwrap();
        assert_eq!(of(dir.path()).unwrap(), "[31m");
        let head = dir.path().join(".git/HEAD");
        fs::remove_file(&head).unwrap();
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            &head,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        );
        fifo.unwrap();
        assert_eq!(of(dir.path()), None);
    }
}
