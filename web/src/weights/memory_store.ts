import type { ByteStore } from "./byte_store.js";

/** A store in memory, for browsers that store nothing, for Node, and for tests. */
export class MemoryStore implements ByteStore {
  readonly shared = false;
  readonly #values = new Map<string, Uint8Array>();

  get(name: string): Promise<Uint8Array | undefined> {
    return Promise.resolve(this.#values.get(name));
  }

  put(name: string, value: Uint8Array): Promise<void> {
    this.#values.set(name, value.slice());
    return Promise.resolve();
  }

  remove(path: string): Promise<void> {
    for (const name of [...this.#values.keys()]) {
      if (name === path || name.startsWith(`${path}/`)) this.#values.delete(name);
    }
    return Promise.resolve();
  }

  names(path: string): Promise<string[]> {
    const names = [...this.#values.keys()];
    return Promise.resolve(names.filter((name) => name.startsWith(`${path}/`)).sort());
  }
}
