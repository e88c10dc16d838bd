//! The layout as a value: workspaces in order, their panes, their tabs; and the named changes that it takes. Pure:
//! ids and times come from the caller, and nothing is kept or told from here.
//!
//! A change is made whole or not at all. Every tab is in one pane of its workspace, always; what is closed but can
//! still be brought back keeps its place and is shown to nobody.

use std::collections::BTreeMap;
use std::sync::Arc;

use purplemux_core::event::{TabFacts, WorkspaceFacts};
use purplemux_core::{TabId, WorkspaceId};
use purplemux_wire::browser::{Arranged, Color, PaneTree, Resume, SplitDir};
use purplemux_wire::sentence::Cause;
use serde::{Deserialize, Serialize};

use super::{Refusal, is_foreign, no_tab, number, tree};

use crate::hub;
use crate::store::{TabRow, WorkspaceRow};

/// Workspaces; more than a person can tell apart.
pub const WORKSPACES_MAX: usize = 200;

/// One workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its default directory.
    pub dir: String,
    /// The colour the person gave it.
    pub color: Option<Color>,
    /// The heading it stands under.
    pub group: Option<String>,
    /// Its panes, with all of its tabs.
    pub panes: PaneTree,
    /// It is closed, and can be brought back until then (unix ms).
    pub closing_ms: Option<i64>,
}

/// The layout as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// All workspaces in order, those that are closing too.
    pub(super) workspaces: Vec<Workspace>,
    /// All tabs in the order of their panes, those that are closing too.
    pub(super) tabs: Vec<TabRow>,
}

/// What is to be changed of a workspace. A word that is absent changes nothing; one that is null takes away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Another name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Another directory for new tabs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dir: Option<String>,
    /// Another colour.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "given"
    )]
    pub color: Option<Option<Color>>,
    /// Another heading.
    #[serde(
        skip_serializing_if = "Option::is_none",
        default,
        deserialize_with = "given"
    )]
    pub group: Option<Option<String>>,
}

/// A word that is there, be it null.
fn given<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A change of the layout alone: no shell begins or ends by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A new workspace, at the end.
    AddWorkspace(Workspace),
    /// Name, directory, colour, heading; checked and cleaned already.
    EditWorkspace(String, Edit),
    /// All workspaces in this order.
    Order(Vec<String>),
    /// A new pane beside or below another, with this tab in it.
    Split {
        /// The workspace.
        workspace: String,
        /// The pane to be divided.
        pane: String,
        /// Where the new one lies.
        dir: SplitDir,
        /// The tab that moves into it.
        tab: Option<String>,
        /// The new pane's id.
        new_pane: String,
        /// The new split's id, if one is needed.
        new_split: String,
    },
    /// A pane goes, its tabs stay.
    ClosePane(String, String),
    /// Other shares of a split.
    Resize(String, String, Vec<u16>),
    /// Equal shares everywhere in a workspace.
    Equalise(String),
    /// A tab to this pane, at this place among those shown there; at the end if absent.
    MoveTab(String, String, Option<usize>),
    /// A tab's name; `None` takes it away.
    RenameTab(String, Option<String>),
}

impl Layout {
    /// What was kept, put in order: each workspace's panes hold its tabs. What can't be read becomes one pane, with a
    /// sentence for the log.
    #[must_use]
    pub fn from_rows(
        workspaces: Vec<WorkspaceRow>,
        tabs: Vec<TabRow>,
        new_id: &dyn Fn() -> String,
    ) -> (Self, Vec<String>) {
        let mut said = Vec::new();
        let workspaces = workspaces
            .into_iter()
            .map(|row| {
                let panes = row.panes.as_deref().map(read_panes).transpose();
                let panes = panes.unwrap_or_else(|why| {
                    said.push(format!(
                        "The panes of the workspace {:?} can't be used ({why}); all its tabs are in one pane now.",
                        row.name
                    ));
                    None
                });
                let color = row.color.and_then(|word| {
                    serde_json::from_value(serde_json::Value::String(word)).ok()
                });
                Workspace {
                    panes: panes.unwrap_or_else(|| tree::one(&new_id(), Vec::new())),
                    id: row.id,
                    name: row.name,
                    dir: row.dir,
                    color,
                    group: row.group,
                    closing_ms: row.closing_ms,
                }
            })
            .collect();
        let mut layout = Self { workspaces, tabs };
        layout.arrange();
        (layout, said)
    }

