/** The messages between an engine in a worker and the pages that use it. */
import {
  AbortedError,
  DamagedFileError,
  DeviceLostError,
  DownloadError,
  type ErrorCode,
  MissingFeatureError,
  ModelError,
  OutOfMemoryError,
  QuotaError,
  type RefusalCode,
  RequestError,
  WherryError,
  WorkerError,
} from "../errors.js";
import type { LoadOptions, LoadProgress, ModelSource } from "../engine/options.js";
import type {
  ChatRequest,
  ClassifyRequest,
  CompletionRequest,
  EmbeddingRequest,
  RerankRequest,
} from "../request/types.js";

/** The first message to a worker, with the port that all later messages use. */
export const CONNECT = "wherry:connect";
/** A message that keeps a service worker from being stopped while a page needs it. */
export const ALIVE = "wherry:alive";

/** A call to the engine; its id identifies the answers to it. */
export type Call =
  | { readonly call: "chat"; readonly request: ChatRequest }
  | { readonly call: "completion"; readonly request: CompletionRequest }
  | { readonly call: "embedding"; readonly request: EmbeddingRequest }
  | { readonly call: "rerank"; readonly request: RerankRequest }
  | { readonly call: "classify"; readonly request: ClassifyRequest }
  | {
      readonly call: "load";
      readonly source: ModelSource;
      readonly options: Pick<LoadOptions, "name" | "limits" | "mustKeep" | "toolFormat">;
    }
  | { readonly call: "models" }
  | { readonly call: "stats"; readonly model: string | undefined }
  | { readonly call: "unload"; readonly model: string }
  | { readonly call: "dispose" }
  | { readonly call: "abort" };

/** The id of messages that answer no call. */
export const NO_CALL = 0;

export type CallMessage = Call & { readonly id: number };

/**
 * A message from the worker. A stream sends `started` and any number of `chunk`s, a load any number
 * of `progress`es, and both end with a `result` or an `error`. Messages that answer no call are
 * `ready`, sent once, and an `error` if a message could not be read.
 */
export type AnswerMessage = { readonly id: number } & (
  | { readonly ready: true }
  | { readonly started: true }
  | { readonly chunk: unknown }
  | { readonly progress: LoadProgress }
  | { readonly result: unknown }
  | { readonly error: PortableError }
);

/** An error as plain data, because cloning preserves neither classes nor fields. */
export interface PortableError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Convert an error to plain data. */
export function portable(error: unknown): PortableError {
  if (!(error instanceof WherryError)) {
    return { code: "internal", message: reason(error), fields: {} };
  }
  const entries = Object.entries(error).filter(([name]) => !["code", "name"].includes(name));
  return { code: error.code, message: error.message, fields: Object.fromEntries(entries) };
}

/** Recreate an error from plain data, with its own class. */
export function revived({ code, message, fields }: PortableError): WherryError {
  switch (code) {
    case "aborted":
      return new AbortedError(message);
    case "damaged_file":
      return new DamagedFileError(fields["file"] as string, message);
    case "device_lost":
      return new DeviceLostError(message);
    case "download_failed": {
      const status = fields["status"] as number | undefined;
      return new DownloadError(fields["url"] as string, message, { ...(status && { status }) });
    }
    case "incompatible_model":
      return new ModelError(message);
    case "internal":
      return new WherryError(code, message);
    case "invalid_request": {
      const { param, reason } = fields as { param?: string; reason?: RefusalCode };
      return new RequestError(message, { param, reason });
    }
    case "missing_feature":
      return new MissingFeatureError(fields["features"] as string[], message);
    case "out_of_memory":
      return new OutOfMemoryError(message);
    case "quota_exceeded": {
      const { needed, available } = fields as { needed: number; available?: number };
      return new QuotaError(needed, available, message);
    }
    case "worker_failed":
      return new WorkerError(message);
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
