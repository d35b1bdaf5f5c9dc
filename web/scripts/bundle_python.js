// The scripts that Python's wheel for browsers brings along, into python/build: engine.js is src/python.ts
// with all it imports; grammar.js, which Python loads before the first request that may be held to a
// grammar, leaves the module for these behind. (A script without an address of its own imports no others.)
//   node scripts/bundle_python.js
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import "./programs.js";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PLACE = "globalThis.wherryGrammar";
/** Stands for the module, and is run when it is first used. */
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
