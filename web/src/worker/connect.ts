import type { Answer, Endpoint, Engine, RequestOptions } from "../engine/engine.js";
import { EventQueue } from "../engine/event_queue.js";
import type { EngineStats } from "../engine/loaded_model.js";
import { portableSource } from "../engine/open_source.js";
import type { LoadOptions, LoadProgress, ModelInfo, ModelSource } from "../engine/options.js";
import { AbortedError, throwIfAborted, WherryError } from "../errors.js";
import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatRequest,
  Completion,
  CompletionRequest,
} from "../request/types.js";
import { ALIVE, type AnswerMessage, type Call, CONNECT, revived } from "./messages.js";

/** What a page can talk to: `new Worker(...)`, `navigator.serviceWorker.controller`, a port. */
export type WorkerTarget = Pick<MessagePort, "postMessage">;

/** An engine behind a worker's border. */
export interface RemoteEngine extends Engine {
  /** Let go of the worker: its open requests end here, its models stay. */
  close(): void;
}

const ALIVE_MS = 10_000;

/**
 * Use the engine of a worker that called `serve`.
 *
 * ```ts
 * const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
 * const engine = connect(worker);
 * ```
 */
export function connect(target: WorkerTarget): RemoteEngine {
  const { port1, port2 } = new MessageChannel();
  target.postMessage(CONNECT, [port2]);
  const alive = setInterval(() => {
    target.postMessage(ALIVE);
  }, ALIVE_MS);
  (alive as { unref?: () => void }).unref?.(); // of Node: no reason to go on
  return new PortEngine(port1, () => {
    clearInterval(alive);
  });
}

/** Who waits for the answers to a call. */
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
  readonly #port: MessagePort;
  readonly #closed: () => void;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;

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
    port.start();
  }

  load(
    source: ModelSource,
    { progress, signal, ...options }: LoadOptions = {},
  ): Promise<ModelInfo> {
    const call = { call: "load" as const, source: portableSource(source), options };
    return this.#call(call, { signal, ...(progress && { progress }) }) as Promise<ModelInfo>;
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
    const error = new WherryError("aborted", "The engine was closed.");
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #endpoint<Request extends { stream?: boolean | null }, Whole, Chunk>(
    call: "chat" | "completion",
  ): Endpoint<Request, Whole, Chunk> {
    const create = (request: Request, { signal }: RequestOptions = {}): Promise<unknown> => {
      const made = { call, request } as unknown as Call;
      return request.stream ? this.#stream(made, signal) : this.#call(made, { signal });
    };
    return { create } as Endpoint<Request, Whole, Chunk>;
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

  /** Send a call; an aborted signal ends it there, and here. */
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
    this.#port.postMessage({ id, ...call });
    return id;
  }

  #abort(id: number): void {
    this.#port.postMessage({ id, call: "abort" });
  }

  /** Resolves when the request has been accepted, as on the other side. */
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
            reject(error); // without effect once it has started
            queue.fail(error);
          },
        },
        signal,
      );
    });
    const made = chunksOf(queue);
    const answer: Answer<unknown> = {
      next: () => made.next(),
      return: () => {
        if (this.#waiting.delete(id)) this.#abort(id);
        return made.return(undefined);
      },
      [Symbol.asyncIterator]: () => answer,
    };
    return answer;
  }

  #heard(answer: AnswerMessage): void {
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) return; // ended on this side
    if ("started" in answer) waiting.started?.();
    else if ("chunk" in answer) waiting.chunk?.(answer.chunk);
    else if ("progress" in answer) waiting.progress?.(answer.progress);
    else {
      this.#waiting.delete(answer.id);
      if ("error" in answer) waiting.reject(revived(answer.error));
      else waiting.resolve(answer.result);
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
