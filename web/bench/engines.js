// The engines that the benchmark measures, each behind the same two functions: load(given) ->
// engine, and engine.stream(prompt, tokens, told), which decodes greedily and calls told(count) at
// each piece.
import { Wllama } from "@wllama/wllama";
import { CreateMLCEngine } from "@mlc-ai/web-llm";

import { connect } from "../src/worker/connect.ts";

/** Loads a model that Wherry compiled for WebGPU or wasm; `given.url` is the folder's address. */
export async function wherry(given) {
  const worker = new Worker("worker.js", { type: "module" });
  const engine = connect(worker);
  // A step has no time limit: the other engines have none, and a software GPU would reach it.
  const limits = { max_batch: 1, context: given.context, prefix_cache: false, max_step_seconds: 0 };
  await engine.load(new URL(given.url, location.href).href, { limits });
  return {
    async stream(prompt, tokens, onToken) {
      const options = { max_tokens: tokens, temperature: 0, ignore_eos: true };
      const usage = { stream: true, stream_options: { include_usage: true } };
      let all;
      for await (const chunk of await engine.completions.create({ prompt, ...options, ...usage })) {
        if (chunk.choices.length > 0) onToken();
        else all = chunk.usage;
      }
      return { prompt: all.prompt_tokens, output: all.completion_tokens };
    },
  };
}

/** Loads llama.cpp in wasm, on one CPU thread; `given.url` is the address of a GGUF file. */
export async function wllama(given) {
  const logger = { debug() {}, log() {}, warn() {}, error: console.error };
  const engine = new Wllama({ default: "wllama.wasm" }, { suppressNativeLog: true, logger });
  const file = await (await fetch(given.url)).blob();
  await engine.loadModel([new File([file], "model.gguf")], {
    n_ctx: given.context,
    n_threads: 1,
    n_gpu_layers: 0,
    n_parallel: 1,
  });
  return {
    async stream(prompt, tokens, onToken) {
      const options = { max_tokens: tokens, temperature: 0, ignore_eos: true };
      let all;
      const chunks = await engine.createCompletion({
        prompt,
        ...options,
        stream: true,
        cache_prompt: false,
      });
      for await (const chunk of chunks) {
        onToken();
        all = chunk.timings ?? all;
      }
      return { prompt: all.prompt_n, output: all.predicted_n, timings: all };
    },
  };
}

/** Loads WebLLM on a folder that was compiled for it (--target webgpu:web-llm). */
export async function webllm(given) {
  const model = new URL(given.url, location.href).href;
  const engine = await CreateMLCEngine("model", {
    appConfig: {
      model_list: [{ model, model_id: "model", model_lib: `${model}model.wasm` }],
    },
    logLevel: "ERROR",
  });
  return {
    async stream(prompt, tokens, onToken) {
      await engine.resetChat();
      let all;
      const chunks = await engine.completions.create({
        prompt,
        max_tokens: tokens,
        temperature: 0,
        ignore_eos: true,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const chunk of chunks) {
        if (chunk.choices.length > 0) onToken();
        all = chunk.usage ?? all;
      }
      return { prompt: all.prompt_tokens, output: all.completion_tokens };
    },
  };
}
