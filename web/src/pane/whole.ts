// Bytes into pieces that end between characters. xterm.js loses a character that is cut before a byte of 0x80 (6.0.0: its
// decoder takes the six zero bits for "nothing there"), and a stream is cut anywhere. Owns the bytes held back, at most
// three; must never change or drop one.

export class Whole {
  #held = new Uint8Array(0);

  /** What can be passed on now: what was held back and `bytes`, but for a character that is not complete yet. */
  take(bytes: Uint8Array): Uint8Array {
    const all = this.#held.length === 0 ? bytes : Uint8Array.of(...this.#held, ...bytes);
    const end = all.length - unfinished(all);
    this.#held = all.slice(end);
    return all.subarray(0, end);
  }

  /** What comes next does not join what was held back. */
  forget(): void {
    this.#held = new Uint8Array(0);
  }
}

/** How many bytes at the end begin a character and do not end it. */
function unfinished(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}
