/** Language models in the browser: an engine on WebGPU or wasm, with OpenAI's interface. */
export type {
  Answer,
  EmbeddingEndpoint,
  Endpoint,
  Engine,
  RequestOptions,
} from "./engine/engine.js";
export type { EngineStats } from "./engine/loaded_model.js";
export { MLCEngine } from "./engine/mlc_engine.js";
export type {
  EngineOptions,
  LoadOptions,
  LoadProgress,
  ModelInfo,
  ModelSource,
} from "./engine/options.js";
export * from "./errors.js";
export { createFetch, type Fetch, type FetchOptions } from "./http/fetch.js";
export type * from "./request/types.js";
export { ModelCache } from "./weights/model_cache.js";
export type { KeptModel } from "./weights/model_records.js";
export type { StorageRoom } from "./weights/quota.js";
