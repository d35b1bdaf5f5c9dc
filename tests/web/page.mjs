// The core in a page: loads the compiled folders that /given.json names, answers, and posts what
// came of it. Served by browser.py.
import { loadCore } from "/core/core.js";
import { everywhere } from "/tests/scenarios.mjs";

async function device() {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("this browser has no WebGPU adapter");
  return { adapter, device: await adapter.requestDevice() };
}

function filesAt(base) {
  const get = async (name) => {
    const answer = await fetch(`${base}/${name}`);
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return answer;
  };
  return {
    bytes: async (name) => new Uint8Array(await (await get(name)).arrayBuffer()),
    stream: async function* (name) {
      const reader = (await get(name)).body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        yield piece.value;
      }
    },
  };
}

/** Kernels of a step that decodes one token. */
async function dispatches(given) {
  const { device: gpu } = await device();
  const { engine } = given;
  const core = await loadCore({ files: filesAt("/model"), device: "webgpu", gpu, engine });
  const params = { ...core.paramsDefault(), temperature: 0, maxTokens: 4 };
  core.add(1, Int32Array.from(given.prompts[0]), params);
  const counts = [];
  for (let left = 1; left > 0; ) {
    for (const event of await core.step()) if (event.finish !== undefined) left--;
    counts.push(core.stats().dispatches);
  }
  core.destroy();
  return { counts };
}

/** The vectors that an encoder gives for the prompts, beside each other. */
async function embeddings({ prompts }) {
  const { device: gpu } = await device();
  const core = await loadCore({ files: filesAt("/model"), device: "webgpu", gpu });
  const params = { ...core.paramsDefault(), embed: true };
  prompts.forEach((tokens, id) => core.add(id, Int32Array.from(tokens), params));
  const vectors = [];
  for (let left = prompts.length; left > 0; ) {
    for (const { id, finish, embedding } of await core.step()) {
      if (finish === undefined) continue;
      vectors[id] = [...embedding];
      left--;
    }
  }
  core.destroy();
  return { vectors };
}

/** Of all tokens of the longest prompt, and of some that follow. */
async function logprobs(core, given) {
  const tokens = Int32Array.from(given.prompts.at(-1));
  const params = { temperature: 0, maxTokens: given.few, topLogprobs: 1, promptLogprobs: 0 };
  core.add(60, tokens, { ...core.paramsDefault(), ...params });
  const values = [];
  for (let left = 1; left > 0; ) {
    for (const event of await core.step()) {
      if (event.token >= 0) values.push(event.logprob);
      if (event.finish !== undefined) left--;
    }
  }
  return values;
}

async function answer(given) {
  const { device: gpu, adapter } = await device();
  const progress = [];
  const start = performance.now();
  const core = await loadCore({
    files: filesAt("/model"),
    device: "webgpu",
    gpu,
    engine: given.engine,
    progress: (event) => progress.push(event),
  });
  const loaded = performance.now();
  const out = await everywhere(core, given);
  out.seconds = { load: (loaded - start) / 1000, all: (performance.now() - start) / 1000 };
  out.adapter = adapter.info?.architecture ?? "";
  out.progress = progress;
  out.metadata = core.metadata;
  out.logprobs = await logprobs(core, given);
  const params = { ...core.paramsDefault(), temperature: 0, maxTokens: given.few };
  core.add(50, Int32Array.from(given.prompts[0]), params);
  await core.step();
  gpu.destroy(); // as if the driver had taken it away
  out.lost = [];
  for (let i = 0; i < 2; i++) {
    try {
      await core.step();
      out.lost.push("none");
    } catch (thrown) {
      out.lost.push(`${thrown.name} ${thrown.status}: ${thrown.message}`);
    }
  }
  core.destroy();
  return out;
}

let result;
try {
  const given = await (await fetch("/given.json")).json();
  const { [given.only]: part = answer } = { dispatches, embeddings };
  result = await part(given);
} catch (thrown) {
  result = { failure: `${thrown?.stack ?? thrown}` };
}
await fetch("/result", { method: "POST", body: JSON.stringify(result) });
