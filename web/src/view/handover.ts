// Files for a message: which ones a paste or a drop brings, and the way of one to the server's machine. Owns the sentences
// when that fails; must never send a message.

import * as api from "../api.ts";
import type { Say } from "../core/words.ts";
import { page } from "../page.svelte.ts";

/** As the server's: what is larger is not even sent. */
const BYTES_MAX = 40 * 1024 * 1024;

export function filesIn(data: DataTransfer | null): File[] {
  return [...(data?.files ?? [])];
}

/** Answers with the path that stands for it; throws a sentence for the person. */
export async function handOver(file: File, say: Say): Promise<string> {
  const { name } = file;
  const large = () => new Error(say("comp.fileLarge", { name, n: BYTES_MAX / 1024 / 1024 }));
  if (file.size > BYTES_MAX) throw large();
  try {
    return quoted(await api.keepFile(file));
  } catch (error) {
    if (error instanceof api.Refused && error.status === 507) throw new Error(say("comp.fileFull", { name, host: page.host }), { cause: error });
    throw new Error(say("comp.fileFailed", { name, why: error instanceof Error ? error.message : String(error) }), { cause: error });
  }
}

/** The server's names are safe; its home may lie in a directory with a space. */
const quoted = (path: string) => (/\s/.test(path) ? `"${path}"` : path);
