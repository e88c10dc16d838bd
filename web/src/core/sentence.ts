// What the server says, in the person's language: it sends a code with its arguments, and the words stand in a catalogue
// of each language, loaded when first wanted. Owns how the parts and arguments become one sentence; must never say less
// than the server did: without words for a code its own English is shown.

import type { Sentence } from "../wire/protocol.ts";
import type { Sentences } from "../wire/sentences.ts";

/** A catalogue; `names`: what the server calls those who have no name of their own, in this language. */
export type Spoken = Sentences & { readonly names?: Readonly<Record<string, string>> };

const two = (n: number) => String(n).padStart(2, "0");

/** `at`, unix ms, is said by this device's clock. */
function said(name: string, value: unknown, words: Spoken): string {
  if (name !== "at") return named(String(value), words);
  const at = new Date(Number(value));
  return `${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The server's own word for somebody or something, in the person's language; everything else as it is. */
export function named(name: string, words: Spoken | null): string {
  return words?.names?.[name] ?? name;
}

/** `english`: the same sentence as the server wrote it. `words`: null while they are not loaded. */
export function inWords(sentence: Sentence | null | undefined, english: string, words: Spoken | null): string {
  const parts = sentence == null ? undefined : words?.causes[sentence.code];
  if (sentence == null || parts === undefined || words === null) return english;
  const [what, act] = parts;
  const args: Readonly<Record<string, unknown>> = sentence;
  const filled = [what, sentence.then === undefined ? "" : words.then[sentence.then], act]
    .filter((part) => part !== "")
    .map((part) => part.replace(/\{(\w+)\}/g, (whole, name: string) => (name in args ? said(name, args[name], words) : whole)));
  return filled.reduce((text, part) => (text.endsWith("。") ? text + part : `${text} ${part}`));
}
