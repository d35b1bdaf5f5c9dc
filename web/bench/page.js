// Loads the engines that /given.json names, and sends them requests in turn. benchmarks/browser.py
// opens this page, reads the browser's CPU time at each mark, and gets the times at the end.
import * as engines from "./engines.js";

/** Marks a point in time, at which benchmarks/browser.py reads the browser's CPU seconds. */
async function mark() {
  const at = performance.now();
  const { cpu_s: cpu } = await (await fetch("/mark", { method: "POST" })).json();
  return { at, cpu };
}

function between(from, to) {
  return { wall_s: (to.at - from.at) / 1000, cpu_s: to.cpu - from.cpu };
}

/** Measures one request: from its start to its first token, and from there to its end. */
async function measured(engine, { prompt, tokens }) {
  const start = await mark();
  let first;
  const counts = await engine.stream(prompt, tokens, () => (first ??= mark()));
  const end = await mark();
  return {
    ...counts,
    prefill: between(start, await first),
    decode: between(await first, end),
  };
}

async function all({ sides, requests }) {
  const loaded = [];
  for (const side of sides) {
    const start = performance.now();
    loaded.push({ ...side, engine: await engines[side.kind](side), runs: [] });
    loaded.at(-1).load_s = (performance.now() - start) / 1000;
  }
  for (const request of requests) {
    for (const side of loaded) side.runs.push(await measured(side.engine, request));
  }
  return loaded.map(({ kind, runs, load_s }) => ({ kind, runs, load_s }));
}

let result;
try {
  result = await all(await (await fetch("/given.json")).json());
} catch (thrown) {
  result = { failure: String(thrown?.stack ?? thrown) };
}
await fetch("/result", { method: "POST", body: JSON.stringify(result) });
