import { type Reply, chatReply, completionReply, joinedDeltas } from "../answer/openai.js";
import type { Delta } from "../answer/choice.js";
import { loadCore } from "../core/core.js";
import { AbortedError, RequestError, throwIfAborted } from "../errors.js";
import { type Plan, planChat, planCompletion, type ModelText } from "../request/plan.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatRequest,
  Completion,
  CompletionRequest,
  RequestParams,
} from "../request/types.js";
import type { ModelFolder } from "../weights/folder.js";
import { ModelCache } from "../weights/model_cache.js";
import type { Answer, Endpoint, Engine, RequestOptions } from "./engine.js";
import { deviceOf } from "./device.js";
import { engineLimits } from "./engine_limits.js";
import { requestAdapter, requestDevice } from "./gpu.js";
import { type EngineStats, type LoadedModel, modelText } from "./loaded_model.js";
import { masksOf } from "./masks.js";
import { ModelRunner, ofCore } from "./model_runner.js";
import { openSource } from "./open_source.js";
import type { EngineOptions, LoadOptions, ModelInfo, ModelSource } from "./options.js";
import { runPlan, type Running } from "./run_plan.js";

/**
 * Language models on this thread. In a page a worker is the better place for them
 * (`connect` of "wherry/worker"): there nothing that the person does waits for a step.
 *
 * ```ts
 * const engine = new MLCEngine();
 * await engine.load("/models/demo/", { progress: ({ done, total }) => bar(done / total) });
 * const messages = [{ role: "user", content: "Tell me a story about a fox." }];
 * for await (const chunk of await engine.chat.completions.create({ messages, stream: true })) {
 *   write(chunk.choices[0]?.delta.content ?? "");
 * }
 * ```
 */
export class MLCEngine implements Engine {
  readonly chat: {
    readonly completions: Endpoint<ChatRequest, ChatCompletion, ChatCompletionChunk>;
  };
  readonly completions: Endpoint<CompletionRequest, Completion, Completion>;
  readonly #options: EngineOptions;
  readonly #models = new Map<string, LoadedModel>();
  #disposals = 0;

