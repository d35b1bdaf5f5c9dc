import type { EngineConfig, loadCore } from "../core/core.js";
import type { ModelCache } from "../weights/model_cache.js";

/** The progress of loading a model. */
export interface LoadProgress {
  /**
   * The phase. "download": bytes from the network, including those already stored; "weights": bytes
   * copied to the device; "compile" and "pipelines": parts of the program.
   */
  readonly phase: "download" | "compile" | "weights" | "pipelines";
  readonly done: number;
  readonly total: number;
}

/** Options of creating an engine. */
export interface EngineOptions {
  /** The cache for model files; default: the best kind that the browser has. */
  readonly cache?: ModelCache;
  /** Replaces the global `fetch`, for example to send headers or credentials. */
  readonly fetch?: typeof fetch;
  /** @internal Replaces the real core in tests. */
  readonly loadCore?: typeof loadCore;
}

/** Options of loading a model. */
export interface LoadOptions {
  /** The model's name in requests; default: the name in its manifest. */
  readonly name?: string;
  readonly progress?: (progress: LoadProgress) => void;
  /** The family whose format of tool calls the model uses; default: found in its chat template. */
  readonly toolFormat?: string;
  /** Aborts the load; downloaded parts stay in the cache. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether it is an error (QuotaError) if the browser cannot store all files. Otherwise files that
   * do not fit stay in memory until the model is loaded, and the next visit downloads them again.
   */
  readonly mustKeep?: boolean;
  /** Limits of the engine; default: those for which the model was compiled. */
  readonly limits?: EngineConfig;
}

/**
 * The place of a compiled model: the address of its folder, a folder that the person picked, or its
 * files. Of several sources the first that this device can run is loaded: put variants with higher
 * demands first, and the CPU variant last.
 */
export type ModelSource =
  | string
  | URL
  | FileSystemDirectoryHandle
  | readonly File[]
  | ReadonlyMap<string, Blob>
  | readonly (string | URL)[];

/** Facts about a loaded model. */
export interface ModelInfo {
  /** The model's name in requests. */
  readonly name: string;
  /** The address or name from which the model was loaded. */
  readonly source: string;
  readonly device: "webgpu" | "wasm";
  /** Number of CPU threads that compute. */
  readonly threads: number;
  /** Maximum tokens of prompt and output together. */
  readonly context: number;
  readonly quantization: string;
  /** Bytes of the model's weights. */
  readonly weightBytes: number;
  /** Whether the browser stores the model's files for the next visit. */
  readonly kept: boolean;
  /**
   * Features of variants with higher demands that this device lacks, as in MissingFeatureError; []
   * if the first variant was loaded.
   */
  readonly missing: readonly string[];
  /** Whether the model has a chat template. */
  readonly chats: boolean;
}
