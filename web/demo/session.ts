/** The engine in its worker, the model that answers, and who wants to know of changes. */
import { type Engine, type LoadProgress, type ModelInfo, type ModelSource } from "../src/index.js";
import { connect } from "../src/worker.js";

export type State =
  | { readonly kind: "none" }
  | { readonly kind: "offered"; readonly name: string; readonly bytes: number }
  | { readonly kind: "loading"; readonly name: string; readonly progress: LoadProgress | undefined }
  | { readonly kind: "ready"; readonly model: ModelInfo }
  | { readonly kind: "failed"; readonly name: string; readonly reason: string };

/** One model at a time; the one before is let go when another is chosen. */
export class Session {
  readonly engine: Engine;
  state: State = { kind: "none" };
  readonly #listeners: ((state: State) => void)[] = [];
  #loading: AbortController | undefined;

  constructor() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.engine = connect(worker);
  }

  /** Hear of this state and of all that follow. */
  listen(listener: (state: State) => void): void {
    this.#listeners.push(listener);
    listener(this.state);
  }

  /** Say that a model is there for the asking, which is large. */
  offer(name: string, bytes: number): void {
    this.#set({ kind: "offered", name, bytes });
  }

  /** Load a model in place of the one that is there. */
  async load(name: string, source: ModelSource): Promise<void> {
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    const current = (): boolean => this.#loading === loading;
    this.#set({ kind: "loading", name, progress: undefined });
    try {
      for (const { name: old } of await this.engine.models()) await this.engine.unload(old);
      const model = await this.engine.load(source, {
        signal: loading.signal,
        progress: (progress) => {
          if (current()) this.#set({ kind: "loading", name, progress });
        },
      });
      if (current()) this.#set({ kind: "ready", model });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (current()) this.#set({ kind: "failed", name, reason });
    }
  }

  #set(state: State): void {
    this.state = state;
    for (const listener of this.#listeners) listener(state);
  }
}
