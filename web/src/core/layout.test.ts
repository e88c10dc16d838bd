// Panes fill their room to the pixel, seams move only their neighbours, and what a device remembers never breaks it.

import { describe, expect, test } from "vitest";
import { beside, type Desk, dropIndex, dropZone, equalSizes, focused, homeOf, moved, NO_VIEW, onDesk, PANE_WIDTH_PX_MIN, paneOf, panesIn, parseView, place, pruned, type Rect, reordered, settled, shownIn, showing, splitIn, type Tree, underHeadings, zoomed } from "./layout.ts";

const pane = (id: string, ...tabs: string[]): Tree => ({ pane: { id, tabs } });
const split = (id: string, dir: "right" | "down", sizes: number[], ...parts: Tree[]): Tree => ({ split: { id, dir, sizes, parts } });
const ROOM: Rect = { left: 0, top: 0, width: 1001, height: 801 };

/** Left one, right two above three. */
const three = split("s", "right", [400, 600], pane("one", "a", "b"), split("t", "down", [500, 500], pane("two", "c"), pane("three")));
const desk: Desk = { id: "w", panes: three };
const rows = new Map(["a", "b", "c"].map((id) => [id, { id, tab: id }]));

describe("the tree", () => {
  test("names its panes in the order of reading, and finds the pane of a tab", () => {
    expect(panesIn(three).map(({ id }) => id)).toEqual(["one", "two", "three"]);
    expect(paneOf(three, "c")?.id).toBe("two");
    expect(paneOf(three, "nowhere")).toBeNull();
    expect(splitIn(three, "t")?.dir).toBe("down");
    expect(splitIn(three, "u")).toBeNull();
  });

  test("one pane has the whole room", () => {
    expect(place(pane("one"), ROOM)).toEqual({ panes: new Map([["one", ROOM]]), seams: [] });
  });

  test("sizes share the room, and seams lie between", () => {
    const { panes, seams } = place(three, ROOM);
    expect(panes.get("one")).toEqual({ left: 0, top: 0, width: 400, height: 801 });
    expect(panes.get("two")).toEqual({ left: 401, top: 0, width: 600, height: 400 });
    expect(panes.get("three")).toEqual({ left: 401, top: 401, width: 600, height: 400 });
    expect(seams.map(({ split: of, rect, at }) => [of, rect, at])).toEqual([
      ["s", { left: 400, top: 0, width: 1, height: 801 }, 400],
      ["t", { left: 401, top: 400, width: 600, height: 1 }, 500],
    ]);
  });

  test("no pixel is lost or shared, whatever the tree", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    let ids = 0;
    const grow = (depth: number): Tree => {
      if (depth === 0 || random(3) === 0) return pane(`p${(ids += 1)}`);
      const count = 2 + random(3);
      return split(`s${(ids += 1)}`, random(2) === 0 ? "right" : "down", Array.from({ length: count }, () => 500 + random(400)), ...Array.from({ length: count }, () => grow(depth - 1)));
    };
    for (let n = 0; n < 300; n += 1) {
      const room = { left: random(50), top: random(50), width: 2000 + random(500), height: 2000 + random(500) };
      const { panes, seams } = place(grow(3), room);
      const all = [...panes.values(), ...seams.map((seam) => seam.rect)];
      expect(all.reduce((sum, rect) => sum + rect.width * rect.height, 0)).toBe(room.width * room.height);
      for (const rect of all) {
        expect(Number.isInteger(rect.left + rect.top + rect.width + rect.height)).toBe(true);
        expect(rect.left >= room.left && rect.top >= room.top && rect.left + rect.width <= room.left + room.width && rect.top + rect.height <= room.top + room.height).toBe(true);
      }
    }
  });

  test("sizes that can't be meant for the parts are as equal ones", () => {
    for (const sizes of [[1000], [0, 1000], [Number.NaN, 500], []]) {
      expect(place(split("s", "right", sizes, pane("one"), pane("two")), ROOM).panes.get("one")?.width).toBe(500);
    }
    expect(place(three, ROOM, new Map([["s", [1, 2, 3]]])).panes.get("one")?.width).toBe(500);
  });

  test("what is being drawn counts over the server's word, and equal over both", () => {
    const drawn = new Map([["s", [250, 750]]]);
    expect(place(three, ROOM, drawn).panes.get("one")?.width).toBe(250);
    expect(place(three, ROOM, drawn, true).panes.get("one")?.width).toBe(500);
  });

  test("equal sizes make a thousand", () => {
    for (let n = 2; n <= 16; n += 1) expect(equalSizes(n).reduce((sum, size) => sum + size)).toBe(1000);
    expect(equalSizes(3)).toEqual([334, 333, 333]);
  });
});

