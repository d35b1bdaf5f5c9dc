import type { EngineConfig, loadCore } from "../core/core.js";
import type { ModelCache } from "../weights/model_cache.js";

/** How far a model is loaded. */
export interface LoadProgress {
  /**
   * "download": bytes from the network, those that are kept included; "weights": bytes onto the
   * device; "compile" and "pipelines": pieces of the program.
   */
  readonly phase: "download" | "compile" | "weights" | "pipelines";
  readonly done: number;
  readonly total: number;
}

/** Options of an engine. */
export interface EngineOptions {
  /** Where files are kept; default: the best that the browser has. */
  readonly cache?: ModelCache;
  /** Replaces the global `fetch`: for headers, or credentials. */
  readonly fetch?: typeof fetch;
  /** @internal Replaces the real core in tests. */
  readonly loadCore?: typeof loadCore;
}

/** Options of loading a model. */
export interface LoadOptions {
  /** What requests call it; default: the name in its manifest. */
  readonly name?: string;
  readonly progress?: (progress: LoadProgress) => void;
  /** How the model calls tools, the name of a family; default: its chat template tells. */
  readonly toolFormat?: string;
  /** Ends the download; what has come is kept. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether it is an error where the browser cannot keep all files (QuotaError). Else what it does not
   * take is in memory until the model is loaded, and the next visit fetches it again.
   */
  readonly mustKeep?: boolean;
  /** Limits of the engine; default: those that the model was compiled for. */
  readonly limits?: EngineConfig;
}

/**
 * Where a compiled model lies: the address of its folder, a folder that the person picked, or its
 * files. Of several the first that this device can run is loaded: put variants with more demands
 * first, and the one for the CPU last.
 */
export type ModelSource =
  | string
  | URL
  | FileSystemDirectoryHandle
  | readonly File[]
  | ReadonlyMap<string, Blob>
  | readonly (string | URL)[];

/** A loaded model. */
export interface ModelInfo {
  /** What requests call it. */
  readonly name: string;
  /** Where it came from. */
  readonly source: string;
  readonly device: "webgpu" | "wasm";
  /** Of the CPU, that compute. */
  readonly threads: number;
  /** Tokens of prompt and output together. */
  readonly context: number;
  readonly quantization: string;
  /** Bytes of its weights. */
  readonly weightBytes: number;
  /** Whether the browser keeps its files for the next visit. */
  readonly kept: boolean;
  /** Whether it has a chat template. */
  readonly chats: boolean;
}