    /// What is to be kept, in order.
    #[must_use]
    pub fn to_rows(&self) -> (Vec<WorkspaceRow>, Vec<TabRow>) {
        let row = |workspace: &Workspace| WorkspaceRow {
            id: workspace.id.clone(),
            name: workspace.name.clone(),
            dir: workspace.dir.clone(),
            color: workspace.color.map(word),
            group: workspace.group.clone(),
            panes: serde_json::to_string(&workspace.panes).ok(),
            closing_ms: workspace.closing_ms,
        };
        (self.workspaces.iter().map(row).collect(), self.tabs.clone())
    }

    /// The workspaces that are shown, in order.
    pub fn workspaces(&self) -> impl Iterator<Item = &Workspace> {
        let all = self.workspaces.iter();
        all.filter(|workspace| workspace.closing_ms.is_none())
    }

    /// The tabs that are shown, in order.
    pub fn tabs(&self) -> impl Iterator<Item = &TabRow> {
        self.tabs.iter().filter(|tab| tab.closing_ms.is_none())
    }

    /// A tab of this id that is shown.
    #[must_use]
    pub fn tab(&self, id: &str) -> Option<&TabRow> {
        self.tabs().find(|tab| tab.id == id)
    }

    /// A workspace that is shown, by its id or else its name.
    #[must_use]
    pub fn workspace(&self, wanted: &str) -> Option<&Workspace> {
        self.workspaces()
            .find(|workspace| workspace.id == wanted)
            .or_else(|| self.workspaces().find(|workspace| workspace.name == wanted))
    }

    /// The workspace as it is shown: without tabs that are closing.
    #[must_use]
    pub fn arranged(&self, workspace: &Workspace) -> Arranged {
        Arranged {
            color: workspace.color,
            group: workspace.group.clone(),
            panes: tree::only(&workspace.panes, &|id| self.tab(id).is_some()),
        }
    }

    /// A tab of this id, be it closing.
    pub(super) fn known(&self, id: &str) -> Option<&TabRow> {
        self.tabs.iter().find(|tab| tab.id == id)
    }

    pub(super) fn known_mut(&mut self, id: &str) -> Option<&mut TabRow> {
        self.tabs.iter_mut().find(|tab| tab.id == id)
    }

    /// The workspace that a pane is in.
    pub(super) fn holder(&self, pane: &str) -> Option<&Workspace> {
        self.workspaces().find(|workspace| {
            let panes = tree::panes(&workspace.panes);
            panes.iter().any(|area| area.id == pane)
        })
    }

    /// What the hub needs beside the facts of core.
    pub(super) fn marks(&self) -> hub::Marks {
        let ids = |wanted: fn(&TabRow) -> bool| {
            let tabs = self.tabs.iter().filter(|tab| wanted(tab));
            tabs.map(|tab| tab.id.clone()).collect()
        };
        let arranged = self.workspaces();
        let offers = self.tabs().filter(|tab| tab.offered);
        hub::Marks {
            ended: ids(|tab| tab.ended),
            foreign: ids(is_foreign),
            closing: ids(|tab| tab.closing_ms.is_some()),
            arranged: arranged
                .map(|workspace| (workspace.id.clone(), self.arranged(workspace)))
                .collect(),
            resume: offers
                .filter_map(|tab| {
                    let conversation = tab.conversation.clone()?;
                    let title = tab.conversation_title.clone().unwrap_or_default();
                    let resume = Resume {
                        conversation,
                        title,
                    };
                    Some((tab.id.clone(), resume))
                })
                .collect(),
        }
    }

