// F6: from one part of the page to the next, also out of a terminal, which takes every plain key.

/** `step` 1 goes on, -1 goes back. A region is entered at its one tab stop. */
export function moveRegion(step: 1 | -1): void {
  const regions = [...document.querySelectorAll<HTMLElement>("[data-region]")].filter((region) => region.offsetParent !== null && stopOf(region) !== null);
  if (regions.length === 0) return;
  const at = regions.findIndex((region) => region.contains(document.activeElement));
  const next = at === -1 ? (step === 1 ? 0 : regions.length - 1) : (at + step + regions.length) % regions.length;
  const region = regions[next];
  if (region !== undefined) stopOf(region)?.focus();
}

function stopOf(region: HTMLElement): HTMLElement | null {
  const preferred = region.querySelector<HTMLElement>("[role=treeitem][tabindex='0'], [role=tab][tabindex='0'], .xterm-helper-textarea");
  return preferred ?? region.querySelector<HTMLElement>("button:not(:disabled):not([tabindex='-1']), input, [tabindex='0']");
}
