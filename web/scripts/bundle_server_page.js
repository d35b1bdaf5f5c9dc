// Writes markdown/ into the page of Wherry's server. That page is a single file, which the wheel
// contains, so building the wheel needs no npm. `--check` only tells whether the page is up to
// date.
//
// Usage: node scripts/bundle_server_page.js [--check]
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PAGE = here("../../runtime_py/server/page/index.html");
const BEGIN = "// ---- Markdown: web/markdown, by `npm run server-page --prefix web` ----\n";
const END = "// ---- end of Markdown ----\n";

const { outputFiles } = await build({
  entryPoints: [here("../markdown/page.ts")],
  bundle: true,
  write: false,
  format: "iife",
  globalName: "markdown",
  charset: "utf8",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
});
const page = await readFile(PAGE, "utf-8");
const [before, rest] = page.split(BEGIN);
const [, after] = rest.split(END);
const bundled = `${before}${BEGIN}${outputFiles[0].text}${END}${after}`;
if (process.argv[2] !== "--check") await writeFile(PAGE, bundled);
else if (bundled !== page) {
  console.error(
    `${PAGE} has another Markdown than web/markdown. Type: npm run server-page --prefix web`,
  );
  process.exit(1);
}
