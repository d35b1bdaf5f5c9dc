/** The state of the page: the engine in its worker, the loaded model, and listeners for changes. */
import { type Engine, type LoadProgress, type ModelInfo, type ModelSource } from "../src/index.js";
import { connect } from "../src/worker.js";

export type State =
  | { readonly kind: "none" }
  | { readonly kind: "offered"; readonly name: string; readonly bytes: number }
  | {
      readonly kind: "loading";
      readonly name: string;
      /**
       * Progress of the load; "elsewhere": another tab downloads the model, and this tab will then
       * find it stored.
       */
      readonly progress: LoadProgress | "elsewhere" | undefined;
    }
  | { readonly kind: "ready"; readonly model: ModelInfo }
  | { readonly kind: "failed"; readonly name: string; readonly reason: string };

/** Owns the engine and one model at a time; the previous model is freed when another is chosen. */
export class Session {
  readonly engine: Engine;
  state: State = { kind: "none" };
  readonly #listeners: ((state: State) => void)[] = [];
  #loading: AbortController | undefined;
  #last: readonly [string, ModelSource] | undefined;

  constructor() {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.engine = connect(worker);
  }

  /** Call a listener with the present state and with all later ones. */
  listen(listener: (state: State) => void): void {
    this.#listeners.push(listener);
    listener(this.state);
  }

  /** Offer a large model, which is loaded only if the person asks for it. */
  offer(name: string, bytes: number): void {
    this.#set({ kind: "offered", name, bytes });
  }

  /** Load the last model again. */
  retry(): void {
    if (this.#last) void this.load(...this.#last);
  }

  /** Load a model in place of the present one. */
  async load(name: string, source: ModelSource): Promise<void> {
    this.#last = [name, source];
    this.#loading?.abort();
    const loading = (this.#loading = new AbortController());
    const current = (): boolean => this.#loading === loading;
    this.#set({ kind: "loading", name, progress: undefined });
    try {
      for (const { name: old } of await this.engine.models()) await this.engine.unload(old);
      const set = (progress: LoadProgress | "elsewhere"): void => {
        if (current()) this.#set({ kind: "loading", name, progress });
      };
      const { signal } = loading;
      const model = await oneTab(source, signal, set, () =>
        this.engine.load(source, { signal, progress: set }),
      );
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

/** Run a download while no other tab of this site downloads: afterwards the files are stored. */
async function oneTab<T>(
  source: ModelSource,
  signal: AbortSignal,
  said: (progress: "elsewhere") => void,
  load: () => Promise<T>,
): Promise<T> {
  const { locks, storage } = navigator as Partial<Pick<Navigator, "locks" | "storage">>;
  void storage?.persist().catch(() => false); // a browser that asks the person may get a refusal
  const address = [source].flat().find((one) => typeof one === "string");
  // locks are missing on pages that are not secure; files from the disk need none
  if (!locks || address === undefined) return load();
  const name = `wherry.page:${address}`;
  const { held = [] } = await locks.query();
  if (held.some((lock) => lock.name === name)) said("elsewhere");
  return locks.request(name, { signal }, load);
}
