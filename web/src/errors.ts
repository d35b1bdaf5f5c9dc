/**
 * What can go wrong, one class a kind. All of them are {@link WherryError}s with a `code` that stays
 * the same over versions and over the border of a worker.
 */

import type { RequestErrorCode } from "./request/error_codes.js";

/** The `name` of each kind, written out: minifiers make the names of classes short. */
const NAMES = {
  aborted: "AbortError", // what callers of fetch look for
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

/** The kinds of errors. */
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

/** A file is not what its manifest says. */
export class DamagedFileError extends WherryError {
  /** Name of the file in the model's folder. */
  readonly file: string;

  constructor(file: string, message: string, options?: ErrorOptions) {
    super("damaged_file", message, options);
    this.file = file;
  }
}

/** The GPU was taken away: by its driver, the system, or the browser. Load the model again. */
export class DeviceLostError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("device_lost", message, options);
  }
}

/** A file could not be fetched, however often it was tried. */
export class DownloadError extends WherryError {
  readonly url: string;
  /** HTTP status of the last answer; undefined if there was none. */
  readonly status: number | undefined;

  constructor(url: string, message: string, options?: ErrorOptions & { status?: number }) {
    super("download_failed", message, options);
    this.url = url;
    this.status = options?.status;
  }
}

/** This browser or its GPU lacks what the model was compiled for. */
export class MissingFeatureError extends WherryError {
  /** What is missing, as WebGPU names it: "webgpu", "shader-f16", "maxBufferSize". */
  readonly features: readonly string[];

  constructor(features: readonly string[], message: string, options?: ErrorOptions) {
    super("missing_feature", message, options);
    this.features = features;
  }
}

/** The folder is no compiled model, or one of another version. */
export class ModelError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("incompatible_model", message, options);
  }
}

/** The model, its cache or a request needs more memory than the device gives. */
export class OutOfMemoryError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("out_of_memory", message, options);
  }
}

/** The browser keeps less than the model needs. */
export class QuotaError extends WherryError {
  /** Bytes that were to be written. */
  readonly needed: number;
  /** Bytes that this origin may still write; undefined if the browser does not say. */
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

  /** Bytes that have to be freed; undefined if the browser does not say. */
  get missing(): number | undefined {
    return this.available === undefined ? undefined : Math.max(0, this.needed - this.available);
  }
}

/** A request that cannot be answered as it is. */
export class RequestError extends WherryError {
  /** The field that is wrong. */
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

/** The worker with the engine did not start, or a message to or from it could not be read. */
export class WorkerError extends WherryError {
  constructor(message: string, options?: ErrorOptions) {
    super("worker_failed", message, options);
  }
}

/** Throw {@link AbortedError} if a signal is aborted. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AbortedError(undefined, { cause: signal.reason });
}