    /// What core is told.
    pub(super) fn facts(&self) -> Vec<WorkspaceFacts> {
        self.workspaces()
            .map(|workspace| WorkspaceFacts {
                id: WorkspaceId::from(workspace.id.as_str()),
                name: Arc::from(workspace.name.as_str()),
                dir: Arc::from(workspace.dir.as_str()),
                tabs: self
                    .tabs()
                    .filter(|tab| tab.workspace == workspace.id)
                    .map(|tab| TabFacts {
                        id: TabId::from(tab.id.as_str()),
                        name: tab.name.as_deref().map(Arc::from),
                        cwd: Arc::from(tab.cwd.as_str()),
                        ended: tab.ended,
                    })
                    .collect(),
            })
            .collect()
    }

    /// Makes one change.
    ///
    /// # Errors
    /// It names what is not there, or there is no room; the layout stays as it was.
    pub fn apply(&mut self, change: Change) -> Result<(), Refusal> {
        let mut next = self.clone();
        next.change(change)?;
        next.arrange();
        *self = next;
        Ok(())
    }

    fn change(&mut self, change: Change) -> Result<(), Refusal> {
        match change {
            Change::AddWorkspace(workspace) => {
                if self.workspaces.len() >= WORKSPACES_MAX {
                    return Err(Refusal::InTheWay(Cause::WorkspacesFull {
                        max: number(WORKSPACES_MAX),
                    }));
                }
                self.workspaces.push(workspace);
            }
            Change::EditWorkspace(id, edit) => {
                let workspace = self.workspace_mut(&id)?;
                workspace.name = edit.name.unwrap_or_else(|| workspace.name.clone());
                workspace.dir = edit.dir.unwrap_or_else(|| workspace.dir.clone());
                workspace.color = edit.color.unwrap_or(workspace.color);
                workspace.group = edit.group.unwrap_or_else(|| workspace.group.clone());
            }
            Change::Order(ids) => self.order(&ids)?,
            Change::Split {
                workspace,
                pane,
                dir,
                tab,
                new_pane,
                new_split,
            } => {
                let panes = &mut self.workspace_mut(&workspace)?.panes;
                tree::split(panes, &pane, dir, &new_pane, &new_split)?;
                if let Some(tab) = tab {
                    self.place(&tab, &new_pane, None)?;
                }
            }
            Change::ClosePane(workspace, pane) => {
                tree::close(&mut self.workspace_mut(&workspace)?.panes, &pane)?;
            }
            Change::Resize(workspace, split, sizes) => {
                tree::resize(&mut self.workspace_mut(&workspace)?.panes, &split, &sizes)?;
            }
            Change::Equalise(workspace) => {
                tree::equalise(&mut self.workspace_mut(&workspace)?.panes);
            }
            Change::MoveTab(tab, pane, index) => self.place(&tab, &pane, index)?,
            Change::RenameTab(tab, name) => {
                self.shown_mut(&tab)?.name = name;
            }
        }
        Ok(())
    }

    /// Brings panes and tabs in line: each tab in one pane of its workspace, tabs in the order of the panes.
    pub(super) fn arrange(&mut self) {
        for workspace in &mut self.workspaces {
            let tabs = self.tabs.iter();
            let own: Vec<&str> = tabs
                .filter(|tab| tab.workspace == workspace.id)
                .map(|tab| tab.id.as_str())
                .collect();
            tree::hold(&mut workspace.panes, &own);
        }
        let order: BTreeMap<String, usize> = self
            .workspaces
            .iter()
            .flat_map(|workspace| tree::tabs(&workspace.panes))
            .enumerate()
            .map(|(at, tab)| (tab.to_owned(), at))
            .collect();
        self.tabs
            .sort_by_key(|tab| order.get(&tab.id).copied().unwrap_or(usize::MAX));
    }

    /// Puts a new tab into a pane, at its end.
    pub(super) fn add(&mut self, tab: TabRow, pane: Option<&str>) {
        let workspace = self.workspaces.iter_mut().find(|w| w.id == tab.workspace);
        if let Some(workspace) = workspace
            && let Some(area) = pane.and_then(|pane| tree::pane_mut(&mut workspace.panes, pane))
        {
            area.tabs.push(tab.id.clone());
        }
        self.tabs.push(tab);
        self.arrange();
    }

