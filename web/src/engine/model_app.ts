/**
 * A loaded model that answers requests: the running core, and the app module (templates, tokenizer,
 * tool calls) over it.
 */
import { App, type AppModel } from "../app/app.js";
import { AbortedError, RequestError, throwIfAborted, WherryError } from "../errors.js";
import type { RequestErrorCode } from "../request/error_codes.js";
import type { ModelFolder } from "../weights/folder.js";
import { EventQueue } from "./event_queue.js";
import type { ModelRunner } from "./model_runner.js";

/** A chunk of an answer, or the whole answer. */
export interface Piece {
  readonly value: unknown;
  readonly last: boolean;
}

/** A running request of the app. */
export interface Running {
  /** Wait for the next pieces. @throws the error in the request, or the one that ended it */
  next(): Promise<Piece[]>;
  /** End the request; idempotent. */
  close(): void;
}

export class ModelApp {
  readonly #app: App;
  readonly #runner: ModelRunner;
  readonly #queues = new Set<EventQueue<Piece>>();

  private constructor(app: App, runner: ModelRunner) {
    this.#app = app;
    this.#runner = runner;
    runner.listener = {
      events: (events) => {
        app.hear(events);
      },
      failed: (error) => {
        for (const queue of this.#queues) queue.fail(error);
        this.#queues.clear();
      },
    };
  }

  /**
   * Open the app of a model folder. @throws ModelError if one of the folder's files cannot be read.
   */
  static async open(folder: ModelFolder, model: AppModel, runner: ModelRunner): Promise<ModelApp> {
    return new ModelApp(await App.open(folder, model, runner), runner);
  }

  get chats(): boolean {
    return this.#app.chats;
  }

  /**
   * Start a request.
   *
   * @throws RequestError, OutOfMemoryError, DeviceLostError, AbortedError: the request does not run
   */
  async ask(json: string, signal: AbortSignal | undefined): Promise<Running> {
    throwIfAborted(signal);
    if (this.#runner.failure) throw this.#runner.failure;
    const queue = new EventQueue<Piece>();
    let wrong: WherryError | undefined;
    this.#queues.add(queue);
    const added = this.#app.ask(json, (text, last, thrown) => {
      const value: unknown = JSON.parse(text);
      const error = thrown instanceof WherryError ? thrown : errorOf(value);
      if (last) this.#queues.delete(queue);
      if (!error) queue.push({ value, last });
      else queue.fail((wrong = error));
    });
    const close = (): void => {
      signal?.removeEventListener("abort", aborted);
      if (this.#queues.delete(queue)) void added.then((id) => this.#app.end(id));
      queue.fail(new AbortedError()); // for a reader that still waits
    };
    const aborted = (): void => {
      queue.fail(new AbortedError(undefined, { cause: signal?.reason }));
      close();
    };
    signal?.addEventListener("abort", aborted, { once: true });
    await added;
    if (wrong) {
      close();
      throw wrong;
    }
    return { next: () => queue.next(), close };
  }
}

interface AnswerError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: RequestErrorCode | null;
}

/** The error that an answer of the app reports; undefined if it reports none. */
function errorOf(value: unknown): WherryError | undefined {
  const { error } = value as { error?: AnswerError };
  if (!error) return undefined;
  const { message, type, param, code } = error;
  if (type !== "invalid_request_error") return new WherryError("internal", message);
  return new RequestError(message, { param: param ?? undefined, reason: code ?? undefined });
}
