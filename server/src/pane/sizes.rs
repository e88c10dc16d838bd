//! Who decides how large a tab's window is while several look at it: one viewer, the owner. All the others are shown
//! the owner's grid, so that none of them shrinks somebody's pane by looking. Leaf data: the lock is never held while
//! anything is waited for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use purplemux_core::TabId;
use purplemux_wire::frame::Hold;
use tokio::sync::watch;

use super::Size;

/// How large the window is, and by whose choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    owner: u64,
    size: Size,
}

#[derive(Clone, Copy, Debug)]
struct Viewer {
    id: u64,
    /// The size that its own place on the page has.
    wanted: Size,
    /// Its page is in front of somebody, by its own word.
    seen: bool,
    /// Its connection works, so that its word can be believed.
    here: bool,
    /// When it was last given the window, counted; 0: never.
    held: u64,
}

impl Viewer {
    fn looks(&self) -> bool {
        self.seen && self.here
    }
}

#[derive(Debug)]
struct Window {
    /// In the order of joining.
    viewers: Vec<Viewer>,
    /// How often the window was given to somebody.
    given: u64,
    held: watch::Sender<Held>,
}

impl Window {
    fn owner(&self) -> u64 {
        self.held.borrow().owner
    }

    fn viewer(&mut self, id: u64) -> Option<&mut Viewer> {
        self.viewers.iter_mut().find(|viewer| viewer.id == id)
    }

    /// Whether somebody who is there looks at the owner's page.
    fn owner_looks(&self) -> bool {
        let owner = self.owner();
        self.viewers
            .iter()
            .any(|viewer| viewer.id == owner && viewer.looks())
    }

    /// Hands the window to whoever is looked at, else to any that is left; of several to the one that had it last, so
    /// that who lent it has it back, and of those that never had it to the newest.
    fn pass_on(&mut self) {
        let owner = self.owner();
        let there = self.viewers.iter().any(|viewer| viewer.id == owner);
        let others = self.viewers.iter().filter(|viewer| viewer.id != owner);
        let next = others
            .filter(|viewer| viewer.looks() || !there)
            .max_by_key(|viewer| (viewer.looks(), viewer.held));
        if let Some(next) = next.copied() {
            self.give(next);
        }
    }

    fn give(&mut self, viewer: Viewer) {
        self.given += 1;
        let given = self.given;
        if let Some(viewer) = self.viewer(viewer.id) {
            viewer.held = given;
        }
        let held = Held {
            owner: viewer.id,
            size: viewer.wanted,
        };
        self.held.send_if_modified(|now| {
            let changes = *now != held;
            *now = held;
            changes
        });
    }
}

/// All windows that are looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes(Arc<Mutex<HashMap<TabId, Window>>>);

impl Sizes {
    fn locked(&self) -> MutexGuard<'_, HashMap<TabId, Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat at this tab's window. Whoever comes first owns it, and so does whoever comes while the owner's page is
    /// in front of nobody.
    pub(super) fn join(&self, tab: &TabId, id: u64, wanted: Size) -> Seat {
        let mut windows = self.locked();
        let viewer = Viewer {
            id,
            wanted,
            seen: true,
            here: true,
            held: 0,
        };
        let window = windows.entry(tab.clone()).or_insert_with(|| Window {
            viewers: Vec::new(),
            given: 0,
            held: watch::Sender::new(Held {
                owner: id,
                size: wanted,
            }),
        });
        window.viewers.push(viewer);
        if !window.owner_looks() || window.owner() == id {
            window.give(viewer);
        }
        Seat {
            sizes: self.clone(),
            tab: tab.clone(),
            id,
            held: window.held.subscribe(),
        }
    }
}

/// One viewer's seat. Dropping it leaves.
#[derive(Debug)]
pub(super) struct Seat {
    sizes: Sizes,
    tab: TabId,
    id: u64,
    held: watch::Receiver<Held>,
}

impl Seat {
    /// How large the window is, and whether this viewer decides it.
    pub(super) fn look(&mut self) -> (Size, bool) {
        let held = *self.held.borrow_and_update();
        (held.size, held.owner == self.id)
    }

    /// Waits until [`Self::look`] has something new to say.
    pub(super) async fn changed(&mut self) {
        // The sender lives in the window, and the window for as long as this seat.
        drop(self.held.changed().await);
    }

    /// The size of this viewer's place; it becomes the window's if the viewer owns it.
    pub(super) fn wants(&self, wanted: Size) {
        self.change(|window, id| {
            let Some(viewer) = window.viewer(id) else {
                return;
            };
            viewer.wanted = wanted;
            let viewer = *viewer;
            if window.owner() == id {
                window.give(viewer);
            }
        });
    }

