import type {
  Answer,
  EmbeddingEndpoint,
  Endpoint,
  Engine,
  RequestOptions,
} from "../engine/engine.js";
import { EventQueue } from "../engine/event_queue.js";
import type { EngineStats } from "../engine/loaded_model.js";
import { portableSource } from "../engine/open_source.js";
import type { LoadOptions, LoadProgress, ModelInfo, ModelSource } from "../engine/options.js";
import { AbortedError, RequestError, throwIfAborted, WherryError, WorkerError } from "../errors.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatRequest,
  ClassifyAnswer,
  ClassifyRequest,
  Completion,
  CompletionRequest,
  EmbeddingAnswer,
  RerankAnswer,
  RerankRequest,
} from "../request/types.js";
import {
  ALIVE,
  type AnswerMessage,
  type Call,
  type CallMessage,
  CONNECT,
  NO_CALL,
  revived,
} from "./messages.js";

/**
 * An object that accepts messages: `new Worker(...)`, `navigator.serviceWorker.controller`, a port.
 */
export type WorkerTarget = Pick<MessagePort, "postMessage"> &
  Partial<Pick<EventTarget, "addEventListener">>;

/** Options of {@link connect}. */
export interface ConnectOptions {
  /** Milliseconds after which a worker that has not answered counts as failed; default: 60 000. */
  readonly startTimeout?: number;
}

/** An engine in a worker, seen from a page. */
export interface RemoteEngine extends Engine {
  /** Disconnect from the worker: this page's requests end, the models stay loaded. */
  close(): void;
}

const ALIVE_MS = 10_000;
const START_MS = 60_000; // long enough to download the script over a slow network

/**
 * Connect to the engine of a worker that called `serve`. If the worker does not start, calls throw
 * WorkerError. (Only a SharedWorker itself, not its port, reports a script that fails.)
 *
 * ```ts
 * const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
 * const engine = connect(worker);
 * ```
 */
export function connect(
  target: WorkerTarget | SharedWorker,
  { startTimeout = START_MS }: ConnectOptions = {},
): RemoteEngine {
  const { port1, port2 } = new MessageChannel();
  const door = "port" in target ? target.port : target;
  const life = new AbortController();
  const engine = new PortEngine(port1, () => {
    life.abort();
  });
  const failed = (event: Event): void => {
    engine.startFailed(reasonOf(event));
  };
  target.addEventListener?.("error", failed, { signal: life.signal });
  door.postMessage(CONNECT, [port2]);
  const alive = setInterval(() => {
    door.postMessage(ALIVE);
  }, ALIVE_MS);
  const late = setTimeout(() => {
    engine.startFailed(`it has not answered for ${startTimeout / 1000} s. Does it call serve()?`);
  }, startTimeout);
  // lets a Node process end although the timers are running
  for (const timer of [alive, late] as { unref?: () => void }[]) timer.unref?.();
  life.signal.addEventListener("abort", () => {
    clearInterval(alive);
    clearTimeout(late);
  });
  return engine;
}

/** The browser's message about a script that failed. */
function reasonOf(event: Event): string {
  const { message, filename, lineno } = event as Partial<ErrorEvent>;
  if (!message) return "its script cannot be loaded";
  return filename ? `${message} (${filename}:${lineno ?? 0})` : message;
}

/** The reader that waits for the answers to a call. */
interface Waiting {
  readonly started?: () => void;
  readonly chunk?: (chunk: unknown) => void;
  readonly progress?: (progress: LoadProgress) => void;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

class PortEngine implements RemoteEngine {
  readonly chat: Engine["chat"];
  readonly completions: Engine["completions"];
  readonly embeddings: EmbeddingEndpoint = {
    create: (request, options) =>
      this.#call({ call: "embedding", request }, options) as Promise<EmbeddingAnswer>,
  };
  readonly #port: MessagePort;
  readonly #closed: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = NO_CALL + 1;
  #ready = false;
  #failure: WorkerError | undefined; // error of a worker that did not start

  constructor(port: MessagePort, closed: () => void) {
    this.#port = port;
    this.#closed = closed;
    this.chat = {
      completions: this.#endpoint<ChatRequest, ChatCompletion, ChatCompletionChunk>("chat"),
    };
    this.completions = this.#endpoint<CompletionRequest, Completion, Completion>("completion");
    port.addEventListener("message", ({ data }: MessageEvent<AnswerMessage>) => {
      this.#heard(data);
    });
    port.addEventListener("messageerror", () => {
      this.#failAll(new WorkerError("A message of the worker could not be read."));
    });
    port.start();
  }

