// The rules of STYLE.md that a machine can check in the page.

import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

/** Waiting and sockets have one home each; everything else is told by `watch` or by a call. */
const TIMERS = ["setTimeout", "setInterval", "requestIdleCallback"].map((name) => ({
  name,
  message: "Timers live in clock.ts (link.ts uses it); no waiting as glue.",
}));
const SOCKETS = ["WebSocket", "EventSource"].map((name) => ({ name, message: "Sockets live in link.ts." }));
const onObject = (object) => (rule) => ({ object, property: rule.name, message: rule.message });
const restrictedProperties = ["window", "globalThis", "self"].flatMap((object) => [...TIMERS, ...SOCKETS].map(onObject(object)));

export default ts.config(
  { ignores: ["dist", "node_modules", "src/wire/types.ts"] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-console": "error",
      "no-empty": ["error", { allowEmptyCatch: false }],
      "no-restricted-globals": ["error", ...TIMERS, ...SOCKETS],
      "no-restricted-properties": ["error", ...restrictedProperties],
      "no-restricted-imports": ["error", { patterns: [{ regex: "^@xterm/", message: "xterm lives in pane/." }] }],
      "@typescript-eslint/switch-exhaustiveness-check": "off",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, svelteConfig } },
  },
  { files: ["src/pane/**"], rules: { "no-restricted-imports": "off" } },
  { files: ["src/clock.ts"], rules: { "no-restricted-globals": ["error", ...SOCKETS] } },
  { files: ["src/link.ts"], rules: { "no-restricted-globals": "off" } },
  {
    files: ["src/core/**"],
    rules: {
      "no-restricted-imports": ["error", { patterns: [{ regex: "^(?!\\./|\\.\\./wire/|vitest$)", message: "core depends on nothing but wire." }] }],
    },
  },
  { files: ["src/worker/**"], languageOptions: { globals: globals.serviceworker } },
  { files: ["vite/**", "*.config.*"], languageOptions: { globals: globals.node } },
);
