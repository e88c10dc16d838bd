// How the page is built: one shell, one lazily loaded terminal, everything self-hosted and compressed beside.
// It must never inline a file as data: or add an inline script; the server's content policy refuses both.

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { budget } from "./vite/budget.ts";
import { shared } from "./vite/chunks.ts";
import { compress } from "./vite/compress.ts";
import { worker } from "./vite/worker.ts";

/** Where `npm run dev` finds a server; start one with `purplemux serve`. */
const server = process.env["PURPLEMUX_DEV_SERVER"] ?? "http://127.0.0.1:8022";

export default defineConfig({
  plugins: [svelte(), budget(), worker(), compress()],
  build: {
    target: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: shared() }] } } },
  },
  // The server checks Host and Origin; in front of it the page has to say the server's own.
  server: { proxy: { "/api": { target: server, ws: true, changeOrigin: true, headers: { origin: server } } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
