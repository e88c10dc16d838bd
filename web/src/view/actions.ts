// What each action does: one place, called by keys, by the palette and by menus. Owns the doing and whether it can be
// done now; which key means it is in core/keys.ts.

import { type Action, ACTIONS } from "../core/keys.ts";
import { LANGUAGES } from "../core/words.ts";
import { page } from "../page.svelte.ts";
import { settings } from "../settings.svelte.ts";
import { ask } from "./ask.svelte.ts";
import { pass } from "./pass.ts";
import { moveRegion } from "./regions.ts";
import { sheet } from "./sheet.svelte.ts";

type Deed = { run: () => void; can?: () => boolean };

const currentTab = () => (page.current?.tab === page.current?.id ? page.current : null);

const hasPanes = () => !page.narrow && page.panes.length > 1;

const DEEDS: Record<Action, Deed> = {
  next: { run: () => page.openNext(), can: () => page.next !== null },
  back: { run: () => page.goBack(), can: () => page.canGoBack },
  attention: { run: () => (page.bellOpen = !page.bellOpen) },
  why: { run: () => (page.whyOf = page.whyOf === null ? page.currentId : null), can: () => page.current !== null },
  dismiss: { run: () => page.current !== null && page.dismiss(page.current), can: () => page.live && page.current?.state === "review" },
  message: { run: () => (sheet.message = !sheet.message), can: () => page.current !== null && page.current.state !== null },
  stop: { run: () => page.current !== null && page.stop(page.current), can: () => page.live && page.current?.state === "busy" },
  palette: { run: () => (sheet.name === "palette" ? sheet.close() : sheet.open("palette")) },
  "next-region": { run: () => moveRegion(1) },
  "previous-region": { run: () => moveRegion(-1) },
  sidebar: { run: turnToSidebar, can: () => !page.narrow },
  help: { run: () => (sheet.name === "help" ? sheet.close() : sheet.open("help")) },
  settings: { run: () => sheet.openSettings("appearance") },
  notifications: { run: () => sheet.openSettings("notifications") },
  theme: { run: () => (settings.theme = isDark() ? "light" : "dark") },
  language: { run: () => (settings.language = LANGUAGES.find((language) => language !== settings.language) ?? "en") },
  "sign-out": { run: () => void page.signOut() },
  "new-tab": { run: () => void page.create("terminal"), can: () => page.live },
  "new-claude": { run: () => void page.create("claude-code"), can: () => page.live },
  "close-tab": { run: () => page.current !== null && void ask.close(page.current), can: () => currentTab() !== null },
  "rename-tab": { run: () => page.current !== null && ask.rename(page.current), can: () => currentTab() !== null },
  "previous-tab": { run: () => page.openBeside(-1) },
  "next-tab": { run: () => page.openBeside(1) },
  "split-right": { run: () => void page.splitRight(), can: () => page.live && !page.narrow && !page.single },
  "split-down": { run: () => void page.splitDown(), can: () => page.live && !page.narrow && !page.single },
  "pane-left": { run: () => page.movePane("left"), can: hasPanes },
  "pane-right": { run: () => page.movePane("right"), can: hasPanes },
  "pane-up": { run: () => page.movePane("up"), can: hasPanes },
  "pane-down": { run: () => page.movePane("down"), can: hasPanes },
  "zoom-pane": { run: () => page.zoomPane(), can: () => hasPanes() && !page.single },
  "equal-panes": { run: () => void page.equalise(), can: () => page.live && hasPanes() },
  "close-pane": { run: () => void page.closePane(), can: () => page.live && hasPanes() },
  "undo-close": { run: () => void page.undoClose(), can: () => page.live && page.undo !== null },
  conversations: { run: () => sheet.openPast(null), can: () => page.live },
  "resume-all": { run: () => void page.resume(page.offers.map((item) => item.id)), can: () => page.live && page.offers.length > 0 },
  "new-workspace": { run: () => ask.newSpace(), can: () => page.live },
  "send-next": { run: () => pass(true) },
};

const isDark = () => (settings.theme === "system" ? matchMedia("(prefers-color-scheme: dark)").matches : settings.theme === "dark");

/** For keys and the palette alike; what can't be done now does nothing. */
export function act(action: Action): void {
  const deed = DEEDS[action];
  if (deed.can === undefined || deed.can()) deed.run();
}

/** Those that the palette offers: the ones that make sense after it has gone. */
export function commands(): Action[] {
  const keysOnly: readonly Action[] = ["palette", "next-region", "previous-region", "send-next"];
  return ACTIONS.map((action) => action.id).filter((id) => !keysOnly.includes(id) && DEEDS[id].can?.() !== false);
}

/** Hidden: shows it and goes there. Elsewhere: goes there. There: hides it, and the terminal has the keys again. */
function turnToSidebar(): void {
  const side = document.querySelector<HTMLElement>(".side");
  if (side?.contains(document.activeElement) === true) {
    settings.sidebar = false;
    page.refocus();
    return;
  }
  settings.sidebar = true;
  // The sidebar is drawn before the next frame, if it was not there.
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".side [role=treeitem][tabindex='0']")?.focus());
}
