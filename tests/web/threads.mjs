// node threads.mjs CORE_MODULE COMPILED_FOLDER < {"prompts": ..., "few": ..., "engine": ..., "counts": ...}
// The core with other threads: their tokens, their end, and what happens when one of them fails.
import { createReadStream, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const [module, folder] = process.argv.slice(2);
const { loadCore } = await import(pathToFileURL(path.resolve(module)).href);
const { run } = await import("./scenarios.mjs");

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const given = JSON.parse(Buffer.concat(chunks).toString());
const files = {
  bytes: (name) => readFile(path.join(folder, name)),
  stream: (name) => createReadStream(path.join(folder, name)),
};
const out = { counts: [], refused: {} };

function load(threads) {
  return loadCore({ files, device: "wasm", engine: { ...given.engine, threads } });
}

async function tokens(core, prompts) {
  const params = { ...core.paramsDefault(), temperature: 0, maxTokens: given.few };
  const added = prompts.map((prompt) => ({ tokens: prompt, params }));
  return (await run(core, added)).map((one) => one.tokens);
}

/** Threads of this process. */
const systemThreads = () => readdirSync("/proc/self/task").length;

/** The last memory that was made, and its instance's exports. */
const seen = {};
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (module, imports) => {
  const instance = await instantiate(module, imports);
  seen.memory = imports.env.memory;
  seen.exports = instance.exports;
  return instance;
};

for (const count of given.counts) {
  const core = await load(count);
  const shared = seen.memory.buffer instanceof SharedArrayBuffer;
  out.counts.push({ threads: core.threads, shared, tokens: await tokens(core, given.prompts) });
  core.destroy();
  out.before ??= systemThreads(); // what Node has for files and compilation
}

// What is no number of threads is refused.
for (const count of [0, 1.5, 1000]) {
  try {
    await load(count);
  } catch (thrown) {
    out.refused[count] = `${thrown.name} ${thrown.status}: ${thrown.message}`;
  }
}

// Where this thread may not wait, as a page's own may not, or memory is not shared, there is one.
const { wait } = Atomics;
Atomics.wait = () => {
  throw new TypeError("Atomics.wait cannot be called in this context");
};
out.noWaiting = (await load(2)).threads;
Atomics.wait = wait;
globalThis.crossOriginIsolated = false;
out.notIsolated = (await load(2)).threads;
delete globalThis.crossOriginIsolated;
const { Memory } = WebAssembly;
WebAssembly.Memory = class extends Memory {
  constructor(limits) {
    if (limits.shared) throw new RangeError("WebAssembly.Memory(): could not allocate memory");
    super(limits);
  }
};
out.noRoom = (await load(2)).threads;
WebAssembly.Memory = Memory;

// A thread that traps: a task at an address where no function is, as if a launch had it.
{
  const core = await load(2);
  await tokens(core, given.prompts.slice(0, 1));
  const pool = new Int32Array(seen.memory.buffer, seen.exports.wherry_page_pool(), 71);
  pool[68] = 0x7fffffff; // task
  pool[70] = 1; // tasks
  Atomics.store(pool, 1, 1); // unfinished
  Atomics.store(pool, 0, 1); // untaken
  Atomics.notify(pool, 0);
  while (Atomics.load(pool, 1) !== 0) await setTimeout(1);
  out.died = [];
  core.add(1, Int32Array.from(given.prompts[0]), core.paramsDefault());
  for (const call of [() => core.step(), () => core.step(), () => core.stats()]) {
    try {
      await call();
      out.died.push("none");
    } catch (thrown) {
      out.died.push(`${thrown.name} ${thrown.status}: ${thrown.message}`);
    }
  }
  core.destroy();
}

// Threads end with their core, and with a load that fails.
async function left() {
  for (let i = 0; i < 500 && systemThreads() > out.before; i++) await setTimeout(10);
  return systemThreads();
}
out.during = 0;
for (let i = 0; i < given.loads; i++) {
  const core = await load(3);
  out.during = Math.max(out.during, systemThreads());
  core.destroy();
}
out.after = await left();
await loadCore({ files, device: "wasm", engine: { max_batch: 1000, threads: 3 } }).catch(() => 0);
out.failed = await left();
process.stdout.write(JSON.stringify(out));
