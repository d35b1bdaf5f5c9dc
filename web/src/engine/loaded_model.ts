import type { CoreStats } from "../core/core.js";
import type { ModelApp } from "./model_app.js";
import type { ModelRunner } from "./model_runner.js";
import type { ModelInfo } from "./options.js";

/** The core's counters, and the number of this engine's requests that have not ended. */
export type EngineStats = CoreStats & { readonly openRequests: number };

/** The interface of a loaded model that answers requests. */
export interface LoadedModel {
  readonly info: ModelInfo;
  readonly runner: ModelRunner;
  readonly app: ModelApp;
}
