// node node.mjs CORE_MODULE COMPILED_FOLDER < {"prompts": ..., "tokens": ..., "few": ..., "engine": ...}
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [module, folder] = process.argv.slice(2);
const { loadCore } = await import(pathToFileURL(path.resolve(module)).href);
const { everywhere, run } = await import("./scenarios.mjs");

const files = {
  bytes: (name) => readFile(path.join(folder, name)),
  // Pieces of an odd size: tensors are cut anywhere.
  stream: (name) => createReadStream(path.join(folder, name), { highWaterMark: 100_003 }),
};
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const given = JSON.parse(Buffer.concat(chunks).toString());
const progress = [];
const start = performance.now();
const core = await loadCore({
  files,
  device: "wasm",
  engine: given.engine,
  progress: (event) => progress.push(event),
});
const loaded = performance.now();
const out = await everywhere(core, given);
out.metadata = core.metadata;
out.progress = progress;

// Speculation: a text that repeats itself, drafted from what it says.
const params = { ...core.paramsDefault(), temperature: 0, maxTokens: given.tokens, maxDrafts: 4 };
out.drafted = (await run(core, [{ tokens: given.prompts[0], params }]))[0];
core.destroy();
core.destroy();
try {
  core.stats();
} catch (thrown) {
  out.destroyed = thrown.status;
}

// What is damaged is refused, with words.
out.refused = {};
async function refused(what, changed, engine = {}) {
  try {
    await loadCore({ files: { ...files, ...changed }, device: "wasm", engine });
  } catch (thrown) {
    out.refused[what] = `${thrown.name} ${thrown.status}: ${thrown.message}`;
  }
}
await refused("short", {
  stream: (name) => createReadStream(path.join(folder, name), { end: 100_000 }),
});
await refused("wasm", { bytes: async (name) => (name === "model.wasm" ? Buffer.from("no") : files.bytes(name)) });
await refused("index", {
  bytes: async (name) =>
    name === "tensor-cache.json" ? Buffer.from('{"records": []}') : files.bytes(name),
});
await refused("memory", {}, { kv_tokens: 8 << 20 }); // 8 GB a layer
await refused("config", {}, { max_batch: 1000 });
out.seconds = { load: (loaded - start) / 1000, all: (performance.now() - start) / 1000 };
process.stdout.write(JSON.stringify(out));
