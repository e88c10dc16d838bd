//! Changes of the layout, one by one and at random; and what is made of a layout that was kept.

use proptest::prelude::*;

use super::*;

fn tab(id: &str, workspace: &str) -> TabRow {
    TabRow {
        id: id.into(),
        workspace: workspace.into(),
        name: None,
        cwd: "/".into(),
        kind: "terminal".into(),
        ended: false,
        created_ms: 0,
        closing_ms: None,
        conversation: None,
        conversation_title: None,
        offered: false,
    }
}

fn row(id: &str, panes: Option<&str>) -> WorkspaceRow {
    WorkspaceRow {
        id: id.into(),
        name: format!("name of {id}"),
        dir: "/".into(),
        color: None,
        group: None,
        panes: panes.map(str::to_owned),
        closing_ms: None,
    }
}

/// Two workspaces of one pane each, `p-w` and `p-v`, with two tabs and one.
fn two() -> Layout {
    let pane = |id: &str| Some(format!(r#"{{"pane":{{"id":"{id}","tabs":[]}}}}"#));
    let rows = vec![
        row("w", pane("p-w").as_deref()),
        row("v", pane("p-v").as_deref()),
    ];
    let tabs = vec![tab("t-1", "w"), tab("t-2", "w"), tab("t-3", "v")];
    let (layout, said) = Layout::from_rows(rows, tabs, &|| unreachable!("all panes are known"));
    assert_eq!(said, Vec::<String>::new());
    layout
}

fn shown(layout: &Layout) -> String {
    let workspaces = layout.workspaces().map(|workspace| {
        let panes = layout.arranged(workspace).panes;
        let panes = tree::panes(&panes).into_iter();
        let panes: Vec<String> = panes
            .map(|pane| format!("{}[{}]", pane.id, pane.tabs.join(" ")))
            .collect();
        format!("{}: {}", workspace.id, panes.join(" "))
    });
    workspaces.collect::<Vec<_>>().join("; ")
}

fn split(pane: &str, tab: Option<&str>, new_pane: &str) -> Change {
    Change::Split {
        workspace: "w".into(),
        pane: pane.into(),
        dir: SplitDir::Right,
        tab: tab.map(str::to_owned),
        new_pane: new_pane.into(),
        new_split: format!("s-{new_pane}"),
    }
}

#[test]
fn a_tab_moves_within_its_pane_and_to_another_workspace() {
    let mut layout = two();
    let place = |tab: &str, pane: &str, index| Change::MoveTab(tab.into(), pane.into(), index);
    layout.apply(place("t-1", "p-w", Some(1))).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-2 t-1]; v: p-v[t-3]");
    layout.apply(place("t-2", "p-v", Some(0))).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-1]; v: p-v[t-2 t-3]");
    // Beyond the end is the end; absent as well.
    layout.apply(place("t-2", "p-v", Some(9))).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-1]; v: p-v[t-3 t-2]");
    layout.apply(place("t-1", "p-v", None)).unwrap();
    assert_eq!(shown(&layout), "w: p-w[]; v: p-v[t-3 t-2 t-1]");
    let order: Vec<&str> = layout.tabs().map(|tab| tab.id.as_str()).collect();
    assert_eq!(order, ["t-3", "t-2", "t-1"]);
    assert!(layout.tabs().all(|tab| tab.workspace == "v"));
}

#[test]
fn a_pane_is_made_with_a_tab_in_it_and_gives_it_back_when_it_is_closed() {
    let mut layout = two();
    layout.apply(split("p-w", Some("t-1"), "p-n")).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-2] p-n[t-1]; v: p-v[t-3]");
    let close = Change::ClosePane("w".into(), "p-n".into());
    layout.apply(close).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-2 t-1]; v: p-v[t-3]");
}