    /// Forgets a tab.
    pub(super) fn remove(&mut self, id: &str) {
        self.tabs.retain(|tab| tab.id != id);
        self.arrange();
    }

    fn shown_mut(&mut self, id: &str) -> Result<&mut TabRow, Refusal> {
        let mut tabs = self.tabs.iter_mut();
        tabs.find(|tab| tab.id == id && tab.closing_ms.is_none())
            .ok_or_else(|| no_tab(id))
    }

    pub(super) fn workspace_mut(&mut self, id: &str) -> Result<&mut Workspace, Refusal> {
        let mut all = self.workspaces.iter_mut();
        all.find(|workspace| workspace.id == id && workspace.closing_ms.is_none())
            .ok_or_else(|| no_workspace(id))
    }

    fn order(&mut self, ids: &[String]) -> Result<(), Refusal> {
        let mut shown: Vec<&str> = self.workspaces().map(|w| w.id.as_str()).collect();
        let mut wanted: Vec<&str> = ids.iter().map(String::as_str).collect();
        shown.sort_unstable();
        wanted.sort_unstable();
        if shown != wanted {
            return Err(Refusal::InTheWay(Cause::WorkspacesChanged));
        }
        // One that is closing stays at the end, where it is out of the way.
        self.workspaces.sort_by_key(|workspace| {
            let at = ids.iter().position(|id| *id == workspace.id);
            at.unwrap_or(usize::MAX)
        });
        Ok(())
    }

    /// Moves a tab that is shown.
    fn place(&mut self, tab: &str, pane: &str, index: Option<usize>) -> Result<(), Refusal> {
        let holder = self.holder(pane).map(|workspace| workspace.id.clone());
        let holder = holder.ok_or_else(|| no_pane(pane))?;
        self.shown_mut(tab)?.workspace.clone_from(&holder);
        let closing: Vec<String> = self
            .tabs
            .iter()
            .filter(|tab| tab.closing_ms.is_some())
            .map(|tab| tab.id.clone())
            .collect();
        for workspace in &mut self.workspaces {
            workspace.panes = tree::only(&workspace.panes, &|id| id != tab);
        }
        let panes = &mut self.workspace_mut(&holder)?.panes;
        let area = tree::pane_mut(panes, pane).ok_or_else(|| no_pane(pane))?;
        let shown = |at: usize| !closing.contains(&area.tabs[at]);
        let place = (0..area.tabs.len())
            .filter(|at| shown(*at))
            .nth(index.unwrap_or(usize::MAX));
        area.tabs
            .insert(place.unwrap_or(area.tabs.len()), tab.to_owned());
        Ok(())
    }
}

fn read_panes(kept: &str) -> Result<PaneTree, String> {
    let panes: PaneTree = serde_json::from_str(kept).map_err(|why| why.to_string())?;
    match tree::fault(&panes) {
        Some(why) => Err(why.to_owned()),
        None => Ok(panes),
    }
}

fn word(color: Color) -> String {
    serde_json::to_value(color)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// The refusal of a workspace that is not there.
pub(super) fn no_workspace(wanted: &str) -> Refusal {
    Refusal::Absent(Cause::NoWorkspace {
        id: wanted.to_owned(),
    })
}

/// The refusal of a pane that is not there.
pub(super) fn no_pane(pane: &str) -> Refusal {
    tree::Odd::NoPane(pane.to_owned()).into()
}

impl From<tree::Odd> for Refusal {
    fn from(odd: tree::Odd) -> Self {
        match odd {
            tree::Odd::NoPane(id) => Self::Absent(Cause::NoPane { id }),
            tree::Odd::NoSplit(id) => Self::Absent(Cause::NoSplit { id }),
            tree::Odd::Last => Self::InTheWay(Cause::LastPane),
            tree::Odd::Full => Self::InTheWay(Cause::PanesFull {
                panes: number(tree::PANES_MAX),
                depth: number(tree::DEPTH_MAX),
            }),
            tree::Odd::Sizes(parts) => Self::Invalid(Cause::Sizes {
                parts: number(parts),
                min: tree::SHARE_MIN.into(),
                whole: tree::WHOLE.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
