// The binary frames of `/api/terminal`, both directions. Owns the bytes only; the kinds are generated from wire.

import { FrameKind } from "../wire/protocol.ts";

export type Frame =
  | { kind: "data"; bytes: Uint8Array }
  /** The size of the window, and whether this viewer decides it. */
  | { kind: "size"; cols: number; rows: number; own: boolean }
  /** Absolute offset of the next data byte. */
  | { kind: "offset"; at: number }
  | { kind: "title"; text: string }
  | { kind: "end"; reason: string };

/** Null for a frame that is torn or of a kind we don't know; it changes nothing. */
export function decode(buffer: ArrayBuffer): Frame | null {
  if (buffer.byteLength === 0) return null;
  const view = new DataView(buffer);
  const body = new Uint8Array(buffer, 1);
  switch (view.getUint8(0)) {
    case FrameKind.data:
      return { kind: "data", bytes: body };
    case FrameKind.resize:
      return body.length === 5 ? { kind: "size", cols: view.getUint16(1), rows: view.getUint16(3), own: view.getUint8(5) === 1 } : null;
    case FrameKind.offset:
      // Offsets stay far below 2^53: that many bytes would take centuries.
      return body.length === 8 ? { kind: "offset", at: Number(view.getBigUint64(1)) } : null;
    case FrameKind.title:
      return { kind: "title", text: new TextDecoder().decode(body) };
    case FrameKind.end:
      return { kind: "end", reason: new TextDecoder().decode(body) };
    default:
      return null;
  }
}

export function keys(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(1 + bytes.length);
  frame[0] = FrameKind.data;
  frame.set(bytes, 1);
  return frame;
}

export function resize(cols: number, rows: number): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(5));
  view.setUint8(0, FrameKind.resize);
  view.setUint16(1, cols);
  view.setUint16(3, rows);
  return new Uint8Array(view.buffer);
}

export function credit(bytes: number): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(5));
  view.setUint8(0, FrameKind.credit);
  view.setUint32(1, bytes);
  return new Uint8Array(view.buffer);
}

/** What a viewer says of its page: it is hidden, it is seen again, the window is to fit here. */
export const HOLDS = { hidden: 0, seen: 1, take: 2 } as const;
export type Hold = keyof typeof HOLDS;

export function hold(word: Hold): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(FrameKind.hold, HOLDS[word]);
}
