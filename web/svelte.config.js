// How Svelte compiles the page, for vite, svelte-check and ESLint alike. Owns no setting of theirs.

import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default { preprocess: vitePreprocess(), compilerOptions: { runes: true } };
