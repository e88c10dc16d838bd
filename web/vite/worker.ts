// Builds the service worker as one file beside the page. It lies at the root, because a worker rules only what lies
// below it, and has no hash in its name, because the browser asks for it by that name for ever.

import { build, type Plugin } from "vite";

export function worker(): Plugin {
  return {
    name: "purplemux-worker",
    apply: "build",
    async generateBundle() {
      const built = await build({
        configFile: false,
        logLevel: "warn",
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
  };
}