    pub(super) fn hold(&self, hold: Hold) {
        self.change(|window, id| {
            let owner = window.owner();
            let Some(viewer) = window.viewer(id) else {
                return;
            };
            viewer.seen = hold != Hold::Hidden;
            let viewer = *viewer;
            match hold {
                Hold::Hidden if owner == id => window.pass_on(),
                Hold::Hidden => {}
                Hold::Seen if window.owner_looks() => {}
                Hold::Seen | Hold::Take => window.give(viewer),
            }
        });
    }

    /// Whether this viewer can be heard. While it can't, whoever else looks may decide, as if its page were hidden.
    pub(super) fn here(&self, here: bool) {
        self.change(|window, id| {
            let owner = window.owner();
            let Some(viewer) = window.viewer(id).filter(|viewer| viewer.here != here) else {
                return;
            };
            viewer.here = here;
            let viewer = *viewer;
            if owner == id && !here {
                window.pass_on();
            } else if viewer.looks() && !window.owner_looks() {
                window.give(viewer);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Window, u64)) {
        if let Some(window) = self.sizes.locked().get_mut(&self.tab) {
            change(window, self.id);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut windows = self.sizes.locked();
        let Some(window) = windows.get_mut(&self.tab) else {
            return;
        };
        window.viewers.retain(|viewer| viewer.id != self.id);
        if window.viewers.is_empty() {
            windows.remove(&self.tab);
        } else if window.owner() == self.id {
            window.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cols: u16) -> Size {
        Size { cols, rows: 24 }
    }

    #[test]
    fn only_the_owner_resizes_and_the_rest_is_shown_its_grid() {
        let (sizes, tab) = (Sizes::default(), TabId::from("t-1"));
        let mut desk = sizes.join(&tab, 1, size(120));
        let mut phone = sizes.join(&tab, 2, size(40));
        assert_eq!(desk.look(), (size(120), true));
        assert_eq!(phone.look(), (size(120), false));
        phone.wants(size(30));
        assert_eq!(desk.look(), (size(120), true));
        desk.wants(size(100));
        assert_eq!(phone.look(), (size(100), false));
        // It takes the window when it is told to, with the size it has by now.
        phone.hold(Hold::Take);
        assert_eq!(phone.look(), (size(30), true));
        assert_eq!(desk.look(), (size(30), false));
        drop(phone);
        assert_eq!(desk.look(), (size(100), true));
    }

    #[test]
    fn a_page_that_nobody_sees_gives_way_and_does_not_take_back() {
        let (sizes, tab) = (Sizes::default(), TabId::from("t-1"));
        let mut desk = sizes.join(&tab, 1, size(120));
        desk.hold(Hold::Hidden);
        assert_eq!(desk.look(), (size(120), true), "nobody else is there");
        let mut phone = sizes.join(&tab, 2, size(40));
        assert_eq!(phone.look(), (size(40), true));
        desk.hold(Hold::Seen);
        assert_eq!(desk.look(), (size(40), false));
        phone.hold(Hold::Hidden);
        assert_eq!(desk.look(), (size(120), true));
    }

    #[test]
    fn who_can_not_be_heard_gives_way_and_who_lent_it_has_it_back() {
        let (sizes, tab) = (Sizes::default(), TabId::from("t-1"));
        let mut desk = sizes.join(&tab, 1, size(120));
        let mut tablet = sizes.join(&tab, 2, size(80));
        let mut phone = sizes.join(&tab, 3, size(40));
        phone.hold(Hold::Take);
        assert_eq!(tablet.look(), (size(40), false));
        phone.here(false);
        assert_eq!(
            desk.look(),
            (size(120), true),
            "not the newest: who had it before"
        );
        phone.here(true);
        assert_eq!(desk.look(), (size(120), true), "it does not take back");
        // Nobody is left who looks: the one that has it keeps it, and the first that is back decides.
        phone.hold(Hold::Hidden);
        tablet.here(false);
        desk.here(false);
        assert_eq!(desk.look(), (size(120), true));
        tablet.here(true);
        assert_eq!(tablet.look(), (size(80), true));
        // A page that was hidden when its connection broke is still hidden when it is back.
        tablet.here(false);
        phone.here(false);
        phone.here(true);
        assert_eq!(phone.look(), (size(80), false));
    }

    #[test]
    fn the_last_one_to_leave_leaves_nothing() {
        let (sizes, tab) = (Sizes::default(), TabId::from("t-1"));
        let desk = sizes.join(&tab, 1, size(120));
        let hidden = sizes.join(&tab, 2, size(40));
        hidden.hold(Hold::Hidden);
        drop(desk);
        let (held, own) = { hidden }.look();
        assert_eq!(
            (held, own),
            (size(40), true),
            "hidden, and all that is left"
        );
        assert!(sizes.locked().is_empty());
    }
}
