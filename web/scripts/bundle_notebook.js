// Bundles the notebook page: all files that a web server needs except the models.
//
// Usage: node scripts/bundle_notebook.js WHEEL DIR
import { copyFile, mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import { emptied } from "./emptied.js";

const [, , wheel, out] = process.argv;
if (out === undefined) {
  console.error("usage: node scripts/bundle_notebook.js WHEEL DIR");
  process.exit(2);
}
const notebook = fileURLToPath(new URL("../notebook/", import.meta.url));
const pyodide = fileURLToPath(new URL("../node_modules/pyodide/", import.meta.url));
await emptied(out);
await mkdir(join(out, "pyodide"), { recursive: true });
await build({
  entryPoints: { notebook: join(notebook, "notebook.ts"), kernel: join(notebook, "kernel.ts") },
  outdir: out,
  bundle: true,
  define: { WHEEL: JSON.stringify(basename(wheel)) },
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
for (const name of ["index.html", "notebook.css"])
  await copyFile(join(notebook, name), join(out, name));
await copyFile(wheel, join(out, basename(wheel)));
for (const name of [
  "pyodide.mjs",
  "pyodide.asm.mjs",
  "pyodide.asm.wasm",
  "python_stdlib.zip",
  "pyodide-lock.json",
]) {
  await copyFile(join(pyodide, name), join(out, "pyodide", name));
}
