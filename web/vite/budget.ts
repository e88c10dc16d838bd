// Fails the build when the page grows past its budget: what loads at once (the entry with everything it imports
// statically, scripts and styles, and the screens of a desk or those of a phone) and what the first terminal adds. Fonts are not counted; they load beside.

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
      const found = (module: string, into: Set<string>): Set<string> => {
        const chunk = chunks.find((file) => file.facadeModuleId?.endsWith(module) === true);
        if (chunk === undefined) this.error(`${module} has no chunk of its own any more`);
        return reach(chunk.fileName, into);
      };
      const desk = found("/view/Desk.svelte", new Set(shell));
      const phone = found("/view/Phone.svelte", new Set(shell));
      const terminal = found("/pane/Terminal.svelte", new Set());
      for (const name of desk) terminal.delete(name);

      const parts = [
        { what: "the first screen of a desk", bytes: sum(desk), max: SHELL_BYTES_MAX },
        { what: "the first screen of a phone", bytes: sum(phone), max: SHELL_BYTES_MAX },
        { what: "the terminal", bytes: sum(terminal), max: TERMINAL_BYTES_MAX },
      ];
      for (const { what, bytes, max } of parts) {
        const line = `${what}: ${(bytes / 1000).toFixed(1)} kB gzip of ${max / 1000} kB`;
        if (bytes > max) this.error(`${line}; it is over its budget`);
        this.info(line);
      }
    },
  };
}
