import type { FileRecord } from "./manifest.js";
import type { ByteStore } from "./byte_store.js";
import { sha256 } from "./sha256.js";

/** Bytes of a chunk: the most that a broken download or a damaged disk can cost. */
export const CHUNK = 4 * 2 ** 20;

/**
 * The path below which the contents of all files are stored by SHA-256, so that models share equal
 * files.
 */
export const BLOBS = "blobs";

/**
 * The content of one file in a store, in chunks of {@link CHUNK} bytes (the last may be shorter).
 *
 * A chunk's name has its number and its own SHA-256, which is checked whenever the chunk is read;
 * the SHA-256 of the whole file was checked when it was downloaded.
 */
export class KeptFile {
  readonly #store: ByteStore;
  readonly #path: string;
  readonly #size: number;

  constructor(store: ByteStore, file: FileRecord) {
    this.#store = store;
    this.#path = `${BLOBS}/${file.sha256}`;
    this.#size = file.size;
  }

  /** Number of bytes that are stored without a gap from the beginning. */
  async bytesKept(): Promise<number> {
    const chunks = (await this.#names()).length;
    return Math.min(chunks * CHUNK, this.#size);
  }

  /** Store the chunk that begins at this offset, a multiple of {@link CHUNK}. */
  async put(at: number, chunk: Uint8Array): Promise<void> {
    const name = chunkName(this.#path, at / CHUNK, await sha256(chunk));
    await this.#store.put(name, chunk);
  }

  /**
   * Read the stored chunks in order, from the one that begins at this offset. Reading ends before a
   * damaged chunk, which is removed together with all later ones.
   */
  async *chunks(from = 0): AsyncGenerator<Uint8Array, void, undefined> {
    const names = await this.#names();
    for (const [index, name] of names.entries()) {
      if (index * CHUNK < from) continue;
      const chunk = await this.#store.get(name);
      const intact = chunk && name.endsWith(await sha256(chunk));
      if (!intact || chunk.byteLength !== this.#lengthOf(index)) {
        for (const rest of names.slice(index)) await this.#store.remove(rest);
        return;
      }
      yield chunk;
    }
  }

  async remove(): Promise<void> {
    await this.#store.remove(this.#path);
  }

  #lengthOf(index: number): number {
    return Math.min(CHUNK, this.#size - index * CHUNK);
  }

  async #names(): Promise<string[]> {
    const names = await this.#store.names(this.#path);
    const gap = names.findIndex((name, index) => chunkIndex(name) !== index);
    return gap < 0 ? names : names.slice(0, gap);
  }
}

function chunkName(path: string, index: number, digest: string): string {
  return `${path}/${String(index).padStart(6, "0")}-${digest}`;
}

function chunkIndex(name: string): number {
  return Number(name.slice(name.lastIndexOf("/") + 1).split("-")[0]);
}
