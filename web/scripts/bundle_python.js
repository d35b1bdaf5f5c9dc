// The scripts that Python's wheel for browsers brings along, into python/build: engine.js is src/python.ts
// with all it imports; grammar.js, which Python loads for the first request that is held to a grammar,
// is the library for these as it is. (A script without an address of its own imports no others.)
//   node scripts/bundle_python.js
import { copyFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const GRAMMARS = "@mlc-ai/web-xgrammar";
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
/** Stands for the library, which leaves a global behind: src/grammar/xgrammar.ts takes that. */
const loadedApart = {
  name: "loaded-apart",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /standalone\/grammar\.js$/ }, ({ path }) => ({ path, namespace: "apart" }));
    onLoad({ filter: /.*/, namespace: "apart" }, () => ({ contents: "export {};" }));
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
await copyFile(fileURLToPath(import.meta.resolve(GRAMMARS)), here("../python/build/grammar.js"));
