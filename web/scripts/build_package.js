// Builds the npm package's files besides the modules that tsc writes to dist: standalone/, for
// pages without a bundler, and the licenses.
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

import { place } from "./programs.js";

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
/**
 * Keeps the WebAssembly modules of app/ as separate files, which scripts/programs.js has written.
 */
const programsApart = {
  name: "programs-apart",
  setup({ onResolve }) {
    onResolve({ filter: /standalone\/(app|grammar)\.js$/ }, ({ path }) => ({
      path: path.replace(/^.*\//, "./"),
      external: true,
    }));
  },
};
const licenses = "standalone/LICENSES.txt";
const banner = { js: `/*! Apache-2.0; what others have written in it: ${licenses} */` };
const { metafile } = await build({
  ...shared,
  banner,
  entryPoints: ["src/standalone/wherry.ts", "src/standalone/worker.ts"],
  plugins: [programsApart],
});

/** Packages whose code the bundled files contain, so that their licenses are included. */
const packages = new Set(
  Object.keys(metafile.inputs).flatMap(
    (path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? [],
  ),
);
const texts = [...packages].sort().map(async (name) => {
  const folder = new URL(`../node_modules/${name}/`, import.meta.url);
  const { version, license } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
  const terms = await readFile(new URL("LICENSE", folder), "utf8").catch(() => "");
  return `${name} ${version}: ${license}\n\n${terms || "See LICENSE of this package.\n"}`;
});
const xgrammar = ["LICENSE", "NOTICE"].map((name) =>
  readFile(new URL(`wherry-grammar.${name}`, place), "utf8").catch(() => {
    throw Error(`${place.pathname} was built without grammars (xgrammar). Type: make browser`);
  }),
);
await writeFile(
  new URL(`../dist/${licenses}`, import.meta.url),
  [
    ...(await Promise.all(texts)),
    "xgrammar, in grammar.js\n",
    ...(await Promise.all(xgrammar)),
  ].join("\n\n"),
);
await copyFile(new URL("../../LICENSE", import.meta.url), new URL("../LICENSE", import.meta.url));
