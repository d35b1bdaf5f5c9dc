// A test as one file, in place of what the compiler made of it: for libraries that Node itself cannot
// load as modules.
//   node scripts/bundle_test.js NAME
import { rm } from "node:fs/promises";
import { build } from "esbuild";

import { grammarLibrary } from "./grammar_library.js";

const [, , name] = process.argv;
const compiled = `build/test/${name}.test.js`;
await build({
  entryPoints: [compiled],
  outfile: `build/test/${name}.test.mjs`,
  bundle: true,
  platform: "node",
  format: "esm",
  plugins: [grammarLibrary],
  logLevel: "error",
});
await rm(compiled);
