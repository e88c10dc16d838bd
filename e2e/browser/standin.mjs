// A program called `claude` that does nothing, and what Claude Code would tell about it: for tests that are about the page
// and need a state at a moment of their own.

import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const session = (pid) => `00000000-0000-4000-8000-${String(pid).padStart(12, "0")}`;
const startOf = (pid) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[19];

/** Where the program is; it only sleeps for its argument. */
export function standIn(env) {
  const dir = join(env.HOME, "stand-in");
  mkdirSync(dir, { recursive: true });
  copyFileSync("/bin/sleep", join(dir, "claude"));
  chmodSync(join(dir, "claude"), 0o755);
  return join(dir, "claude");
}

/** What Claude would write about itself. */
export function say(env, pid, status) {
  const sessions = join(env.HOME, ".claude", "sessions");
  mkdirSync(sessions, { recursive: true });
  const at = Date.now();
  const file = { pid, procStart: startOf(pid), sessionId: session(pid), cwd: "/", version: "2.1.332", kind: "interactive", entrypoint: "cli", status, statusUpdatedAt: at, updatedAt: at };
  writeFileSync(join(sessions, `${pid}.json`), JSON.stringify(file));
}

/** The hook at the end of a turn; the status that the server answers with. */
export async function finish(env, pid) {
  const token = readFileSync(join(env.PURPLEMUX_HOME, "cli-token"), "utf8").trim();
  const port = readFileSync(join(env.PURPLEMUX_HOME, "port"), "utf8").trim();
  const body = { hook_event_name: "Stop", session_id: session(pid), last_assistant_message: "done", background_tasks: [] };
  const posted = await fetch(`http://127.0.0.1:${port}/api/status/hook`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-pmux-token": token, "x-pmux-event": "Stop", "x-pmux-pid": String(pid), "x-pmux-start": startOf(pid), "x-pmux-id": `stop-${pid}` },
    body: JSON.stringify(body),
  });
  return posted.status;
}
