// Bundles the demo page: all files that a web server needs except the models.
//
// Usage: node scripts/bundle_page.js DIR
import { createHash } from "node:crypto";
import { copyFile, readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import { emptied, KEPT } from "./emptied.js";
import "./programs.js";

const [, , out] = process.argv;
if (out === undefined) {
  console.error("usage: node scripts/bundle_page.js DIR");
  process.exit(2);
}
const demo = new URL("../demo/", import.meta.url);
await emptied(out);
await build({
  entryPoints: { page: "main.ts", worker: "worker.ts" },
  absWorkingDir: fileURLToPath(demo),
  outdir: fileURLToPath(new URL(out.endsWith("/") ? out : `${out}/`, `file://${process.cwd()}/`)),
  bundle: true,
  // omitted to save 0.4 MB: the page never constrains an answer by a schema
  external: ["*/standalone/grammar.js"],
  splitting: true,
  chunkNames: "part-[hash]",
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
for (const name of ["index.html", "page.css", "icon.svg", "app.svg", "manifest.json"]) {
  await copyFile(new URL(name, demo), `${out}/${name}`);
}

// The page's service worker stores all of these files; a changed page has a changed list of hashes.
const files = (await readdir(out)).filter((name) => !KEPT.has(name)).sort();
const contents = await Promise.all(files.map((name) => readFile(`${out}/${name}`)));
const hash = createHash("sha256");
for (const content of contents) hash.update(createHash("sha256").update(content).digest());
await build({
  entryPoints: [fileURLToPath(new URL("offline.ts", demo))],
  outfile: `${out}/offline.js`,
  bundle: true,
  define: {
    FILES: JSON.stringify(files),
    VERSION: JSON.stringify(hash.digest("hex").slice(0, 16)),
  },
  format: "iife",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
