// The one key that is let through to the program: said on the page, and done by the layer.

import { passNext } from "./layer.ts";
import { sheet } from "./sheet.svelte.ts";

export function pass(on: boolean): void {
  sheet.passing = on;
  passNext(on);
}
