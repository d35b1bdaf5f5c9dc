/**
 * The package's errors, one class for each kind. All of them are {@link WherryError}s with a
 * `code`, which stays the same across versions and across the messages of a worker.
 */

import type { RequestErrorCode } from "./request/error_codes.js";

/** The `name` of each kind, written out: minifiers make the names of classes short. */
const NAMES = {
  aborted: "AbortError", // the name that callers of `fetch` check for
  damaged_file: "DamagedFileError",
  device_lost: "DeviceLostError",
  download_failed: "DownloadError",
  incompatible_model: "ModelError",
  internal: "WherryError",
  invalid_request: "RequestError",
  missing_feature: "MissingFeatureError",
  out_of_memory: "OutOfMemoryError",
  quota_exceeded: "QuotaError",
  worker_failed: "WorkerError",
} as const;

/** The codes of all kinds of errors. */
export type ErrorCode = keyof typeof NAMES;

/** Why a request is refused, where it has a name: the `code` of the server's errors. */
export type RefusalCode = RequestErrorCode | "model_not_found";

/** Base of all errors of this package. */
export class WherryError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = NAMES[code];
    this.code = code;
  }
}

/** The caller's signal was aborted; `cause` is the signal's reason. Its `name` is "AbortError". */
export class AbortedError extends WherryError {
  constructor(message = "The request was aborted.", options?: ErrorOptions) {
    super("aborted", message, options);
  }
}

/** The content of a file differs from its manifest. */
export class DamagedFileError extends WherryError {
  /** Name of the file in the model's folder. */
  readonly file: string;

  constructor(file: string, message: string, options?: ErrorOptions) {
    super("damaged_file", message, options);
    this.file = file;
  }
}

/** The GPU was lost: its driver, the system or the browser took it away. Load the model again. */
export class DeviceLostError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("device_lost", message, options);
  }
}

/** A file could not be downloaded, even after several attempts. */
export class DownloadError extends WherryError {
  readonly url: string;
  /** HTTP status of the last response; undefined if there was none. */
  readonly status: number | undefined;

  constructor(url: string, message: string, options?: ErrorOptions & { status?: number }) {
    super("download_failed", message, options);
    this.url = url;
    this.status = options?.status;
  }
}

/** This browser or its GPU lacks a feature that the model was compiled for. */
export class MissingFeatureError extends WherryError {
  /** The missing features, as WebGPU names them: "webgpu", "shader-f16", "maxBufferSize". */
  readonly features: readonly string[];

  constructor(features: readonly string[], message: string, options?: ErrorOptions) {
    super("missing_feature", message, options);
    this.features = features;
  }
}

/** The folder is no compiled model, or was compiled for another version. */
export class ModelError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("incompatible_model", message, options);
  }
}

/** The model, its KV cache or a request needs more memory than the device provides. */
export class OutOfMemoryError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("out_of_memory", message, options);
  }
}

/** The browser's storage quota is smaller than the model. */
export class QuotaError extends WherryError {
  /** Number of bytes to be stored. */
  readonly needed: number;
  /** Number of bytes that this origin may still store; undefined if the browser does not tell. */
  readonly available: number | undefined;

  constructor(
    needed: number,
    available: number | undefined,
    message: string,
    options?: ErrorOptions,
  ) {
    super("quota_exceeded", message, options);
    this.needed = needed;
    this.available = available;
  }

  /** Number of bytes that must be freed; undefined if the browser does not tell. */
  get missing(): number | undefined {
    return this.available === undefined ? undefined : Math.max(0, this.needed - this.available);
  }
}

/** The request is wrong or not supported. */
export class RequestError extends WherryError {
  /** The request field that is wrong. */
  readonly param: string | undefined;
  /** For programs; undefined: what is wrong has no name. */
  readonly reason: RefusalCode | undefined;

  constructor(
    message: string,
    options?: ErrorOptions & {
      param?: string | undefined;
      reason?: RefusalCode | undefined;
    },
  ) {
    super("invalid_request", message, options);
    this.param = options?.param;
    this.reason = options?.reason;
  }
}

/** The worker with the engine did not start, or a message could not be read. */
export class WorkerError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("worker_failed", message, options);
  }
}

/** Throw {@link AbortedError} if a signal is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortedError(undefined, { cause: signal.reason });
}
