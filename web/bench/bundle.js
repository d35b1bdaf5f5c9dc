// Bundles the benchmark's page into a folder: page.js, worker.js, wllama.wasm.
//
// Usage: node bench/bundle.js DIR
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const [, , out] = process.argv;
const here = fileURLToPath(new URL(".", import.meta.url));
await mkdir(out, { recursive: true });
await build({
  entryPoints: { page: join(here, "page.js"), worker: join(here, "worker.js") },
  outdir: out,
  bundle: true,
  external: ["url", "ws", "perf_hooks", "module"],
  splitting: true, // modules that are loaded at their first use become separate files
  format: "esm",
  target: "es2022",
  minify: true,
  logLevel: "error",
});
const wllama = join(here, "node_modules", "@wllama", "wllama", "esm");
await copyFile(join(wllama, "wasm", "wllama.wasm"), join(out, "wllama.wasm"));
const page = '<!doctype html><meta charset="utf-8"><script type="module" src="page.js"></script>';
await writeFile(join(out, "index.html"), `${page}\n`);
