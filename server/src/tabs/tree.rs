//! The panes of one workspace: a tree of splits with panes for leaves. Pure: trees in, trees out, no ids made
//! and nothing kept.
//!
//! A tree that leaves here has no split of fewer than two parts, none whose part is split in its own direction,
//! shares that add up to a whole, and every tab in one place only.

use std::collections::BTreeSet;

use purplemux_wire::browser::{PaneArea, PaneSplit, PaneTree, SplitDir};
use thiserror::Error;

/// Panes of one workspace: more than a screen shows legibly.
pub const PANES_MAX: usize = 16;

/// Splits within each other.
pub const DEPTH_MAX: usize = 8;

/// The whole of a split's shares.
pub const WHOLE: u16 = 1000;

/// The smallest share of a part; with [`PANES_MAX`] in one split it is still to be had.
pub const SHARE_MIN: u16 = 20;

/// Why a tree stays as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Odd {
    /// No pane of this id.
    #[error("There is no pane {0:?} here; it may have been closed meanwhile.")]
    NoPane(String),
    /// No split of this id.
    #[error("There is no split {0:?} here; it may have been closed meanwhile.")]
    NoSplit(String),
    /// The only pane.
    #[error("The last pane of a workspace stays; close its tabs instead.")]
    Last,
    /// Too many panes, or too deep.
    #[error(
        "A workspace may have {PANES_MAX} panes, and {DEPTH_MAX} splits within each other; close one first."
    )]
    Full,
    /// Shares that are none.
    #[error(
        "Give one size for each of the {0} parts, each at least {SHARE_MIN} and together {WHOLE}."
    )]
    Sizes(usize),
}

/// One pane with these tabs.
#[must_use]
pub fn one(id: &str, tabs: Vec<String>) -> PaneTree {
    PaneTree::Pane(PaneArea {
        id: id.to_owned(),
        tabs,
    })
}

/// All panes, from left to right and from top to bottom.
#[must_use]
pub fn panes(tree: &PaneTree) -> Vec<&PaneArea> {
    match tree {
        PaneTree::Pane(pane) => vec![pane],
        PaneTree::Split(split) => split.parts.iter().flat_map(panes).collect(),
    }
}

/// All tabs, in the order of the panes.
#[must_use]
pub fn tabs(tree: &PaneTree) -> Vec<&str> {
    let all = panes(tree).into_iter();
    all.flat_map(|pane| pane.tabs.iter().map(String::as_str))
        .collect()
}

/// A pane of this id.
pub fn pane_mut<'a>(tree: &'a mut PaneTree, id: &str) -> Option<&'a mut PaneArea> {
    match tree {
        PaneTree::Pane(pane) => (pane.id == id).then_some(pane),
        PaneTree::Split(split) => split.parts.iter_mut().find_map(|part| pane_mut(part, id)),
    }
}

/// The pane that comes first.
pub fn first_mut(tree: &mut PaneTree) -> &mut PaneArea {
    match tree {
        PaneTree::Pane(pane) => pane,
        PaneTree::Split(split) => {
            let part = split.parts.first_mut();
            first_mut(part.expect("a split has two parts or more"))
        }
    }
}

/// The tree without the tabs that are not `wanted`.
#[must_use]
pub fn only(tree: &PaneTree, wanted: &dyn Fn(&str) -> bool) -> PaneTree {
    let mut tree = tree.clone();
    each_pane(&mut tree, &mut |pane| pane.tabs.retain(|tab| wanted(tab)));
    tree
}

/// Puts a new pane beside or below this one, with an equal share.
///
/// # Errors
/// There is no such pane, or no room for another.
pub fn split(
    tree: &mut PaneTree,
    pane: &str,
    dir: SplitDir,
    new_pane: &str,
    new_split: &str,
) -> Result<(), Odd> {
    let all = panes(tree);
    if !all.iter().any(|other| other.id == pane) {
        return Err(Odd::NoPane(pane.to_owned()));
    }
    if all.len() >= PANES_MAX {
        return Err(Odd::Full);
    }
    let mut next = tree.clone();
    divide(&mut next, pane, dir, new_pane, new_split);
    if depth(&next) > DEPTH_MAX {
        return Err(Odd::Full);
    }
    *tree = next;
    Ok(())
}

