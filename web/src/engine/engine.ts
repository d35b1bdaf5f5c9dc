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
  RerankAnswer,
  RerankRequest,
} from "../request/types.js";
import type { EngineStats } from "./loaded_model.js";
import type { LoadOptions, ModelInfo, ModelSource } from "./options.js";

/** Options of one request. */
export interface RequestOptions {
  /** Aborts the request at any stage; its promise or iterator then throws AbortedError. */
  readonly signal?: AbortSignal | undefined;
}

/** An endpoint for requests of one kind, with the interface of OpenAI's client. */
export interface Endpoint<Request, Complete, Chunk> {
  /** Request an answer in chunks. Leaving the loop over them aborts the request. */
  create(request: Request & { stream: true }, options?: RequestOptions): Promise<Answer<Chunk>>;
  /** Request a whole answer. */
  create(request: Request & { stream?: false | null }, options?: RequestOptions): Promise<Complete>;
  create(request: Request, options?: RequestOptions): Promise<Complete | Answer<Chunk>>;
}

/** The endpoint for embeddings, with the interface of OpenAI's client. */
export interface EmbeddingEndpoint {
  /** Request embeddings; a text that is too long is an error unless `truncate` is true. */
  create(request: EmbeddingRequest, options?: RequestOptions): Promise<EmbeddingAnswer>;
}

/** An asynchronous iterator over the chunks of an answer. */
export type Answer<Chunk> = AsyncIterableIterator<Chunk>;

/**
 * An engine, on this thread ({@link MLCEngine}) or in a worker (`connect` of "wherry/worker"). Any
 * number of requests may run at once, on any of its models.
 */
export interface Engine {
  readonly chat: {
    readonly completions: Endpoint<ChatRequest, ChatCompletion, ChatCompletionChunk>;
  };
  readonly completions: Endpoint<CompletionRequest, Completion, Completion>;
  readonly embeddings: EmbeddingEndpoint;
  /** Rank documents by how well they match a query, by a reranker or an embedding model. */
  rerank(request: RerankRequest, options?: RequestOptions): Promise<RerankAnswer>;
  /** Tell the classes of texts, by a model for sequence classification. */
  classify(request: ClassifyRequest, options?: RequestOptions): Promise<ClassifyAnswer>;
  /**
   * Load a model in addition to those already loaded.
   *
   * @throws DownloadError, DamagedFileError, QuotaError, ModelError, MissingFeatureError,
   *   OutOfMemoryError, AbortedError
   */
  load(source: ModelSource, options?: LoadOptions): Promise<ModelInfo>;
  /** List the loaded models, the oldest first. */
  models(): Promise<ModelInfo[]>;
  /** Read a model's counters; cheap enough for every animation frame. */
  stats(model?: string): Promise<EngineStats>;
  /** End a model's requests and free its memory. */
  unload(model: string): Promise<void>;
  /** Unload all models and release the engine. */
  dispose(): Promise<void>;
}
