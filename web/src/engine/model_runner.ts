/** Runs a core: it steps while requests are active, and passes the events to their listeners. */
import {
  type Core,
  CoreError,
  type CoreEvent,
  type CoreMask,
  type CoreParams,
} from "../core/core.js";
import { DeviceLostError, OutOfMemoryError, RequestError, WherryError } from "../errors.js";
import { nextTask } from "./next_task.js";

/** Receives the events of a core's requests. */
export interface Listener {
  events(events: readonly CoreEvent[]): void;
  /** The engine has failed or is closed; no event follows. */
  failed(error: WherryError): void;
}

/** Steps a core as long as it has requests. */
export class ModelRunner {
  readonly core: Core;
  listener: Listener | undefined;
  readonly #open = new Set<number>();
  #stepping: Promise<void> | undefined;
  #failure: WherryError | undefined;

  constructor(core: Core) {
    this.core = core;
  }

  /** Number of requests that wait or run. */
  get open(): number {
    return this.#open.size;
  }

  /** The reason why no request can run any more; undefined while the core works. */
  get failure(): WherryError | undefined {
    return this.#failure;
  }

  /**
   * Queue a request, which is active until one of its events has `finish`.
   *
   * @throws RequestError if the core refuses it, OutOfMemoryError, DeviceLostError
   */
  add(id: number, prompt: Int32Array, params: CoreParams, mask: CoreMask | undefined): void {
    if (this.#failure) throw this.#failure;
    try {
      this.core.add(id, prompt, params, mask);
    } catch (error) {
      throw ofCore(error);
    }
    this.#open.add(id);
    this.#stepping ??= this.#run();
  }

  /** Abort a request, which ends it by an event; a request that has ended is ignored. */
  abort(id: number): void {
    if (!this.#open.has(id) || this.#failure) return;
    try {
      this.core.abort(id);
    } catch (error) {
      if (!(error instanceof CoreError) || error.status !== "not_found") this.#fail(ofCore(error));
    }
  }

  /** End all requests with an error, and free the core after its current step. */
  async close(reason: WherryError): Promise<void> {
    this.#fail(reason);
    await this.#stepping;
    this.core.destroy();
  }

  async #run(): Promise<void> {
    while (this.#open.size > 0 && !this.#failure) {
      try {
        this.#heard(await this.core.step());
      } catch (error) {
        this.#fail(ofCore(error));
      }
      await nextTask(); // lets the page handle messages and draw between two steps
    }
    this.#stepping = undefined;
  }

  #heard(events: readonly CoreEvent[]): void {
    if (this.#failure || events.length === 0) return;
    for (const { id, finish } of events) if (finish !== undefined) this.#open.delete(id);
    this.listener?.events(events);
  }

  #fail(error: WherryError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#open.clear();
    this.listener?.failed(error);
  }
}

/** Convert an error of the core to one of the package's errors. */
export function ofCore(error: unknown): WherryError {
  if (error instanceof WherryError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const options = { cause: error };
  switch (error instanceof CoreError ? error.status : "") {
    case "device_lost":
      return new DeviceLostError(`${message}. Load the model again.`, options);
    case "out_of_memory":
      return new OutOfMemoryError(message, options);
    case "invalid_argument":
      return new RequestError(message, options);
    default:
      return new WherryError("internal", message, options);
  }
}
