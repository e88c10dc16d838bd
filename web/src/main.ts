// The page's first lines. Owns the order: the one-time code leaves the address before anything else runs.

import "@fontsource-variable/geist/wght.css";
import "@fontsource-variable/jetbrains-mono/wght.css";
import "./style/tokens.css";
import "./style/base.css";
import { mount } from "svelte";
import { page } from "./page.svelte.ts";
import { onOpened } from "./push.ts";
import { settings } from "./settings.svelte.ts";
import App from "./view/App.svelte";
import { shareBeat } from "./view/beat.ts";

/** The code of `#login=CODE`, taken out of the address and of the history. */
function takeCode(): string | null {
  const code = /^#login=([\w.~-]+)$/.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

const code = takeCode();
const target = document.getElementById("app");
if (target === null) throw new Error("index.html has no #app");
shareBeat();
// The screens of this width are on their way before anybody asks for them; where they can't be had, nothing is shown there.
(matchMedia("(min-width: 700px)").matches ? import("./view/Desk.svelte") : import("./view/Phone.svelte")).catch(() => undefined);
// No `await` at the top: what the entry shares with later parts could then not stay in it.
void settings.speak().then(() => {
  mount(App, { target });
  void page.start(code);
});
onOpened((row) => {
  if (row === null) page.openNext();
  else page.openTold(row);
});
// A link opened in this very tab changes only the hash: the page is not loaded again.
addEventListener("hashchange", () => {
  const late = takeCode();
  if (late !== null) void page.signIn(late);
});
