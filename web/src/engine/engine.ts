import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatRequest,
  Completion,
  CompletionRequest,
} from "../request/types.js";
import type { EngineStats } from "./loaded_model.js";
import type { LoadOptions, ModelInfo, ModelSource } from "./options.js";

/** Options of one request. */
export interface RequestOptions {
  /** Ends the request, wherever it is; its promise or iterator throws AbortedError. */
  readonly signal?: AbortSignal | undefined;
}

/** Requests of one kind, in the manner of OpenAI's client. */
export interface Endpoint<Request, Whole, Chunk> {
  /** An answer piece by piece. Leaving the loop aborts the request. */
  create(request: Request & { stream: true }, options?: RequestOptions): Promise<Answer<Chunk>>;
  /** An answer, whole. */
  create(request: Request & { stream?: false | null }, options?: RequestOptions): Promise<Whole>;
  create(request: Request, options?: RequestOptions): Promise<Whole | Answer<Chunk>>;
}

/** Pieces of an answer. */
export type Answer<Chunk> = AsyncIterableIterator<Chunk>;

/**
 * An engine, wherever it runs: on this thread ({@link MLCEngine}), or behind a worker's border
 * (`connect` of "wherry/worker"). Any number of requests may run at once, of any of its models.
 */
export interface Engine {
  readonly chat: {
    readonly completions: Endpoint<ChatRequest, ChatCompletion, ChatCompletionChunk>;
  };
  readonly completions: Endpoint<CompletionRequest, Completion, Completion>;
  /**
   * Load a further model.
   *
   * @throws DownloadError, DamagedFileError, QuotaError, ModelError, MissingFeatureError,
   *   OutOfMemoryError, AbortedError
   */
  load(source: ModelSource, options?: LoadOptions): Promise<ModelInfo>;
  /** The models that are loaded, the oldest first. */
  models(): Promise<ModelInfo[]>;
  /** What a model is doing; may be called as often as a page is drawn. */
  stats(model?: string): Promise<EngineStats>;
  /** End a model's requests and free its memory. */
  unload(model: string): Promise<void>;
  /** Unload all models. */
  dispose(): Promise<void>;
}
