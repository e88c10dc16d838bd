// Fails the build when the page grows past its budget: what loads at once (the entry and everything it imports
// statically, scripts and styles) and what the first terminal adds. Fonts are not counted; they load beside.

import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";

/** gzip, bytes: the first screen. */
const SHELL_BYTES_MAX = 80_000;
/** gzip, bytes: the terminal, loaded when the first one is shown. */
const TERMINAL_BYTES_MAX = 150_000;

export function budget(): Plugin {
  return {
    name: "purplemux-budget",
    apply: "build",
    generateBundle(_, bundle) {
      const size = (name: string): number => {
        const file = bundle[name];
        if (file === undefined) return 0;
        return gzipSync(file.type === "chunk" ? file.code : file.source, { level: 9 }).length;
      };
      const sum = (names: Set<string>) => [...names].reduce((total, name) => total + size(name), 0);
      const reach = (name: string, into: Set<string>): Set<string> => {
        const chunk = bundle[name];
        if (chunk?.type !== "chunk" || into.has(name)) return into;
        into.add(name);
        for (const css of chunk.viteMetadata?.importedCss ?? []) into.add(css);
        for (const next of chunk.imports) reach(next, into);
        return into;
      };

      const chunks = Object.values(bundle).filter((file) => file.type === "chunk");
      const shell = new Set<string>();
      for (const chunk of chunks) if (chunk.isEntry) reach(chunk.fileName, shell);
      const terminal = new Set<string>();
      for (const chunk of chunks) if (chunk.facadeModuleId?.endsWith("/pane/Terminal.svelte")) reach(chunk.fileName, terminal);
      for (const name of shell) terminal.delete(name);

      const found = [
        { what: "the first screen", bytes: sum(shell), max: SHELL_BYTES_MAX },
        { what: "the terminal", bytes: sum(terminal), max: TERMINAL_BYTES_MAX },
      ];
      for (const { what, bytes, max } of found) {
        const line = `${what}: ${(bytes / 1000).toFixed(1)} kB gzip of ${max / 1000} kB`;
        if (bytes > max) this.error(`${line}; it is over its budget`);
        this.info(line);
      }
    },
  };
}
