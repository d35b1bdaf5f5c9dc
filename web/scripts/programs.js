// Writes the two WebAssembly modules of app/ as scripts, which every bundler, page and worker
// accepts: gzipped and in base64, into src/standalone and next to the output of tsc. Importing this
// module writes them.
//
// Usage: node scripts/programs.js
//
// WHERRY_WEB_APP is the folder of wherry-app.wasm and wherry-grammar.wasm; default: the build's.
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";

const root = new URL("../../", import.meta.url);
const { WHERRY_WEB_APP: chosen } = process.env;
const places = chosen
  ? [new URL(`${chosen}/`, `file://${process.cwd()}/`)]
  : ["build/web/", "build/dev/web/"].map((place) => new URL(place, root));
/** The folder that contains the WebAssembly modules. */
export const place = places.find((folder) => existsSync(new URL("wherry-app.wasm", folder)));
if (!place) {
  console.error(
    `No wherry-app.wasm in ${places.map(({ pathname }) => pathname).join(", ")}. Type: ` +
      "make browser",
  );
  process.exit(1);
}
for (const name of ["app", "grammar"]) {
  const bytes = await readFile(new URL(`wherry-${name}.wasm`, place));
  const text = `export const program = "${gzipSync(bytes, { level: 9 }).toString("base64")}";\n`;
  for (const folder of ["src", "dist", "build/src"]) {
    const standalone = new URL(`../${folder}/standalone/`, import.meta.url);
    await mkdir(standalone, { recursive: true });
    const file = new URL(`${name}.js`, standalone);
    if ((await readFile(file, "utf8").catch(() => "")) === text) continue;
    // written under another name first, because other processes may read the file
    const complete = new URL(`${name}.${process.pid}.new`, standalone);
    await writeFile(complete, text);
    await rename(complete, file);
  }
}
