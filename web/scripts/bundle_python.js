// Bundles the scripts of Python's wheel for browsers into python/build. engine.js is src/python.ts
// with all its imports. grammar.js provides the module for grammars; Python loads it before the
// first request that uses one. (A script without an address cannot import other scripts.)
//
// Usage: node scripts/bundle_python.js
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import "./programs.js";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PLACE = "globalThis.wherryGrammar";
/**
 * Replaces the module for grammars in engine.js; it returns the module that grammar.js provides.
 */
const loadedApart = {
  name: "loaded-apart",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /standalone\/grammar\.js$/ }, ({ path }) => ({ path, namespace: "apart" }));
    onLoad({ filter: /.*/, namespace: "apart" }, () => ({
      contents: `export const program = ${PLACE};`,
    }));
  },
};

await build({
  entryPoints: [here("../src/python.ts")],
  outfile: here("../python/build/engine.js"),
  bundle: true,
  plugins: [loadedApart],
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
const script = await readFile(here("../src/standalone/grammar.js"), "utf8");
await writeFile(here("../python/build/grammar.js"), script.replace("export const program", PLACE));
