/** What goes over the border between an engine in a worker and those who use it. */
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
import type { ChatRequest, CompletionRequest } from "../request/types.js";

/** First message to a worker, with a port that all others take. */
export const CONNECT = "wherry:connect";
/** Keeps a service worker from being ended while it is needed. */
export const ALIVE = "wherry:alive";

/** What is asked for; each has a number, under which its answers come back. */
export type Call =
  | { readonly call: "chat"; readonly request: ChatRequest }
  | { readonly call: "completion"; readonly request: CompletionRequest }
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

/** The number of what is no answer to a call. */
export const NO_CALL = 0;

export type CallMessage = Call & { readonly id: number };

/**
 * What comes back: of a stream `started` and any number of `chunk`s, of a load any number of
 * `progress`es, and at the end a `result` or an `error`. Of no call: once that it is `ready`, and an
 * error where a message could not be read.
 */
export type AnswerMessage = { readonly id: number } & (
  | { readonly ready: true }
  | { readonly started: true }
  | { readonly chunk: unknown }
  | { readonly progress: LoadProgress }
  | { readonly result: unknown }
  | { readonly error: PortableError }
);

/** An error as plain data: cloning keeps neither classes nor fields. */
export interface PortableError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** An error as data. */
export function portable(error: unknown): PortableError {
  if (!(error instanceof WherryError)) {
    return { code: "internal", message: reason(error), fields: {} };
  }
  const entries = Object.entries(error).filter(([name]) => !["code", "name"].includes(name));
  return { code: error.code, message: error.message, fields: Object.fromEntries(entries) };
}

/** The error that was sent, of its own class. */
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
