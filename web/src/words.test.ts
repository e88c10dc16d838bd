// The catalogue: the same words and the same gaps in every language, none that nobody says, and no sentence of the page's
// own outside it.

import { expect, test } from "vitest";
import { ACTIONS } from "./core/keys.ts";
import { CATALOGUE, type Key, LANGUAGES } from "./core/words.ts";
import "./core/words.zh-TW.ts";

/** Every source but the catalogue itself and tests. */
const texts = Object.entries(import.meta.glob<string>(["./**/*.svelte", "./**/*.ts", "!./**/*.test.ts", "!./core/words.*"], { query: "?raw", import: "default", eager: true })).map(([file, text]) => ({ file, text }));
const keys = Object.keys(CATALOGUE.en) as Key[];
const gaps = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

test("every language says everything, with the same gaps", () => {
  for (const language of LANGUAGES) {
    const words = CATALOGUE[language];
    expect(Object.keys(words ?? {}).sort()).toEqual([...keys].sort());
    for (const key of keys) {
      expect([key, words?.[key].trim() === ""]).toEqual([key, false]);
      expect([key, gaps(words?.[key] ?? "")]).toEqual([key, gaps(CATALOGUE.en[key])]);
    }
  }
});

test("no word is there that nobody says", () => {
  const all = texts.map(({ text }) => text).join("\n");
  /** Keys that are put together: what stands before the `${`. */
  const starts = [...all.matchAll(/`([a-z][\w-]*\.(?:[\w-]+\.)*)\$\{/g)].map(([, start]) => start ?? "");
  const unused = keys.filter((key) => !all.includes(`"${key}"`) && !starts.some((start) => key.startsWith(start)));
  expect(texts.length).toBeGreaterThan(50);
  expect(unused).toEqual([]);
  // Of those that are put together, the ones of actions can be told.
  const acts = new Set<string>(ACTIONS.map(({ id }) => `act.${id}`));
  expect(keys.filter((key) => key.startsWith("act.") && !acts.has(key))).toEqual([]);
});

test("no sentence of the page's own stands outside the catalogue", () => {
  const found: string[] = [];
  for (const { file, text } of texts) {
    if (!file.endsWith(".svelte")) continue;
    const markup = text.replace(/<script[\s\S]*?<\/script>|<style[\s\S]*?<\/style>|<!--[\s\S]*?-->/g, "");
    // Words between tags, and words in attributes that are shown or read aloud.
    const plain = markup.replace(/\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}/g, "");
    for (const [, words = ""] of plain.matchAll(/>([^<>]*)</g)) if (/[A-Za-z]{2,}\s+[A-Za-z]{2,}|[\u4e00-\u9fff]/.test(words)) found.push(`${file}: ${words.trim()}`);
    for (const [, words = ""] of plain.matchAll(/(?:aria-label|title|placeholder|alt)="([^"]*)"/g)) if (/[A-Za-z]{2,}/.test(words)) found.push(`${file}: ${words}`);
  }
  expect(found).toEqual([]);
});