fn divide(tree: &mut PaneTree, pane: &str, dir: SplitDir, new_pane: &str, new_split: &str) {
    match tree {
        PaneTree::Pane(area) if area.id == pane => {
            let beside = one(new_pane, Vec::new());
            *tree = PaneTree::Split(PaneSplit {
                id: new_split.to_owned(),
                dir,
                parts: vec![tree.clone(), beside],
                sizes: equal_shares(2),
            });
        }
        PaneTree::Pane(_) => {}
        PaneTree::Split(split) => {
            let here = split.parts.iter().position(
                |part| matches!(part, PaneTree::Pane(area) if area.id == pane && split.dir == dir),
            );
            let Some(at) = here else {
                for part in &mut split.parts {
                    divide(part, pane, dir, new_pane, new_split);
                }
                return;
            };
            let share = split.sizes[at];
            split.parts.insert(at + 1, one(new_pane, Vec::new()));
            split.sizes[at] = share - share / 2;
            split.sizes.insert(at + 1, share / 2);
            if share / 2 < SHARE_MIN {
                split.sizes = equal_shares(split.parts.len());
            }
        }
    }
}

/// Takes a pane away. Its tabs go to the end of the pane before it, its share to its neighbour.
///
/// # Errors
/// There is no such pane, or it is the only one.
pub fn close(tree: &mut PaneTree, pane: &str) -> Result<(), Odd> {
    let all = panes(tree);
    let tabs = all.iter().find(|area| area.id == pane);
    let tabs = tabs
        .ok_or_else(|| Odd::NoPane(pane.to_owned()))?
        .tabs
        .clone();
    if all.len() == 1 {
        return Err(Odd::Last);
    }
    if let Some(heir) = take_out(tree, pane)
        && let Some(heir) = pane_mut(tree, &heir)
    {
        heir.tabs.extend(tabs);
    }
    flatten(tree);
    Ok(())
}

/// Removes the leaf; the id of the pane nearest to it.
fn take_out(tree: &mut PaneTree, pane: &str) -> Option<String> {
    let PaneTree::Split(split) = tree else {
        return None;
    };
    let here = |part: &PaneTree| matches!(part, PaneTree::Pane(area) if area.id == pane);
    let Some(at) = split.parts.iter().position(here) else {
        return split.parts.iter_mut().find_map(|part| take_out(part, pane));
    };
    split.parts.remove(at);
    let share = split.sizes.remove(at);
    // The one before it, else the one that has moved into its place.
    let beside = at.saturating_sub(1);
    split.sizes[beside] += share;
    let nearest = panes(&split.parts[beside]);
    let nearest = if at == 0 {
        nearest.first()
    } else {
        nearest.last()
    };
    nearest.map(|area| area.id.clone())
}

/// Takes away splits of one part, and those within one of the same direction.
fn flatten(tree: &mut PaneTree) {
    let PaneTree::Split(split) = tree else {
        return;
    };
    for part in &mut split.parts {
        flatten(part);
    }
    let dir = split.dir;
    let parts = std::mem::take(&mut split.parts);
    let sizes = std::mem::take(&mut split.sizes);
    for (part, size) in parts.into_iter().zip(sizes) {
        match part {
            PaneTree::Split(inner) if inner.dir == dir => {
                split.sizes.extend(within(size, &inner.sizes));
                split.parts.extend(inner.parts);
            }
            PaneTree::Pane(_) | PaneTree::Split(_) => {
                split.sizes.push(size);
                split.parts.push(part);
            }
        }
    }
    if split.sizes.iter().any(|size| *size < SHARE_MIN) {
        split.sizes = equal_shares(split.parts.len());
    }
    if split.parts.len() == 1
        && let Some(only) = split.parts.pop()
    {
        *tree = only;
    }
}

/// The shares of a split's parts, as shares of the `whole` that the split had itself.
fn within(whole: u16, sizes: &[u16]) -> Vec<u16> {
    let scaled = |size: &u16| {
        let share = u32::from(*size) * u32::from(whole) / u32::from(WHOLE);
        u16::try_from(share).unwrap_or(0)
    };
    let mut shares: Vec<u16> = sizes.iter().map(scaled).collect();
    let lost = whole.saturating_sub(shares.iter().sum());
    if let Some(first) = shares.first_mut() {
        *first += lost;
    }
    shares
}

