// What npm packs beside the modules that tsc has made in dist: standalone/, files for pages without a
// bundler, and licenses.
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

import { grammarLibrary } from "./grammar_library.js";

const shared = {
  absWorkingDir: new URL("..", import.meta.url).pathname,
  allowOverwrite: true,
  outdir: "dist/standalone",
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
};
/** Loaded by the first request that is held to a grammar. */
const grammarApart = {
  name: "grammar-apart",
  setup({ onResolve }) {
    onResolve({ filter: /standalone\/grammar\.js$/ }, () => ({
      path: "./grammar.js",
      external: true,
    }));
  },
};
const licenses = "standalone/LICENSES.txt";
const banner = { js: `/*! Apache-2.0; what others have written in it: ${licenses} */` };
const made = [
  await build({
    ...shared,
    banner,
    entryPoints: ["src/standalone/grammar.ts"],
    plugins: [grammarLibrary],
  }),
  await build({
    ...shared,
    banner,
    entryPoints: ["src/standalone/wherry.ts", "src/standalone/worker.ts"],
    plugins: [grammarApart],
  }),
];

/** Packages that the files hold parts of. */
const packages = new Set(
  made.flatMap(({ metafile }) =>
    Object.keys(metafile.inputs).flatMap(
      (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
    ),
  ),
);
const texts = [...packages].sort().map(async (name) => {
  const place = new URL(`../node_modules/${name}/`, import.meta.url);
  const { version, license } = JSON.parse(await readFile(new URL("package.json", place), "utf8"));
  const terms = await readFile(new URL("LICENSE", place), "utf8").catch(() => "");
  return `${name} ${version}: ${license}\n\n${terms || "See LICENSE of this package.\n"}`;
});
await writeFile(
  new URL(`../dist/${licenses}`, import.meta.url),
  (await Promise.all(texts)).join("\n\n"),
);
await copyFile(new URL("../../LICENSE", import.meta.url), new URL("../LICENSE", import.meta.url));
