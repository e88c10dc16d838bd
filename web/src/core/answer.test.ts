// Whose word belongs to which card, what may be pressed, and what is said when the dialog is gone.

import { describe, expect, test } from "vitest";
import type { Ask, Card, CardOption, ServerMsg } from "../wire/protocol.ts";
import { aftermath, answerWords, byDigit, cardOf, changesOf, cut, dialogOf, goesOn, heard, isField, isMulti, isTinted, pressable, pressed, standing, type Tries, tryOf } from "./answer.ts";
import { item } from "./sample.ts";
import { sayer } from "./words.ts";

/** Any sentence of the server's. */
const over = { code: "over" } as const;

const say = sayer("en");
const option = (label: string, change: Partial<CardOption> = {}): CardOption => ({ number: null, label, note: "", checked: null, marked: false, ...change });
const card: Card = {
  reading: "r1",
  title: "Bash command",
  subject: ["touch a.txt"],
  question: "Do you want to proceed?",
  options: [option("Yes", { number: 1, marked: true }), option("Yes, and don't ask again for touch", { number: 2 }), option("No", { number: 3 })],
  submit: false,
  reject: true,
  words: true,
};
const ask: Ask = { id: 7, kind: "permission", text: "touch a.txt", options: [], card };
const asking = item({ id: "a", state: "needs-input", detail: { ask } });
const ours = { ask: 7, reading: "r1", request: 3, what: "Yes", atMs: 1000, answer: { do: "choose", option: 0 } } as const;
const one = pressed(new Map(), "a", ours);
const answered = (change: Partial<Extract<ServerMsg, { type: "answered" }>>): ServerMsg => ({
  type: "answered",
  request: 3,
  item: "a",
  ask: 7,
  reading: "r1",
  outcome: "sending",
  what: "Yes",
  by: "Chrome, Linux",
  at_ms: 1100,
  why: null,
  said: null,
  ...change,
});
const at = (tries: Tries, reading = "r1") => standing(7, reading, tries.get("a"), true);

describe("standing", () => {
  test("nothing was pressed: it is open; without a link nothing can be pressed, whatever was", () => {
    expect(at(new Map())).toEqual({ at: "open" });
    expect(standing(7, "r1", one.get("a"), false)).toEqual({ at: "offline" });
    expect(pressable({ at: "offline" })).toBe(false);
  });

  test("ours is on its way, then sent; neither can be pressed", () => {
    expect(at(one)).toEqual({ at: "sending", what: "Yes" });
    const sent = heard(one, answered({ outcome: "sent" }), 0);
    expect(at(sent)).toEqual({ at: "sent", what: "Yes" });
    for (const tries of [one, sent]) expect(pressable(at(tries))).toBe(false);
  });

  test("A02 another dialog in its place is open, whatever became of the one before", () => {
    for (const msg of [answered({ outcome: "sent" }), answered({ outcome: "failed" }), { type: "refused", request: 3, why: "", said: over } as const]) {
      expect(at(heard(one, msg, 0), "r2")).toEqual({ at: "open" });
    }
    expect(standing(8, "r1", one.get("a"), true)).toEqual({ at: "open" });
  });

  test("A10 while words are typed into a dialog, which it draws, nothing of that ask is open", () => {
    for (const tries of [one, heard(new Map(), answered({ request: null }), 0)]) {
      expect(pressable(at(tries, "r2"))).toBe(false);
      expect(aftermath(tries.get("a"), dialogOf(7, "r2"), 1200)).toBeNull();
    }
    expect(aftermath(heard(new Map(), answered({ request: null }), 0).get("a"), null, 1200)?.at).toBe("elsewhere");
  });

  test("what was refused typed nothing: it says why and may be tried again", () => {
    const refused = heard(one, { type: "refused", request: 3, why: "A menu is open in the terminal. Nothing was sent.", said: over }, 1200);
    expect(at(refused)).toEqual({ at: "refused", why: "A menu is open in the terminal. Nothing was sent.", said: over, again: ours.answer });
    expect(pressable(at(refused))).toBe(true);
  });

  test("what failed may have typed something: no second try", () => {
    const failed = heard(one, answered({ outcome: "failed", why: "Open the terminal.", said: over }), 0);
    expect(at(failed)).toEqual({ at: "failed", why: "Open the terminal.", said: over });
    expect(pressable(at(failed))).toBe(false);
  });

  test("a link that breaks leaves nothing known of what was on its way, and only of that", () => {
    expect(at(cut(one))).toEqual({ at: "failed", why: null, said: null });
    const sent = heard(one, answered({ outcome: "sent" }), 0);
    expect(cut(sent)).toBe(sent);
    const theirs = heard(new Map(), answered({ request: null }), 0);
    expect(cut(theirs)).toBe(theirs);
  });

  test("A04 another device's answer stands in the way of ours, and ours that comes too late says nothing of its own", () => {
    const theirs = heard(one, answered({ request: null, what: "No", by: "iPhone" }), 0);
    expect(at(theirs)).toEqual({ at: "elsewhere", what: "No", by: "iPhone", atMs: 1100 });
    const late: ServerMsg = { type: "refused", request: 3, why: "Answered on iPhone.", said: over };
    expect(heard(theirs, late, 0)).toBe(theirs);
    // And the other way round.
    expect(at(heard(heard(one, late, 0), answered({ request: null, what: "No", by: "iPhone" }), 0)).at).toBe("elsewhere");
  });

  test("what is said of other requests and other messages changes nothing", () => {
    expect(heard(one, { type: "refused", request: 9, why: "", said: over }, 0)).toBe(one);
    expect(heard(one, { type: "heartbeat", epoch: "e", rev: 1, now_ms: 0 }, 0)).toBe(one);
    expect(tryOf(one, 9)).toBeNull();
  });
});