#[test]
fn what_is_not_there_changes_nothing() {
    let before = two();
    let absent = [
        Change::MoveTab("t-9".into(), "p-w".into(), None),
        Change::MoveTab("t-1".into(), "p-9".into(), None),
        Change::RenameTab("t-9".into(), None),
        Change::EditWorkspace("x".into(), Edit::default()),
        split("p-9", None, "p-n"),
        split("p-v", None, "p-n"),
        // The pane could be made, but the tab is not there: neither is done.
        split("p-w", Some("t-9"), "p-n"),
        Change::ClosePane("w".into(), "p-v".into()),
        Change::Resize("w".into(), "s".into(), vec![500, 500]),
        Change::Equalise("x".into()),
    ];
    for change in absent {
        let mut layout = before.clone();
        let why = layout.apply(change.clone()).unwrap_err();
        assert!(matches!(why, Refusal::Absent(_)), "{change:?}: {why}");
        assert_eq!(layout, before, "{change:?}");
    }
    for ids in [vec!["w"], vec!["w", "w"], vec!["w", "v", "x"], vec![]] {
        let mut layout = before.clone();
        let ids = ids.into_iter().map(str::to_owned).collect();
        let why = layout.apply(Change::Order(ids)).unwrap_err();
        assert!(matches!(why, Refusal::InTheWay(_)), "{why}");
    }
}

#[test]
fn what_is_closing_is_shown_to_nobody_and_keeps_its_place() {
    let mut layout = two();
    layout.known_mut("t-1").unwrap().closing_ms = Some(1);
    assert_eq!(shown(&layout), "w: p-w[t-2]; v: p-v[t-3]");
    assert!(layout.tab("t-1").is_none() && layout.known("t-1").is_some());
    // It can't be moved, and others are counted without it.
    let hidden = Change::MoveTab("t-1".into(), "p-v".into(), None);
    layout.apply(hidden).unwrap_err();
    let other = Change::MoveTab("t-3".into(), "p-w".into(), Some(0));
    layout.apply(other).unwrap();
    assert_eq!(shown(&layout), "w: p-w[t-3 t-2]; v: p-v[]");
    layout.known_mut("t-1").unwrap().closing_ms = None;
    assert_eq!(shown(&layout), "w: p-w[t-1 t-3 t-2]; v: p-v[]");
}

#[test]
fn workspaces_are_ordered_named_and_coloured() {
    let mut layout = two();
    let order = Change::Order(vec!["v".into(), "w".into()]);
    layout.apply(order).unwrap();
    assert_eq!(shown(&layout), "v: p-v[t-3]; w: p-w[t-1 t-2]");
    let edit = |json: &str| serde_json::from_str::<Edit>(json);
    let change = edit(r#"{"name":"shop","color":"teal","group":"work"}"#).unwrap();
    layout
        .apply(Change::EditWorkspace("w".into(), change))
        .unwrap();
    let (rows, tabs) = layout.to_rows();
    assert_eq!(rows[1].name, "shop");
    assert_eq!(rows[1].color.as_deref(), Some("teal"));
    let (again, said) = Layout::from_rows(rows, tabs, &|| unreachable!("all panes are known"));
    assert_eq!((again, said), (layout.clone(), Vec::new()));
    // Absent is "as it is", null is "none".
    layout
        .apply(Change::EditWorkspace(
            "w".into(),
            edit(r#"{"color":null}"#).unwrap(),
        ))
        .unwrap();
    let workspace = layout.workspace("shop").unwrap();
    assert_eq!(workspace.color, None);
    assert_eq!(workspace.group.as_deref(), Some("work"));
    edit(r#"{"color":"mauve"}"#).unwrap_err();
    edit(r#"{"colour":"red"}"#).unwrap_err();
}

#[test]
fn there_is_an_end_to_workspaces() {
    let mut layout = two();
    let mut made = 0;
    let refused = loop {
        let mut workspace = layout.workspaces[0].clone();
        workspace.id = format!("w-{made}");
        workspace.panes = tree::one(&format!("p-{made}"), Vec::new());
        match layout.apply(Change::AddWorkspace(workspace)) {
            Ok(()) => made += 1,
            Err(why) => break why,
        }
    };
    assert_eq!(made, WORKSPACES_MAX - 2);
    assert!(matches!(refused, Refusal::InTheWay(_)), "{refused}");
}

#[test]
fn a_tree_that_can_not_be_read_becomes_one_pane_with_all_tabs() {
    let good = r#"{"split":{"id":"s","dir":"down","sizes":[500,500],"parts":[
        {"pane":{"id":"a","tabs":["t-1"]}},{"pane":{"id":"b","tabs":["t-2","t-3","gone"]}}]}}"#;
    let broken = [
        &good[..good.len() / 2],
        "",
        "[]",
        r#"{"pane":{"id":"a"}}"#,
        r#"{"pane":{"id":"","tabs":[]}}"#,
        &good.replace("500,500", "500,400"),
        &good.replace("\"b\"", "\"a\""),
        &good.replace("down", "up"),
        &"[".repeat(100_000),
        &format!(
            "{}{{}}{}",
            r#"{"split":{"id":"s","dir":"down","sizes":[],"parts":["#.repeat(5_000),
            "]}}".repeat(5_000)
        ),
    ];
    let tabs = || vec![tab("t-1", "w"), tab("t-2", "w"), tab("t-4", "w")];
    for panes in broken {
        let id = || "p-new".to_owned();
        let (layout, said) = Layout::from_rows(vec![row("w", Some(panes))], tabs(), &id);
        assert_eq!(shown(&layout), "w: p-new[t-1 t-2 t-4]");
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("one pane"), "{said:?}");
    }
    let none = || unreachable!("the tree is whole");
    let (layout, said) = Layout::from_rows(vec![row("w", Some(good))], tabs(), &none);
    assert_eq!(shown(&layout), "w: a[t-1 t-4] b[t-2]");
    assert!(said.is_empty());
    let before = || "p-new".to_owned();
    let (layout, said) = Layout::from_rows(vec![row("w", None)], tabs(), &before);
    assert_eq!(shown(&layout), "w: p-new[t-1 t-2 t-4]");
    assert!(said.is_empty(), "{said:?}");
}

