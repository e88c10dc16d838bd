// How many cells a character takes: what tmux says, since tmux keeps the grid that is drawn here. Owns the widths and
// what joins the cell before it; must never be cleverer than tmux, or a line drifts until it is drawn anew.
//
// Measured with tmux 3.3a in a UTF-8 locale (glibc 2.36, Unicode 15): each character printed after an "a", and where the
// cursor stood then.

/** Ranges as distances in base 36: from the end of the one before to the start, and with a dot the length. */
const ZERO =
  "lc.33 7o.6 7c.18 2 2.1 2.1 2 21.a 2 1b.k h 2u.6 3.5 3.1 2.3 10 v.q 2k.a 1n.8 a p.3 2.8 2.2 2.4 18.2 1p.7 17.n 2.v 1k 2 5.7 5 4.6 b.1 u 1n 5.3 9 l.1 " +
  "r.4 1m 5.g v.1 4 c.1 1m 5.7 5 l.1 n.7 1n 3 2.3 9.9 c.1 v 1q d 1f 4 1k 2.2 6.g c.1 u 1n 3 7 6.1 l.1 t.1 1m.1 5.3 9 l.1 u 21 8.4 2j 3.6 d.7 2r 3.8 c.5 " +
  "23.1 s 2 2 1k.d 2.4 2.1 6.1b a 2v.3 2.5 2.1 3.1 q.1 5.2 h.3 e 3.1 7 g 5f.4f 9q.2 qb.2 u.1 v.1 v.1 1t.1 2.6 9 3.a a 1a.4 3a.1 z 3b.2 5.1 a 7.2 64.1 3 " +
  "1n 2.8 2 3.7 7.c 1d.2b 1d 2.4 2 6 15.8 d.1 x.3 3.1 2.2 1l 2.1 4 2.2 1n.7 3.1 49.2 2.c 2.6 5 7 4.1 5j.1r ek.4 p.6 1e.f 2p.w 2db.2 3y 2p.v ff.3 30.1 " +
  "n9x.3 2.9 x.1 29.1 7l 4 5 q.1 6 48.1 r.h e 13.7 q.a 1b.2 1d 3.3 3.1 14 1w.5 3.1 3.1 d 9 1c 1g 2.2 3.1 6.1 2 17.1 9 6n 3 5 8n7.23 6xv ki.f h.f 5s 6y.2 " +
  "ea 6b 46.4 1af.e 15.7 4m.1 fy.3 as.1 4a.a 1e.3 3g 1j.e 16 3.1 b.2 1e.3 3.1 8 1q.2 11.4 2.7 1r d.1 1h.8 b.3 3 2o.2 3 2.1 7 4h 4.7 m.1 1m.1 4 12.e 5g.7 " +
  "3.2 2 o 2d.5 2 5.1 2.1 6n.3 7.1 2.1 s.1 2e.7 3 2.1 2z 2 3.5 2 2u.2 3.3 2.4 78.8 2.1 75.1 2 5 41.7 5 x.9 15.5 3.3 9 a.5 3.2 1b.c 2.1 bb.d 2 2b.l 3.6 " +
  "2.1 2.1 3f.k 2 21.1 4 2 9o.1 470.8 at4.4 1o.6 t5 1s.3 2a f5l.1 2.3om f5.2 a.f 3.6 v.3 45.2 1j0.1i 5.1d 9 f n.k 11t.16 7a.6 ag 1q.3 15t.6 32.6 gzav.dq";
const WIDE =
  "3cw.2n 3i3.1 e.1 5b.3 4 3 ei.1 m.1 1f.b 18 k e 9.1 i.1 6.1 9 6 m 8.1 2 5 3 8 5.1 t 10 2 5.2 2 1q.2 p f nw.1 1g 5 mj.bt 5.g 3.2d 5.my3 wq.s hw.8mb " +
  "6l9.d5 mv.9 n.1n 46.2n 3k.6 m4a.3 d.d8r c21 5n 5b 3.9 2u.2 e.17 5.8 8.1 f.5 4b.w d.8 2.1x 2.l d.16 5.4 d.g 4 4.1y 2 2.56 3.1q e.3 2.n j r.1 e 2f.2c " +
  "1d.1x 7 4.2 3.2 6.2 c.1 8.8 6c.b 5 7w.1a 2.9 2.54 35.4 4.4 4.6 a.s 4.a 6.5 b.9 7.7 9.6 zu.2t4t";

const ZERO_WIDTH_JOINER = 0x200d;
const TABLE = table();

/** One byte for each code point of the first two planes and a half; beyond stand ideographs and tags only. */
function table(): Uint8Array {
  const widths = new Uint8Array(0x20000).fill(1);
  fill(widths, WIDE, 2);
  fill(widths, ZERO, 0);
  widths.fill(0, 0, 0x20);
  widths.fill(0, 0x7f, 0xa0);
  return widths;
}

function fill(widths: Uint8Array, ranges: string, width: number): void {
  let at = 0;
  for (const range of ranges.split(" ")) {
    const [start, length] = range.split(".");
    const first = at + parseInt(start ?? "", 36);
    at = first + parseInt(length ?? "0", 36);
    widths.fill(width, first, at + 1);
  }
}

/** Cells of one code point that stands alone: 0, 1 or 2. */
export function widthOf(code: number): 0 | 1 | 2 {
  if (code < 0x20000) return (TABLE[code] ?? 1) as 0 | 1 | 2;
  if (code < 0x3fffe) return 2;
  return code >= 0xe0001 && code <= 0xe01ef ? 0 : 1;
}

/** As xterm passes it from character to character: whether it joins, the width of the cell, what it was. */
const property = (state: number, width: number, joins: boolean) => (state << 3) | (width << 1) | (joins ? 1 : 0);
const JOINER = 1;
const OTHER = 2;

/** What xterm wants of a set of widths (its `IUnicodeVersionProvider`). */
export const TMUX_WIDTHS = {
  version: "tmux",
  wcwidth: widthOf,
  charProperties(code: number, preceding: number): number {
    const width = widthOf(code);
    const before = (preceding >> 1) & 3;
    const state = code === ZERO_WIDTH_JOINER ? JOINER : OTHER;
    // What has no width joins what is there; so does whatever follows a joiner, but for ASCII.
    const joins = preceding !== 0 && (width === 0 || (preceding >> 3 === JOINER && code > 0x7f));
    return joins ? property(state, before, true) : property(state, width, false);
  },
};

/** Cells of a text, as the grid lays it out. */
export function cellsOf(text: string): number {
  let cells = 0;
  let preceding = 0;
  for (const char of text) {
    const next = TMUX_WIDTHS.charProperties(char.codePointAt(0) ?? 0, preceding);
    if ((next & 1) === 0) cells += (next >> 1) & 3;
    preceding = next;
  }
  return cells;
}