describe("a seam", () => {
  const seam = { sizes: [300, 300, 400], index: 0, room: 2000, dir: "right" } as const;

  test("moves its two neighbours and nobody else", () => {
    expect(moved(seam, 16)).toEqual([308, 292, 400]);
    expect(moved(seam, -200)).toEqual([200, 400, 400]);
  });

  test("leaves either neighbour its least room", () => {
    const least = (1000 * PANE_WIDTH_PX_MIN) / 2000;
    expect(moved(seam, -5000)).toEqual([least, 600 - least, 400]);
    expect(moved(seam, 5000)).toEqual([600 - least, least, 400]);
    // Where both are too small already, both get the same.
    expect(moved({ sizes: [10, 30], index: 0, room: 300, dir: "down" }, 500)).toEqual([20, 20]);
  });

  test("keeps the sum, and refuses what is no seam", () => {
    for (const px of [-333, -1, 0, 7, 450]) expect(moved(seam, px).reduce((sum, size) => sum + size)).toBe(1000);
    expect(moved({ ...seam, index: 2 }, 50)).toEqual([300, 300, 400]);
    expect(moved({ ...seam, room: 0 }, 50)).toEqual([300, 300, 400]);
  });
});

describe("going from pane to pane", () => {
  const { panes } = place(three, ROOM);
  test("finds the nearest that shares an edge", () => {
    expect(beside(panes, "one", "right")).toBe("two");
    expect(beside(panes, "two", "left")).toBe("one");
    expect(beside(panes, "three", "up")).toBe("two");
    expect(beside(panes, "two", "down")).toBe("three");
    expect(beside(panes, "one", "left")).toBeNull();
    expect(beside(panes, "one", "up")).toBeNull();
    expect(beside(panes, "nowhere", "up")).toBeNull();
  });

  test("of two at the same distance takes the one with more of the edge", () => {
    const tree = split("s", "right", [500, 500], pane("one"), split("t", "down", [300, 700], pane("small"), pane("tall")));
    expect(beside(place(tree, ROOM).panes, "one", "right")).toBe("tall");
  });
});

describe("a dragged tab", () => {
  test("falls before the first tab whose middle is beyond it", () => {
    expect([0, 49, 50, 149, 151, 900].map((x) => dropIndex([50, 150], x))).toEqual([0, 0, 1, 1, 2, 2]);
    expect(dropIndex([], 5)).toBe(0);
  });

  test("joins a pane, or gets one of its own at the right or lower edge", () => {
    const rect = { left: 100, top: 100, width: 300, height: 300 };
    expect(dropZone(rect, 150, 150)).toBe("into");
    expect(dropZone(rect, 380, 200)).toBe("right");
    expect(dropZone(rect, 200, 390)).toBe("down");
    expect(dropZone(rect, 395, 380)).toBe("right");
  });
});