describe("aftermath", () => {
  test("who answered is said for a while once the dialog is gone, and not on the dialog itself", () => {
    const theirs = heard(new Map(), answered({ request: null, outcome: "sent", by: "iPhone" }), 0).get("a");
    expect(aftermath(theirs, dialogOf(7, "r1"), 1200)).toBeNull();
    expect(aftermath(theirs, null, 1200)).toEqual({ at: "elsewhere", what: "Yes", by: "iPhone", atMs: 1100 });
    expect(aftermath(theirs, dialogOf(8, "r3"), 1200)?.at).toBe("elsewhere");
    expect(aftermath(theirs, null, 60_000)).toBeNull();
  });

  test("A03 a press that came too late says that nothing was sent, also over the next dialog", () => {
    const refused = heard(one, { type: "refused", request: 3, why: "This prompt changed. Nothing was sent.", said: over }, 1200).get("a");
    for (const shown of [null, dialogOf(8, "r3")]) expect(aftermath(refused, shown, 1300)).toEqual({ at: "nothing-sent", why: "This prompt changed. Nothing was sent.", said: over });
  });

  test("our own is said until the next dialog is there", () => {
    const sent = heard(one, answered({ outcome: "sent" }), 0).get("a");
    expect(aftermath(sent, null, 1200)).toEqual({ at: "sent", what: "Yes" });
    expect(aftermath(sent, dialogOf(7, "r2"), 1200)).toBeNull();
    expect(aftermath(undefined, null, 0)).toBeNull();
  });
});

describe("card", () => {
  test("only a dialog that was read is shown, and only while it asks", () => {
    expect(cardOf(asking)).toEqual({ ask, card });
    expect(cardOf({ ...asking, state: "busy" })).toBeNull();
    expect(cardOf({ ...asking, presence: "suspended" })).toBeNull();
    const unread: Ask = { id: 7, kind: "permission", text: "touch a.txt", options: [] };
    expect(cardOf(item({ id: "a", state: "needs-input", detail: { ask: unread } }))).toBeNull();
  });

  test("digits are Claude's own numbers", () => {
    expect([byDigit(card, "1"), byDigit(card, "3"), byDigit(card, "4"), byDigit(card, "0"), byDigit(card, "Enter")]).toEqual([0, 2, null, null, null]);
    const trust: Card = { ...card, options: [option("No, exit", { marked: true }), option("Yes, I trust this folder")] };
    expect(byDigit(trust, "1")).toBeNull();
  });

  test("Claude's own choice is tinted, never one that answers for later as well", () => {
    expect(card.options.map(isTinted)).toEqual([true, false, false]);
    for (const label of ["Yes, and don't ask again for: pnpm *", "Yes, and don’t ask again", "Yes, and always allow access to /x from this project", "Yes, allow all edits during this session", "Yes, and switch to auto mode", "Yes, and bypass permissions"]) {
      expect(isTinted(option(label, { marked: true })), label).toBe(false);
    }
  });

  test("several may be checked; a place to type is no answer", () => {
    const multi: Card = { ...card, options: [option("Dot", { checked: true }), option("Bar", { checked: false }), option("Type something.", { number: 3 })] };
    expect([isMulti(card), isMulti(multi)]).toEqual([false, true]);
    expect(multi.options.map(isField)).toEqual([false, false, true]);
    expect(goesOn(multi)).toBeUndefined();
    expect(goesOn({ ...multi, options: [...multi.options, option("Next"), option("Chat about this", { number: 4 })] })?.label).toBe("Next");
    expect(goesOn({ ...card, options: [option("No, exit")] })).toBeUndefined();
    expect(answerWords(multi, { do: "check", options: [0, 1] }, say)).toBe("Dot, Bar");
    expect(answerWords(multi, { do: "check", options: [] }, say)).toBe("nothing checked");
    expect(answerWords(card, { do: "choose", option: 2 }, say)).toBe("No");
    expect(answerWords(card, { do: "words", text: "use 1 file" }, say)).toBe("use 1 file");
  });

  test("lines of a change, as Claude draws them", () => {
    // From an edit dialog of 2.1.332.
    expect(changesOf(["notes.txt", " 1  lab notes", " 2 +with one more line", "   +that is long", " 3 -", " 4  kept", "   -no"])).toEqual([null, null, "add", "add", "del", null, null]);
    expect(changesOf(["touch -a 1 + 2", "- a list", "+x"])).toEqual([null, null, null]);
  });
});