/// Gives a split's parts these shares.
///
/// # Errors
/// There is no such split, or these are no shares of its parts.
pub fn resize(tree: &mut PaneTree, split: &str, sizes: &[u16]) -> Result<(), Odd> {
    let found = split_mut(tree, split).ok_or_else(|| Odd::NoSplit(split.to_owned()))?;
    if !are_shares(sizes, found.parts.len()) {
        return Err(Odd::Sizes(found.parts.len()));
    }
    found.sizes = sizes.to_vec();
    Ok(())
}

/// Gives the parts of every split equal shares.
pub fn equalise(tree: &mut PaneTree) {
    if let PaneTree::Split(split) = tree {
        split.sizes = equal_shares(split.parts.len());
        split.parts.iter_mut().for_each(equalise);
    }
}

/// Why a tree that was kept can't be used; `None`: it can.
#[must_use]
pub fn fault(tree: &PaneTree) -> Option<&'static str> {
    let all = panes(tree);
    let mut ids: Vec<&str> = all.iter().map(|pane| pane.id.as_str()).collect();
    splits(tree, &mut ids);
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    if distinct.len() != ids.len() || distinct.contains("") {
        return Some("an id is there twice, or is empty");
    }
    if all.len() > PANES_MAX || depth(tree) > DEPTH_MAX {
        return Some("it has too many panes");
    }
    (!is_sound(tree)).then_some("a split is not what it must be")
}

fn is_sound(tree: &PaneTree) -> bool {
    match tree {
        PaneTree::Pane(_) => true,
        PaneTree::Split(split) => {
            split.parts.len() >= 2
                && are_shares(&split.sizes, split.parts.len())
                && split.parts.iter().all(|part| {
                    is_sound(part)
                        && !matches!(part, PaneTree::Split(inner) if inner.dir == split.dir)
                })
        }
    }
}

fn are_shares(sizes: &[u16], parts: usize) -> bool {
    sizes.len() == parts
        && sizes.iter().all(|size| *size >= SHARE_MIN)
        && sizes.iter().map(|size| u32::from(*size)).sum::<u32>() == u32::from(WHOLE)
}

/// As equal as thousandths can be; the first get what is over.
fn equal_shares(parts: usize) -> Vec<u16> {
    let parts = u16::try_from(parts.max(1)).unwrap_or(WHOLE);
    let over = WHOLE % parts;
    (0..parts)
        .map(|part| WHOLE / parts + u16::from(part < over))
        .collect()
}

fn depth(tree: &PaneTree) -> usize {
    match tree {
        PaneTree::Pane(_) => 0,
        PaneTree::Split(split) => 1 + split.parts.iter().map(depth).max().unwrap_or(0),
    }
}

fn splits<'a>(tree: &'a PaneTree, ids: &mut Vec<&'a str>) {
    if let PaneTree::Split(split) = tree {
        ids.push(&split.id);
        split.parts.iter().for_each(|part| splits(part, ids));
    }
}

fn split_mut<'a>(tree: &'a mut PaneTree, id: &str) -> Option<&'a mut PaneSplit> {
    let PaneTree::Split(split) = tree else {
        return None;
    };
    if split.id == id {
        return Some(split);
    }
    split.parts.iter_mut().find_map(|part| split_mut(part, id))
}

fn each_pane(tree: &mut PaneTree, change: &mut dyn FnMut(&mut PaneArea)) {
    match tree {
        PaneTree::Pane(pane) => change(pane),
        PaneTree::Split(split) => {
            for part in &mut split.parts {
                each_pane(part, change);
            }
        }
    }
}