describe("what a device looks at", () => {
  test("is read however broken it was kept", () => {
    for (const text of [null, "", "{", "null", "[]", "7", '{"focus":[1],"shown":{"p":3},"folded":"x"}']) expect(parseView(text)).toEqual(NO_VIEW);
    const view = { workspace: "w", focus: { w: "two" }, shown: { two: "c" }, zoom: { w: "two" }, folded: ["", "w"] };
    expect(parseView(JSON.stringify(view))).toEqual(view);
  });

  test("forgets what is no more", () => {
    const view = { workspace: "x", focus: { w: "two", x: "nine" }, shown: { two: "c", nine: "z" }, zoom: { x: "nine" }, folded: ["", "w", "x"] };
    expect(pruned(view, [desk])).toEqual({ workspace: "x", focus: { w: "two" }, shown: { two: "c" }, zoom: {}, folded: ["", "w"] });
  });

  test("has the keys in the chosen pane, or in the first", () => {
    expect(focused(NO_VIEW, desk)?.id).toBe("one");
    expect(focused({ ...NO_VIEW, focus: { w: "three" } }, desk)?.id).toBe("three");
    expect(focused({ ...NO_VIEW, focus: { w: "gone" } }, desk)?.id).toBe("one");
  });

  test("shows a row while it is there to be shown", () => {
    const shown = (row: string, in_: number, more: [string, { id: string; tab: string | null }][] = [], made: string | null = null) => {
      const found = panesIn(three)[in_];
      if (found === undefined) throw new Error("no pane");
      return shownIn({ ...NO_VIEW, shown: { [found.id]: row } }, found, new Map([...rows, ...more]), made);
    };
    expect(shown("b", 0)).toBe("b");
    // Another pane's tab, and one that is gone, are not shown here.
    expect(shown("c", 0)).toBe("a");
    expect(shown("gone", 0)).toBe("a");
    expect(shown("gone", 2)).toBeNull();
    // Made here this moment; a further agent of a tab; a row without a tab.
    expect(shown("new", 2, [], "new")).toBe("new");
    expect(shown("h:1:2", 0, [["h:1:2", { id: "h:1:2", tab: "b" }]])).toBe("h:1:2");
    expect(shown("h:1:2", 1, [["h:1:2", { id: "h:1:2", tab: "b" }]])).toBe("c");
    expect(shown("h:3:4", 2, [["h:3:4", { id: "h:3:4", tab: null }]])).toBe("h:3:4");
  });

  test("has a workspace on the desk that has something in it", () => {
    const bare = { id: "bare", panes: pane("none") };
    expect(onDesk(NO_VIEW, [bare, desk])?.id).toBe("w");
    expect(onDesk({ ...NO_VIEW, workspace: "bare" }, [bare, desk])?.id).toBe("bare");
    expect(onDesk({ ...NO_VIEW, workspace: "gone" }, [bare])?.id).toBe("bare");
    expect(onDesk(NO_VIEW, [])).toBeNull();
  });

  test("shows the tab beside one that was taken out of its pane", () => {
    const before = [{ id: "w", panes: pane("one", "a", "b", "c") }];
    const left = (shown: string, ...tabs: string[]) => settled({ ...NO_VIEW, shown: { one: shown } }, before, [{ id: "w", panes: pane("one", ...tabs) }]).shown["one"];
    expect(left("b", "a", "c")).toBe("c");
    expect(left("c", "a", "b")).toBe("b");
    expect(left("a", "c", "b")).toBe("b");
    // Nothing is left, or nothing has changed for it: the choice stays as it was.
    expect(left("b")).toBe("b");
    expect(left("b", "b")).toBe("b");
    expect(left("h:1:2", "a")).toBe("h:1:2");
  });

  test("goes to the pane of a row, and a zoom goes along", () => {
    expect(homeOf(NO_VIEW, [desk], { id: "c", tab: "c" })?.pane.id).toBe("two");
    expect(homeOf({ ...NO_VIEW, focus: { w: "three" } }, [desk], { id: "h:3:4", tab: null })?.pane.id).toBe("three");
    expect(homeOf({ ...NO_VIEW, shown: { two: "h:3:4" } }, [desk], { id: "h:3:4", tab: null })?.pane.id).toBe("two");
    expect(homeOf(NO_VIEW, [], { id: "c", tab: "c" })).toBeNull();
    const zoom = showing({ ...NO_VIEW, zoom: { w: "one" } }, desk, "two", "c");
    expect(zoom).toMatchObject({ workspace: "w", focus: { w: "two" }, shown: { two: "c" }, zoom: { w: "two" } });
    expect(zoomed(zoom, desk)?.id).toBe("two");
    expect(showing(NO_VIEW, desk, "three", null)).toMatchObject({ focus: { w: "three" }, shown: {}, zoom: {} });
    // One pane is never zoomed, however it came to be the only one.
    expect(zoomed(zoom, { id: "w", panes: pane("two", "c") })).toBeNull();
  });
});

test("an order with one moved", () => {
  expect(reordered(["a", "b", "c"], "a", 2)).toEqual(["b", "c", "a"]);
  expect(reordered(["a", "b", "c"], "c", 0)).toEqual(["c", "a", "b"]);
  expect(reordered(["a", "b", "c"], "b", 9)).toEqual(["a", "c", "b"]);
});

test("workspaces gather under their headings, those without one first", () => {
  const space = (id: string, group: string | null) => ({ id, group });
  const found = underHeadings([space("1", "work"), space("2", null), space("3", "play"), space("4", "work")]);
  expect(found.map(({ heading, spaces }) => [heading, spaces.map(({ id }) => id)])).toEqual([[null, ["2"]], ["work", ["1", "4"]], ["play", ["3"]]]);
  expect(underHeadings([])).toEqual([]);
});