  constructor(options: EngineOptions = {}) {
    this.#options = options;
    this.chat = { completions: this.#endpoint(planChat, chatReply) };
    this.completions = this.#endpoint(planCompletion, completionReply);
  }

  /** {@inheritDoc Engine.load} */
  async load(source: ModelSource, options: LoadOptions = {}): Promise<ModelInfo> {
    const { signal, progress } = options;
    throwIfAborted(signal);
    const disposals = this.#disposals;
    const adapter = await requestAdapter();
    const cache = this.#options.cache ?? (await ModelCache.open());
    const folder = await openSource(source, adapter, {
      store: cache.store,
      ...(options.mustKeep !== undefined && { mustKeep: options.mustKeep }),
      signal,
      ...(this.#options.fetch ? { fetch: this.#options.fetch } : {}),
      progress: (done, total) => progress?.({ phase: "download", done, total }),
    });
    const name = options.name ?? folder.manifest.name;
    if (this.#models.has(name)) await this.unload(name);
    const model = await this.#loaded(name, folder, adapter, options);
    while (this.#models.has(name)) await this.unload(name); // loaded meanwhile by another call
    if (this.#disposals > disposals) {
      const gone = new AbortedError("The engine was disposed of while the model was loaded.");
      await model.runner.close(gone);
      throw gone;
    }
    this.#models.set(name, model);
    return model.info;
  }

  /** {@inheritDoc Engine.models} */
  models(): Promise<ModelInfo[]> {
    return Promise.resolve([...this.#models.values()].map(({ info }) => info));
  }

  /** {@inheritDoc Engine.stats} */
  stats(model?: string): Promise<EngineStats> {
    const { runner } = this.#model(model);
    return Promise.resolve({ ...runner.core.stats(), openRequests: runner.open });
  }

  /** {@inheritDoc Engine.unload} */
  async unload(model: string): Promise<void> {
    const { runner } = this.#model(model);
    this.#models.delete(model);
    await runner.close(new AbortedError(`The model ${model} was unloaded.`));
  }

  /** {@inheritDoc Engine.dispose} */
  async dispose(): Promise<void> {
    this.#disposals += 1;
    await Promise.all([...this.#models.keys()].map((name) => this.unload(name)));
  }

  async #loaded(
    name: string,
    folder: ModelFolder,
    adapter: GPUAdapter | undefined,
    { progress, signal, limits = {} }: LoadOptions,
  ): Promise<LoadedModel> {
    const { manifest } = folder;
    const device = deviceOf(manifest, folder.source);
    const gpu = device === "webgpu" && adapter ? await requestDevice(adapter, manifest) : undefined;
    let core;
    try {
      core = await (this.#options.loadCore ?? loadCore)({
        files: folder,
        device,
        ...(gpu && { gpu }),
        ...(progress && { progress }),
        ...(signal && { signal }),
        engine: engineLimits(limits, manifest, gpu),
      });
    } catch (error) {
      gpu?.destroy();
      throwIfAborted(signal);
      throw ofCore(error);
    }
    const text = await modelText(folder, core.metadata).catch((error: unknown) => {
      core.destroy();
      throw error;
    });
    const info = {
      name,
      source: folder.source,
      device,
      threads: core.threads,
      context: text.context,
      quantization: manifest.quantization,
      weightBytes: manifest.memory.weights ?? 0,
      kept: folder.kept,
      chats: text.template !== undefined,
    };
    return { info, text, runner: new ModelRunner(core) };
  }

  /** @throws RequestError if there is no such model, or several and none was named. */
  #model(name: string | undefined): LoadedModel {
    const names = [...this.#models.keys()];
    const wanted = name ?? (names.length === 1 ? names[0] : undefined);
    const model = wanted === undefined ? undefined : this.#models.get(wanted);
    if (model) return model;
    const known = names.length > 0 ? `Loaded are: ${names.join(", ")}` : "None is loaded";
    const what = name === undefined ? "Say which model" : `There is no model ${name}`;
    throw new RequestError(`${what}. ${known}.`, { param: "model" });
  }

  #endpoint<Request extends RequestParams, Whole, Chunk>(
    plan: (request: Request, text: ModelText) => Plan,
    reply: (model: string) => Reply<Whole, Chunk>,
  ): Endpoint<Request, Whole, Chunk> {
    const create = async (request: Request, { signal }: RequestOptions = {}): Promise<unknown> => {
      const { text, runner, info } = this.#model(request.model);
      const planned = plan(request, text);
      const masks = await masksOf(planned, text);
      const running = runPlan(planned, text.tokenizer, runner, masks, signal);
      return request.stream
        ? answerOf(chunks(running, reply(info.name)), running)
        : whole(running, reply(info.name));
    };
    return { create } as Endpoint<Request, Whole, Chunk>;
  }
}

async function* chunks<Whole, Chunk>(
  { generation, deltas, close }: Running,
  reply: Reply<Whole, Chunk>,
): AsyncGenerator<Chunk, void, undefined> {
  try {
    yield* reply.opening(generation);
    for await (const delta of deltas) yield* reply.chunks(delta);
    yield* reply.closing(generation);
  } finally {
    close();
  }
}

/** A generator that was never read runs nothing at its end: whoever returns it ends its request. */
function answerOf<Chunk>(
  made: AsyncGenerator<Chunk, void, undefined>,
  { close }: Running,
): Answer<Chunk> {
  return {
    next: () => made.next(),
    return: () => {
      close();
      return made.return();
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function whole<Whole, Chunk>(
  { generation, deltas, close }: Running,
  reply: Reply<Whole, Chunk>,
): Promise<Whole> {
  const all: Delta[] = [];
  try {
    for await (const delta of deltas) all.push(delta);
  } finally {
    close();
  }
  return reply.whole(joinedDeltas(generation.plan.params.length, all), generation);
}