fn change() -> impl Strategy<Value = (u8, usize, usize, usize)> {
    (0_u8..8, any::<usize>(), any::<usize>(), any::<usize>())
}

proptest! {
    #[test]
    fn whatever_is_changed_every_tab_is_in_one_pane_of_its_workspace(
        changes in prop::collection::vec(change(), 0..40)
    ) {
        let mut layout = two();
        for (n, (kind, a, b, c)) in changes.into_iter().enumerate() {
            let tabs: Vec<String> = layout.tabs().map(|tab| tab.id.clone()).collect();
            let spaces: Vec<&Workspace> = layout.workspaces().collect();
            let space = spaces[a % spaces.len()];
            let panes: Vec<String> = spaces
                .iter()
                .flat_map(|space| tree::panes(&space.panes))
                .map(|pane| pane.id.clone())
                .collect();
            let (tab, pane) = (tabs[b % tabs.len()].clone(), panes[c % panes.len()].clone());
            let change = match kind {
                0 | 1 => Change::MoveTab(tab, pane, Some(a % 4)),
                2 | 3 => Change::Split {
                    workspace: space.id.clone(),
                    pane,
                    dir: if b.is_multiple_of(2) { SplitDir::Right } else { SplitDir::Down },
                    tab: a.is_multiple_of(3).then_some(tab),
                    new_pane: format!("p-{n}"),
                    new_split: format!("s-{n}"),
                },
                4 | 5 => Change::ClosePane(space.id.clone(), pane),
                6 => Change::Equalise(space.id.clone()),
                _ => Change::Order(spaces.iter().rev().map(|space| space.id.clone()).collect()),
            };
            let before = layout.clone();
            if layout.apply(change).is_err() {
                prop_assert_eq!(&layout, &before);
            }
            let mut all: Vec<&str> = layout.tabs().map(|tab| tab.id.as_str()).collect();
            for space in layout.workspaces() {
                prop_assert_eq!(tree::fault(&space.panes), None);
                for tab in tree::tabs(&space.panes) {
                    prop_assert_eq!(&layout.tab(tab).unwrap().workspace, &space.id);
                }
            }
            let in_panes: Vec<&str> =
                layout.workspaces().flat_map(|space| tree::tabs(&space.panes)).collect();
            prop_assert_eq!(&all, &in_panes);
            all.sort_unstable();
            prop_assert_eq!(all, ["t-1", "t-2", "t-3"]);
            let (rows, tabs) = layout.to_rows();
            let none = || unreachable!("all panes are known");
            let (again, said) = Layout::from_rows(rows, tabs, &none);
            prop_assert_eq!((&again, said.len()), (&layout, 0));
        }
    }
}
