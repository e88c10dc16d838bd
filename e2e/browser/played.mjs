// The server's side of a page's status socket, played over the real one: what a test lays into the stream reaches the page
// between the server's own words, and what the page says is kept. Owns the count of revisions, which the page checks; must
// be used only where the moment of a word is what is tested, and never in place of the server where its answer is.

import { until } from "./lab.mjs";

export class Played {
  /** Every message of the page, oldest first, with the time (`saidMs`) at which it came. */
  said = [];
  /** Kinds of messages that do not reach the server. */
  held = new Set();
  /** The rows as the server last told them. */
  items = new Map();
  /** What becomes of a row on its way. */
  dress = (item) => item;
  #ws = null;
  #server = null;
  #late = [];
  #rev = 0;
  #epoch = "";
  #first = null;

  /** Before the page connects. */
  async on(page) {
    await page.routeWebSocket(/\/api\/status/, (ws) => {
      const server = ws.connectToServer();
      this.#ws = ws;
      this.#server = server;
      ws.onMessage((text) => {
        const msg = JSON.parse(text);
        if (msg.type !== "hello") this.said.push({ ...msg, saidMs: Date.now() });
        if (this.held.has(msg.type)) this.#late.push(text);
        else server.send(text);
      });
      server.onMessage((text) => this.#pass(JSON.parse(text)));
    });
    return this;
  }

  #pass(msg) {
    if (msg.type === "snapshot") {
      this.#epoch = msg.epoch;
      this.#rev = 1;
      this.items = new Map(msg.items.map((item) => [item.id, item]));
      const snapshot = { ...msg, rev: 1, items: msg.items.map(this.dress) };
      this.#first ??= snapshot;
      this.say(snapshot);
    } else if (msg.type === "diff") {
      for (const id of msg.gone) this.items.delete(id);
      for (const item of msg.set) this.items.set(item.id, item);
      this.say({ ...msg, rev: (this.#rev += 1), set: msg.set.map(this.dress) });
    } else this.say(msg.type === "heartbeat" ? { ...msg, rev: this.#rev } : msg);
  }

  /** What was held goes on its way now. */
  release() {
    this.held.clear();
    for (const text of this.#late.splice(0)) this.#server.send(text);
  }

  say(msg) {
    this.#ws.send(JSON.stringify(msg));
  }

  /** The row again, as it is dressed now. */
  async redress(tab) {
    const item = await until(`row of ${tab.id}`, () => this.items.get(tab.id));
    this.say({ type: "diff", epoch: this.#epoch, rev: (this.#rev += 1), now_ms: Date.now(), set: [this.dress(item)], gone: [] });
  }

  /** The first snapshot of all once more, as if it had been long on the way. */
  sayFirstAgain() {
    this.say(this.#first);
  }

  /** The answers that the page has sent. */
  answers() {
    return this.said.filter(({ type }) => type === "answer");
  }
}
