// A test as one file, in place of what the compiler made of it: for libraries that Node itself cannot
// load as modules.
//   node scripts/bundle_test.js NAME
import { rm } from "node:fs/promises";
import { build } from "esbuild";

const [, , name] = process.argv;
const compiled = `build/test/${name}.test.js`;
await build({
  entryPoints: [compiled],
  outfile: `build/test/${name}.test.mjs`,
  bundle: true,
  platform: "node",
  format: "esm",
  banner: {
    js: `import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
const require = createRequire(import.meta.url);
const __filename = fileURLToPath(import.meta.url);
const __dirname = fileURLToPath(new URL(".", import.meta.url));`,
  },
  logLevel: "error",
});
await rm(compiled);
