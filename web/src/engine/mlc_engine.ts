import { appProgram } from "../app/programs.js";
import { loadCore } from "../core/core.js";
import { AbortedError, RequestError, throwIfAborted } from "../errors.js";
import { jsonOf } from "../request/json.js";
import { checkNames, type RequestKind } from "../request/names.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatRequest,
  ClassifyAnswer,
  ClassifyRequest,
  Completion,
  CompletionRequest,
  EmbeddingAnswer,
  EmbeddingRequest,
  RequestParams,
  RerankAnswer,
  RerankRequest,
} from "../request/types.js";
import type { ModelFolder } from "../weights/folder.js";
import { ModelCache } from "../weights/model_cache.js";
import type { Answer, EmbeddingEndpoint, Endpoint, Engine, RequestOptions } from "./engine.js";
import { deviceOf } from "./device.js";
import { engineLimits } from "./engine_limits.js";
import { requestAdapter, requestDevice } from "./gpu.js";
import type { EngineStats, LoadedModel } from "./loaded_model.js";
import { ModelApp, type Running } from "./model_app.js";
import { ModelRunner, ofCore } from "./model_runner.js";
import { openSource } from "./open_source.js";
import type { EngineOptions, LoadOptions, ModelInfo, ModelSource } from "./options.js";

/**
 * An engine for language models on this thread. A page should rather run it in a worker (`connect`
 * of "wherry/worker"), so that the page never waits for a step.
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
  readonly embeddings: EmbeddingEndpoint = {
    create: (request: EmbeddingRequest, options) =>
      this.#numbers<EmbeddingAnswer>("embedding", request, options),
  };
  readonly #options: EngineOptions;
  readonly #models = new Map<string, LoadedModel>();
  #disposals = 0;

  constructor(options: EngineOptions = {}) {
    this.#options = options;
    this.chat = { completions: this.#endpoint("chat") };
    this.completions = this.#endpoint("completion");
  }

  /** {@inheritDoc Engine.rerank} */
  rerank(request: RerankRequest, options?: RequestOptions): Promise<RerankAnswer> {
    return this.#numbers("rerank", request, options);
  }

  /** {@inheritDoc Engine.classify} */
  classify(request: ClassifyRequest, options?: RequestOptions): Promise<ClassifyAnswer> {
    return this.#numbers("classify", request, options);
  }

  /** {@inheritDoc Engine.load} */
  async load(source: ModelSource, options: LoadOptions = {}): Promise<ModelInfo> {
    const { signal, progress } = options;
    throwIfAborted(signal);
    const disposals = this.#disposals;
    // starts loading in parallel with the weights; a later caller gets the error
    appProgram().catch(() => undefined);
    const adapter = await requestAdapter();
    const cache = this.#options.cache ?? (await ModelCache.open());
    const [folder, missing] = await openSource(source, adapter, {
      store: cache.store,
      ...(options.mustKeep !== undefined && { mustKeep: options.mustKeep }),
      signal,
      ...(this.#options.fetch ? { fetch: this.#options.fetch } : {}),
      progress: (done, total) => progress?.({ phase: "download", done, total }),
    });
    const name = options.name ?? folder.manifest.name;
    if (this.#models.has(name)) await this.unload(name);
    const model = await this.#loaded(name, folder, missing, adapter, options);
    // another call may have loaded a model of this name meanwhile
    while (this.#models.has(name)) await this.unload(name);
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
    missing: readonly string[],
    adapter: GPUAdapter | undefined,
    { progress, signal, limits = {}, toolFormat }: LoadOptions,
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
    const { context, vocab_size: vocabSize, embedding_size: embeddingSize } = core.metadata;
    const runner = new ModelRunner(core);
    const model = { name, context, vocabSize, embeddingSize, toolFormat };
    const app = await ModelApp.open(folder, model, runner).catch((error: unknown) => {
      core.destroy();
      throw error;
    });
    const info = {
      name,
      source: folder.source,
      device,
      threads: core.threads,
      context,
      quantization: manifest.quantization,
      weightBytes: manifest.memory.weights ?? 0,
      kept: folder.kept,
      missing,
      chats: app.chats,
    };
    return { info, runner, app };
  }

  /** @throws RequestError if there is no such model, or several and none was named. */
  #model(named: string | null | undefined): LoadedModel {
    const name = named === "" ? undefined : (named ?? undefined); // as clients leave it out
    const names = [...this.#models.keys()];
    const chosen = name ?? (names.length === 1 ? names[0] : undefined);
    const model = chosen === undefined ? undefined : this.#models.get(chosen);
    if (model) return model;
    const known = names.length > 0 ? `Loaded are: ${names.join(", ")}` : "None is loaded";
    const what = name === undefined ? "Say which model" : `There is no model ${name}`;
    const reason = name !== undefined || names.length === 0 ? "model_not_found" : undefined;
    throw new RequestError(`${what}. ${known}.`, { param: "model", reason });
  }

  #endpoint<Request extends RequestParams, Complete, Chunk>(
    kind: "chat" | "completion",
  ): Endpoint<Request, Complete, Chunk> {
    const create = async (request: Request, options?: RequestOptions): Promise<unknown> => {
      const running = await this.#ask(kind, request, options);
      return request.stream ? answerOf(chunks(running), running) : completed(running);
    };
    return { create } as Endpoint<Request, Complete, Chunk>;
  }

  async #numbers<Answer>(
    kind: "embedding" | "rerank" | "classify",
    request: EmbeddingRequest | RerankRequest | ClassifyRequest,
    options?: RequestOptions,
  ): Promise<Answer> {
    return (await completed(await this.#ask(kind, request, options))) as Answer;
  }

  async #ask(
    kind: RequestKind,
    request: { readonly model?: string | null },
    { signal }: RequestOptions = {},
  ): Promise<Running> {
    const { app } = this.#model(request.model);
    checkNames(kind, request);
    return app.ask(jsonOf(withInput(kind, request)), signal);
  }
}

const TASKS = { embedding: "embed", rerank: "rerank", classify: "classify" } as const;

/** The app decides by its input or task of which kind a request is. */
function withInput(kind: RequestKind, request: object): object {
  if (kind === "chat") return { messages: [], ...request };
  if (kind !== "completion") return { ...request, task: TASKS[kind] };
  const { prompt } = request as Partial<CompletionRequest>;
  return { ...request, prompt: prompt ?? "" };
}

async function* chunks(running: Running): AsyncGenerator<unknown, void, undefined> {
  try {
    for (;;) {
      for (const { value, last } of await running.next()) {
        yield value;
        if (last) return;
      }
    }
  } finally {
    running.close();
  }
}

/** A generator that was never read runs no cleanup, so `return` must end its request. */
function answerOf(
  generator: AsyncGenerator<unknown, void, undefined>,
  running: Running,
): Answer<unknown> {
  return {
    next: () => generator.next(),
    return: () => {
      running.close();
      return generator.return();
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function completed(running: Running): Promise<unknown> {
  try {
    const [{ value } = { value: {} }] = await running.next();
    return value;
  } finally {
    running.close();
  }
}
