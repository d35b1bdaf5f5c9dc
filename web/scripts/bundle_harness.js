// Bundles the scripts that tests load in a page, and a worker with an engine, each into one file.
//
// Usage: node scripts/bundle_harness.js DIR
import { build } from "esbuild";

import "./programs.js";

const [, , out] = process.argv;
if (out === undefined) {
  console.error("usage: node scripts/bundle_harness.js DIR");
  process.exit(2);
}
await build({
  entryPoints: { harness: "test/page/harness.ts", worker: "test/page/worker.ts" },
  outdir: out,
  bundle: true, // no separate files, because a running service worker cannot load any
  format: "esm",
  target: "es2022",
  logLevel: "warning",
});