/// Takes tabs out that are not `wanted` or stand there a second time; those that are wanted and missing go to the
/// end of the first pane, in their order.
pub fn hold(tree: &mut PaneTree, wanted: &[&str]) {
    let mut seen = BTreeSet::new();
    each_pane(tree, &mut |pane| {
        pane.tabs
            .retain(|tab| wanted.contains(&tab.as_str()) && seen.insert(tab.clone()));
    });
    let missing = wanted.iter().filter(|tab| !seen.contains(**tab));
    let missing: Vec<String> = missing.map(|tab| (*tab).to_owned()).collect();
    first_mut(tree).tabs.extend(missing);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(tree: &PaneTree) -> String {
        match tree {
            PaneTree::Pane(pane) => format!("{}[{}]", pane.id, pane.tabs.join(" ")),
            PaneTree::Split(split) => {
                let sign = match split.dir {
                    SplitDir::Right => "|",
                    SplitDir::Down => "-",
                };
                let parts = split.parts.iter().zip(&split.sizes);
                let parts: Vec<String> = parts
                    .map(|(part, size)| format!("{size}:{}", drawn(part)))
                    .collect();
                format!("({})", parts.join(&format!(" {sign} ")))
            }
        }
    }

    fn three() -> PaneTree {
        let mut tree = one("a", vec!["1".into(), "2".into()]);
        split(&mut tree, "a", SplitDir::Right, "b", "s").unwrap();
        split(&mut tree, "b", SplitDir::Down, "c", "t").unwrap();
        tree
    }

    #[test]
    fn a_pane_is_split_beside_itself_and_within_a_split_of_the_same_direction() {
        let mut tree = three();
        assert_eq!(drawn(&tree), "(500:a[1 2] | 500:(500:b[] - 500:c[]))");
        split(&mut tree, "a", SplitDir::Right, "d", "unused").unwrap();
        assert_eq!(
            drawn(&tree),
            "(250:a[1 2] | 250:d[] | 500:(500:b[] - 500:c[]))"
        );
        let odd = split(&mut tree, "x", SplitDir::Down, "e", "u").unwrap_err();
        assert_eq!(odd, Odd::NoPane("x".into()));
    }

    #[test]
    fn a_closed_pane_leaves_its_tabs_and_its_share_to_its_neighbour() {
        let mut tree = three();
        close(&mut tree, "a").unwrap();
        // The split of one part is gone, and b was the nearest.
        assert_eq!(drawn(&tree), "(500:b[1 2] - 500:c[])");
        close(&mut tree, "c").unwrap();
        assert_eq!(drawn(&tree), "b[1 2]");
        assert_eq!(close(&mut tree, "b"), Err(Odd::Last));
        assert_eq!(close(&mut tree, "c"), Err(Odd::NoPane("c".into())));
    }

    #[test]
    fn splits_of_one_direction_become_one_when_what_was_between_them_is_closed() {
        let mut tree = one("a", Vec::new());
        split(&mut tree, "a", SplitDir::Right, "b", "s").unwrap();
        split(&mut tree, "b", SplitDir::Down, "c", "t").unwrap();
        split(&mut tree, "c", SplitDir::Right, "d", "u").unwrap();
        close(&mut tree, "b").unwrap();
        assert_eq!(drawn(&tree), "(500:a[] | 250:c[] | 250:d[])");
        assert_eq!(fault(&tree), None);
    }

    #[test]
    fn shares_are_a_whole_and_no_part_vanishes() {
        let mut tree = three();
        resize(&mut tree, "s", &[700, 300]).unwrap();
        for wrong in [
            &[700, 301][..],
            &[1000][..],
            &[990, 10][..],
            &[][..],
            &[500, 250, 250][..],
        ] {
            let odd = resize(&mut tree, "s", wrong).unwrap_err();
            assert_eq!(odd, Odd::Sizes(2), "{wrong:?}");
        }
        let odd = resize(&mut tree, "a", &[500, 500]).unwrap_err();
        assert_eq!(odd, Odd::NoSplit("a".into()));
        assert_eq!(drawn(&tree), "(700:a[1 2] | 300:(500:b[] - 500:c[]))");
        equalise(&mut tree);
        assert_eq!(drawn(&tree), "(500:a[1 2] | 500:(500:b[] - 500:c[]))");
        assert_eq!(equal_shares(3), [334, 333, 333]);
    }

    #[test]
    fn there_is_room_for_sixteen_panes_and_eight_splits_within_each_other() {
        let mut row = one("p0", Vec::new());
        for n in 1..PANES_MAX {
            split(&mut row, "p0", SplitDir::Right, &format!("p{n}"), "s").unwrap();
        }
        assert_eq!(fault(&row), None);
        let odd = split(&mut row, "p0", SplitDir::Right, "q", "s").unwrap_err();
        assert_eq!(odd, Odd::Full);
        let mut deep = one("p0", Vec::new());
        let direction = |n| match n % 2 {
            0 => SplitDir::Right,
            _ => SplitDir::Down,
        };
        for n in 1..=DEPTH_MAX {
            let (last, new) = (format!("p{}", n - 1), format!("p{n}"));
            split(&mut deep, &last, direction(n), &new, &format!("s{n}")).unwrap();
        }
        assert_eq!(fault(&deep), None);
        let before = deep.clone();
        let last = format!("p{DEPTH_MAX}");
        let odd = split(&mut deep, &last, direction(DEPTH_MAX + 1), "q", "s").unwrap_err();
        assert_eq!(odd, Odd::Full);
        assert_eq!(deep, before);
    }

    #[test]
    fn a_kept_tree_is_brought_in_line_with_the_tabs_there_are() {
        let mut tree = three();
        pane_mut(&mut tree, "c").unwrap().tabs = vec!["3".into(), "1".into(), "gone".into()];
        hold(&mut tree, &["1", "2", "3", "4", "5"]);
        assert_eq!(drawn(&tree), "(500:a[1 2 4 5] | 500:(500:b[] - 500:c[3]))");
    }

    #[test]
    fn a_tree_that_is_none_is_found_out() {
        let whole = three();
        assert_eq!(fault(&whole), None);
        let mut twice = whole.clone();
        pane_mut(&mut twice, "c").unwrap().id = "a".into();
        assert!(fault(&twice).is_some());
        let mut short = whole.clone();
        split_mut(&mut short, "s").unwrap().sizes = vec![500, 400];
        assert!(fault(&short).is_some());
        let mut single = whole.clone();
        let split = split_mut(&mut single, "t").unwrap();
        split.parts.pop();
        split.sizes = vec![1000];
        assert!(fault(&single).is_some());
        let mut nested = whole;
        split_mut(&mut nested, "t").unwrap().dir = SplitDir::Right;
        assert!(fault(&nested).is_some());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Split(usize, bool),
        Close(usize),
        Equal,
        Resize(usize, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (any::<usize>(), any::<bool>()).prop_map(|(at, down)| Step::Split(at, down)),
            2 => any::<usize>().prop_map(Step::Close),
            1 => Just(Step::Equal),
            1 => (any::<usize>(), any::<u16>()).prop_map(|(at, by)| Step::Resize(at, by)),
        ]
    }

    proptest! {
        #[test]
        fn whatever_is_done_the_tree_stays_one_and_no_tab_is_lost(
            steps in prop::collection::vec(step(), 0..60)
        ) {
            let mut tree = one("p", vec!["1".into(), "2".into(), "3".into()]);
            for (n, step) in steps.into_iter().enumerate() {
                let ids: Vec<String> = panes(&tree).iter().map(|pane| pane.id.clone()).collect();
                let before = tree.clone();
                let done = match step {
                    Step::Split(at, down) => {
                        let dir = if down { SplitDir::Down } else { SplitDir::Right };
                        let pane = &ids[at % ids.len()];
                        split(&mut tree, pane, dir, &format!("p{n}"), &format!("s{n}"))
                    }
                    Step::Close(at) => close(&mut tree, &ids[at % ids.len()]),
                    Step::Equal => {
                        equalise(&mut tree);
                        Ok(())
                    }
                    Step::Resize(at, by) => {
                        let mut ids = Vec::new();
                        splits(&before, &mut ids);
                        match ids.is_empty() {
                            true => Ok(()),
                            false => {
                                let id = ids[at % ids.len()];
                                resize(&mut tree, id, &[by, WHOLE.saturating_sub(by)])
                            }
                        }
                    }
                };
                if done.is_err() {
                    prop_assert_eq!(&tree, &before);
                }
                prop_assert_eq!(fault(&tree), None, "{}", drawn(&tree));
                let mut all = tabs(&tree);
                all.sort_unstable();
                prop_assert_eq!(all, ["1", "2", "3"]);
            }
        }
    }
}
