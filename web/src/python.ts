/**
 * The engine for Python in the browser (runtime_py/browser). Only text, bytes and numbers are
 * passed between the languages: no object has to be freed by the other side, and `null` means the
 * same in both.
 */
import { MLCEngine } from "./engine/mlc_engine.js";
import type { Answer, RequestOptions } from "./engine/engine.js";
import type { ModelSource } from "./engine/options.js";
import type { EngineConfig } from "./core/core.js";
import type { ChatRequest, CompletionRequest, EmbeddingRequest } from "./request/types.js";
import { portable } from "./worker/messages.js";

type Endpoint = "chat" | "completion" | "embedding";
type Progress = (phase: string, done: number, total: number) => void;

/** Create a new engine for Python. */
export function pythonEngine(): PythonEngine {
  return new PythonEngine();
}

/** An engine with one model; every result is JSON, `{"result": ...}` or `{"error": ...}`. */
class PythonEngine {
  readonly #engine = new MLCEngine();
  readonly #files = new Map<string, Blob>();
  readonly #running = new Map<number, AbortController>();
  readonly #streams = new Map<number, Answer<unknown>>();
  readonly #life = new AbortController();
  #loading: Promise<unknown> = Promise.resolve();

  /** Add a file of the model, before `load`. */
  file(name: string, data: Uint8Array<ArrayBuffer>): void {
    this.#files.set(name, new Blob([data]));
  }

  /**
   * Load a model. @param addresses a JSON list of addresses; if empty, the files given to `file`
   * are used.
   */
  load(addresses: string, limits: string, progress: Progress): Promise<string> {
    return outcome(() => {
      const urls = JSON.parse(addresses) as string[];
      const source: ModelSource = urls.length > 0 ? urls : new Map(this.#files);
      this.#files.clear();
      const { signal } = this.#life;
      const loaded = this.#engine.load(source, {
        signal,
        limits: JSON.parse(limits) as EngineConfig,
        progress: ({ phase, done, total }) => {
          if (!signal.aborted) progress(phase, done, total);
        },
      });
      this.#loading = loaded.catch(() => undefined);
      return loaded;
    });
  }

  ask(id: number, endpoint: Endpoint, request: string): Promise<string> {
    return outcome(() => this.#create(id, endpoint, request).finally(() => this.#forget(id)));
  }

  /** Start a request whose answer comes in chunks. */
  open(id: number, endpoint: Endpoint, request: string): Promise<string> {
    return outcome(async () => {
      this.#streams.set(id, (await this.#create(id, endpoint, request)) as Answer<unknown>);
      return null;
    });
  }

  /** Return the next chunk of an answer, or null after the last one. */
  next(id: number): Promise<string> {
    return outcome(async () => {
      const next = await this.#streams.get(id)?.next();
      if (next && !next.done) return next.value;
      this.#forget(id);
      return null;
    });
  }

  /** End a request at any stage. */
  end(id: number): void {
    this.#running.get(id)?.abort();
    // The stream has reported its result, so later errors are ignored.
    this.#streams
      .get(id)
      ?.return?.()
      .catch(() => undefined);
    this.#forget(id);
  }

  stats(): Promise<string> {
    return outcome(() => this.#engine.stats());
  }

  dispose(): Promise<string> {
    return outcome(async () => {
      this.#life.abort();
      await this.#loading;
      await this.#engine.dispose();
      return null;
    });
  }

  #create(id: number, endpoint: Endpoint, text: string): Promise<unknown> {
    const controller = new AbortController();
    this.#running.set(id, controller);
    const options: RequestOptions = { signal: controller.signal };
    const request: unknown = JSON.parse(text);
    switch (endpoint) {
      case "chat":
        return this.#engine.chat.completions.create(request as ChatRequest, options);
      case "completion":
        return this.#engine.completions.create(request as CompletionRequest, options);
      case "embedding":
        return this.#engine.embeddings.create(request as EmbeddingRequest, options);
    }
  }

  #forget(id: number): void {
    this.#running.delete(id);
    this.#streams.delete(id);
  }
}

async function outcome(work: () => Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify({ result: await work() });
  } catch (error) {
    return JSON.stringify({ error: portable(error) });
  }
}
