// Dragging a tab or a workspace with the pointer: when it begins, what it is over, and what a drop asks for. Owns the
// drag that is under way, one at most; must never move anything by itself: the server does, and everybody sees it. All
// that can be done here can be done by menu too.

import type { Dragged, Target } from "./drop.ts";

/** Less is a click with an unsteady hand. */
const BEGIN_PX = 6;

class Drag {
  what = $state.raw<Dragged | null>(null);
  target = $state.raw<Target | null>(null);
  at = $state.raw({ x: 0, y: 0 });
  #end: (() => void) | null = null;

  /** For a pointer that goes down on something that can be dragged. A finger scrolls instead. */
  press(event: PointerEvent, what: Dragged): void {
    if (event.button !== 0 || event.pointerType === "touch" || this.#end !== null) return;
    // It is here before the hand has moved far.
    let falls: typeof import("./drop.ts") | null = null;
    import("./drop.ts").then(
      (loaded) => (falls = loaded),
      () => undefined,
    );
    const begin = { x: event.clientX, y: event.clientY };
    const move = (next: PointerEvent) => {
      if (next.pointerId !== event.pointerId) return;
      if (this.what === null && Math.hypot(next.clientX - begin.x, next.clientY - begin.y) < BEGIN_PX) return;
      this.what = what;
      this.at = { x: next.clientX, y: next.clientY };
      this.target = falls?.targetAt(what, next.clientX, next.clientY) ?? null;
    };
    const up = (next: PointerEvent) => {
      if (next.pointerId !== event.pointerId) return;
      const { target } = this;
      const dragged = this.what !== null;
      end();
      if (!dragged) return;
      // The click that follows on what was let go is none.
      addEventListener("click", swallow, { capture: true, once: true });
      requestAnimationFrame(() => removeEventListener("click", swallow, { capture: true }));
      if (target !== null) falls?.drop(what, target);
    };
    const key = (next: KeyboardEvent) => {
      if (next.key !== "Escape" || this.what === null) return;
      next.preventDefault();
      next.stopPropagation();
      end();
    };
    const end = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", end);
      removeEventListener("keydown", key, { capture: true });
      this.#end = null;
      this.what = null;
      this.target = null;
    };
    this.#end = end;
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", end);
    addEventListener("keydown", key, { capture: true });
  }
}

export const drag = new Drag();

function swallow(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}
