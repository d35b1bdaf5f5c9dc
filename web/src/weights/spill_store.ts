import type { ByteStore } from "./byte_store.js";
import { MemoryStore } from "./memory_store.js";

/**
 * A store that puts values into memory if the store below refuses them: the disk is full, or
 * writing is forbidden.
 */
export class SpillStore implements ByteStore {
  readonly #store: ByteStore;
  readonly #memory = new MemoryStore();
  #spilled = false;

  constructor(store: ByteStore) {
    this.#store = store;
  }

  get shared(): boolean {
    return this.#store.shared;
  }

  /** Whether some values are only in memory. */
  get spilled(): boolean {
    return this.#spilled;
  }

  /** Store all further values in memory. */
  spill(): void {
    this.#spilled = true;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    return (await this.#memory.get(name)) ?? this.#store.get(name);
  }

  async put(name: string, value: Uint8Array): Promise<void> {
    if (!this.#spilled) {
      try {
        await this.#store.put(name, value);
        return;
      } catch {
        this.spill();
      }
    }
    await this.#memory.put(name, value);
  }

  async remove(path: string): Promise<void> {
    await this.#memory.remove(path);
    await this.#store.remove(path);
  }

  async names(path: string): Promise<string[]> {
    const all = [...(await this.#memory.names(path)), ...(await this.#store.names(path))];
    return [...new Set(all)].sort();
  }
}
