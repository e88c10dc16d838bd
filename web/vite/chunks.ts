// Puts what every first screen needs into one file: many small ones cost requests, and compress worse than one. Owns that
// list, which it takes from the imports themselves; must never name a module by hand that the list could find.

type Info = { readonly importedIds: readonly string[] };
type Look = (id: string) => Info | null;

const ENTRY = "/src/main.ts";
const SCREENS = ["/src/view/Desk.svelte", "/src/view/Phone.svelte"];

/** For `output.codeSplitting.groups`: the name of a module's file, null where that is for the builder to find. */
export function shared(): (id: string, context: { getModuleInfo(id: string): Info | null }) => string | null {
  let common: ReadonlySet<string> | null = null;
  return (id, context) => ((common ??= commonOf(process.cwd(), (module) => context.getModuleInfo(module))).has(id) ? "base" : null);
}

function commonOf(root: string, look: Look): Set<string> {
  const entry = reached(root + ENTRY, look);
  const [first = new Set<string>(), ...others] = SCREENS.map((screen) => reached(root + screen, look));
  const common = [...first].filter((id) => others.every((other) => other.has(id)));
  return new Set([...entry, ...common]);
}

/** A module and all that it imports, not what it loads later. */
function reached(id: string, look: Look, into = new Set<string>()): Set<string> {
  const info = into.has(id) ? null : look(id);
  if (info === null) return into;
  into.add(id);
  for (const next of info.importedIds) reached(next, look, into);
  return into;
}
