import type { CoreStats } from "../core/core.js";
import type { ModelApp } from "./model_app.js";
import type { ModelRunner } from "./model_runner.js";
import type { ModelInfo } from "./options.js";

/** What the core counts, and the requests of this engine that have not ended. */
export type EngineStats = CoreStats & { readonly openRequests: number };

/** A model that answers. */
export interface LoadedModel {
  readonly info: ModelInfo;
  readonly runner: ModelRunner;
  readonly app: ModelApp;
}