  /** Fail all calls because the worker did not start; ignored if it has started. */
  startFailed(reason: string): void {
    if (this.#ready) return;
    this.#failure = new WorkerError(`The worker did not start: ${reason}`);
    this.#failAll(this.#failure);
  }

  load(
    source: ModelSource,
    { progress, signal, ...options }: LoadOptions = {},
  ): Promise<ModelInfo> {
    const call = { call: "load" as const, source: portableSource(source), options };
    return this.#call(call, { signal, ...(progress && { progress }) }) as Promise<ModelInfo>;
  }

  rerank(request: RerankRequest, options?: RequestOptions): Promise<RerankAnswer> {
    return this.#call({ call: "rerank", request }, options) as Promise<RerankAnswer>;
  }

  classify(request: ClassifyRequest, options?: RequestOptions): Promise<ClassifyAnswer> {
    return this.#call({ call: "classify", request }, options) as Promise<ClassifyAnswer>;
  }

  models(): Promise<ModelInfo[]> {
    return this.#call({ call: "models" }) as Promise<ModelInfo[]>;
  }

  stats(model?: string): Promise<EngineStats> {
    return this.#call({ call: "stats", model }) as Promise<EngineStats>;
  }

  async unload(model: string): Promise<void> {
    await this.#call({ call: "unload", model });
  }

  async dispose(): Promise<void> {
    await this.#call({ call: "dispose" });
  }

  close(): void {
    this.#closed();
    for (const id of this.#waiting.keys()) this.#abort(id);
    this.#port.close();
    this.#failAll(new WherryError("aborted", "The engine was closed."));
  }

  #failAll(error: WherryError): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }

  #endpoint<Request extends { stream?: boolean | null }, Complete, Chunk>(
    call: "chat" | "completion",
  ): Endpoint<Request, Complete, Chunk> {
    const create = (request: Request, { signal }: RequestOptions = {}): Promise<unknown> => {
      const message = { call, request } as unknown as Call;
      return request.stream ? this.#stream(message, signal) : this.#call(message, { signal });
    };
    return { create } as Endpoint<Request, Complete, Chunk>;
  }

  async #call(
    call: Call,
    { signal, progress }: Pick<LoadOptions, "signal" | "progress"> = {},
  ): Promise<unknown> {
    throwIfAborted(signal);
    return new Promise((resolve, reject) => {
      const waiting = { resolve, reject, ...(progress && { progress }) };
      this.#send(call, waiting, signal);
    });
  }

  /** Send a call to the worker; if the signal is aborted, the call ends on both sides. */
  #send(call: Call, waiting: Waiting, signal: AbortSignal | undefined): number {
    const id = this.#nextId++;
    const aborted = (): void => {
      this.#abort(id);
      this.#waiting.delete(id);
      waiting.reject(new AbortedError(undefined, { cause: signal?.reason }));
    };
    const done = (): void => signal?.removeEventListener("abort", aborted);
    this.#waiting.set(id, {
      ...waiting,
      resolve: (result) => {
        done();
        waiting.resolve(result);
      },
      reject: (error) => {
        done();
        waiting.reject(error);
      },
    });
    signal?.addEventListener("abort", aborted, { once: true });
    if (this.#failure) this.#end(id, this.#failure);
    else this.#post({ id, ...call });
    return id;
  }

  #post(message: CallMessage): void {
    try {
      this.#port.postMessage(message);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#end(message.id, new RequestError(`The worker cannot be sent this: ${why}`));
    }
  }

  /** End a call with an error. */
  #end(id: number, error: WherryError): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    waiting?.reject(error);
  }

  #abort(id: number): void {
    this.#port.postMessage({ id, call: "abort" });
  }

  /** Start a stream; resolves when the worker has accepted the request, as a local engine does. */
  async #stream(call: Call, signal: AbortSignal | undefined): Promise<Answer<unknown>> {
    throwIfAborted(signal);
    const queue = new EventQueue<{ readonly chunk: unknown } | "end">();
    const id = await new Promise<number>((resolve, reject) => {
      const sent = this.#send(
        call,
        {
          started: () => {
            resolve(sent);
          },
          chunk: (chunk) => {
            queue.push({ chunk });
          },
          resolve: () => {
            queue.push("end");
          },
          reject: (error) => {
            reject(error); // has no effect once the stream has started
            queue.fail(error);
          },
        },
        signal,
      );
    });
    const chunks = chunksOf(queue);
    const answer: Answer<unknown> = {
      next: () => chunks.next(),
      return: () => {
        if (this.#waiting.delete(id)) this.#abort(id);
        queue.push("end"); // for a reader that still waits
        return chunks.return(undefined);
      },
      [Symbol.asyncIterator]: () => answer,
    };
    return answer;
  }

  #heard(answer: AnswerMessage): void {
    if ("ready" in answer) {
      this.#ready = true;
      this.#failure = undefined; // the worker was only slow
    }
    if (answer.id === NO_CALL && "error" in answer) this.#failAll(revived(answer.error));
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return; // the call has already ended on this side
    if ("started" in answer) waiting.started?.();
    else if ("chunk" in answer) waiting.chunk?.(answer.chunk);
    else if ("progress" in answer) waiting.progress?.(answer.progress);
    else if ("error" in answer) this.#end(answer.id, revived(answer.error));
    else if ("result" in answer) {
      this.#waiting.delete(answer.id);
      waiting.resolve(answer.result);
    }
  }
}

async function* chunksOf(
  queue: EventQueue<{ readonly chunk: unknown } | "end">,
): AsyncGenerator<unknown, void, undefined> {
  for (;;) {
    for (const value of await queue.next()) {
      if (value === "end") return;
      yield value.chunk;
    }
  }
}
