// Builds the service worker as one file beside the page. It lies at the root, because a worker rules only what lies
// below it, and has no hash in its name, because the browser asks for it by that name for ever. It is told the page's
// files, so that every build has a worker of its own.

import { createHash } from "node:crypto";
import { build, type Plugin } from "vite";

/** Those of `public/` that the page itself shows. */
const BESIDE = ["/favicon.svg", "/icon-192.png", "/manifest.webmanifest"];

export function worker(): Plugin {
  return {
    name: "purplemux-worker",
    apply: "build",
    // Last: what the page does not load after all has gone from the list by then.
    generateBundle: {
      order: "post",
      async handler(_, bundle) {
        const made = Object.keys(bundle).filter((name) => name.startsWith("assets/") && !name.endsWith(".map"));
        const files = [...made.map((name) => `/${name}`), ...BESIDE].sort();
        const name = createHash("sha256").update(files.join("\n")).digest("hex").slice(0, 16);
        const built = await build({
          configFile: false,
          logLevel: "warn",
          define: { __SHELL__: JSON.stringify({ build: name, files }) },
          build: {
            write: false,
            target: ["chrome123", "firefox121", "safari17.5"],
            lib: { entry: "src/worker/worker.ts", formats: ["iife"], name: "worker", fileName: () => "worker.js" },
          },
        });
        const outputs = Array.isArray(built) ? built : [built];
        for (const output of outputs) {
          if (!("output" in output)) throw new Error("the worker was watched and not built");
          for (const file of output.output) {
            if (file.type === "chunk") this.emitFile({ type: "asset", fileName: "worker.js", source: file.code });
          }
        }
      },
    },
  };
}
