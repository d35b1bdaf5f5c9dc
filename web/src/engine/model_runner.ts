/** One compiled model at work: requests go in, the core steps while there are any, events come out. */
import {
  type Core,
  CoreError,
  type CoreEvent,
  type CoreMask,
  type CoreParams,
} from "../core/core.js";
import { DeviceLostError, OutOfMemoryError, RequestError, WherryError } from "../errors.js";
import { nextTask } from "./next_task.js";

/** Who waits for a request's events. */
export interface Sink {
  event(event: CoreEvent): void;
  /** The engine is gone, or cannot go on; no event follows. */
  fail(error: WherryError): void;
}

/** Steps a core for as long as it has requests. */
export class ModelRunner {
  readonly core: Core;
  readonly #sinks = new Map<number, Sink>();
  #nextId = 1;
  #stepping: Promise<void> | undefined;
  #failure: WherryError | undefined;

  constructor(core: Core) {
    this.core = core;
  }

  /** Requests that wait or run. */
  get open(): number {
    return this.#sinks.size;
  }

  /** Why no request can run any more; undefined while they can. */
  get failure(): WherryError | undefined {
    return this.#failure;
  }

  /**
   * Queue a request; its events go to the sink until one of them has `finish`.
   *
   * @returns its id, for `abort`.
   * @throws RequestError if the core refuses it, OutOfMemoryError, DeviceLostError
   */
  add(prompt: Int32Array, params: Partial<CoreParams>, sink: Sink, mask?: CoreMask): number {
    if (this.#failure) throw this.#failure;
    const id = this.#nextId++;
    try {
      this.core.add(id, prompt, { ...this.core.paramsDefault(), ...params }, mask);
    } catch (error) {
      throw ofCore(error);
    }
    this.#sinks.set(id, sink);
    this.#stepping ??= this.#run();
    return id;
  }

  /** End a request; its sink hears nothing more. Nothing happens if it has ended. */
  abort(id: number): void {
    if (!this.#sinks.delete(id) || this.#failure) return;
    try {
      this.core.abort(id);
    } catch (error) {
      if (!(error instanceof CoreError) || error.status !== "not_found") throw ofCore(error);
    }
  }

  /** End all requests with an error, and free the core when its step is over. */
  async close(reason: WherryError): Promise<void> {
    this.#fail(reason);
    await this.#stepping;
    this.core.destroy();
  }

  async #run(): Promise<void> {
    while (this.#sinks.size > 0 && !this.#failure) {
      try {
        for (const event of await this.core.step()) this.#deliver(event);
      } catch (error) {
        this.#fail(ofCore(error));
      }
      await nextTask(); // so that messages are heard, and pages drawn
    }
    this.#stepping = undefined;
  }

  #deliver(event: CoreEvent): void {
    const sink = this.#sinks.get(event.id);
    if (event.finish !== undefined) this.#sinks.delete(event.id);
    sink?.event(event);
  }

  #fail(error: WherryError): void {
    this.#failure ??= error;
    const sinks = [...this.#sinks.values()];
    this.#sinks.clear();
    for (const sink of sinks) sink.fail(error);
  }
}

/** The package's error for one of the core's. */
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
