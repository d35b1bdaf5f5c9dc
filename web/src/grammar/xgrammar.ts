import type * as Library from "../standalone/grammar.js";

/** The library; there once {@link loadXgrammar} has been waited for. */
export let xgrammar: typeof Library;

/** Load it, if nobody has: a script that was loaded apart leaves it behind as a global. */
export async function loadXgrammar(): Promise<void> {
  const { xgrammar: apart } = globalThis as { xgrammar?: typeof Library };
  xgrammar = apart ?? (await import("../standalone/grammar.js"));
}
