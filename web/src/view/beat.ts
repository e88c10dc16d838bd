// One phase for every glyph that moves: each animation is taken back to the start of the document's timeline, so all
// arcs point the same way and every review beats on a needs-input beat. Owns the phase only; glyphs own their motion.

/** Call once. Animations report their start by themselves, also after a stale link or a change of the motion setting. */
export function shareBeat(): void {
  document.addEventListener("animationstart", (event) => {
    if (!event.animationName.startsWith("glyph-") || !(event.target instanceof Element)) return;
    for (const animation of event.target.getAnimations()) animation.startTime = 0;
  });
}
