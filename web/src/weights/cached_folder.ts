/** A compiled folder on a web server, whose downloaded files are stored in the browser. */
import { DamagedFileError, DownloadError } from "../errors.js";
import type { ByteStore } from "./byte_store.js";
import { download, downloadSmall, type FetchOptions } from "./download.js";
import { filesRead, joined, type ModelFolder, recordOf } from "./folder.js";
import { CHUNK, KeptFile } from "./kept_file.js";
import { type FileRecord, MANIFEST, type Manifest, parseManifest } from "./manifest.js";
import { keepManifest, keepRecord, keptManifest, pruneKept } from "./model_records.js";
import { checkRoom } from "./quota.js";
import { hasher } from "./sha256.js";
import { SpillStore } from "./spill_store.js";
import { alone } from "./web_lock.js";

const AT_ONCE = 3; // number of files that are downloaded at a time
const TRIES = 2; // number of downloads of a file that arrives damaged

/** Options of {@link openCached}. */
export interface CachedFolderOptions extends FetchOptions {
  readonly store: ByteStore;
  /**
   * Whether it is an error if not all files can be stored; otherwise the rest stays in memory for
   * this visit.
   */
  readonly mustKeep?: boolean;
  /** Callback with the bytes that are available, and the bytes in all. */
  readonly progress?: (done: number, total: number) => void;
}

/** A manifest, and the address at which it was found. */
export interface LocatedManifest {
  readonly manifest: Manifest;
  /** Address of the folder, which ends with "/". */
  readonly base: string;
  readonly bytes: Uint8Array;
}

/**
 * Download a folder's manifest; without a network, use the stored one.
 *
 * @throws DownloadError, DamagedFileError, ModelError, AbortedError
 */
export async function findManifest(
  url: string,
  options: CachedFolderOptions,
): Promise<LocatedManifest> {
  const base = url.endsWith("/") ? url : `${url}/`;
  let bytes: Uint8Array;
  try {
    bytes = await downloadSmall(base + MANIFEST, options);
  } catch (error) {
    const offline = error instanceof DownloadError && error.status === undefined;
    const kept = offline ? await keptManifest(options.store, base) : undefined;
    if (!kept) throw error;
    bytes = kept;
  }
  return { manifest: await parseManifest(bytes), base, bytes };
}

/**
 * Store the manifest of a variant that this device cannot run, so that it is known without a
 * network, too.
 */
export async function skipVariant(located: LocatedManifest, store: ByteStore): Promise<void> {
  await keepManifest(new SpillStore(store), located.base, located.bytes);
}

/**
 * Open a folder, and download the files that are not stored yet. A folder that was downloaded
 * before needs no network.
 *
 * @throws DownloadError, DamagedFileError, AbortedError; QuotaError if `mustKeep` is set
 */
export async function openCached(
  { manifest, base, bytes }: LocatedManifest,
  options: CachedFolderOptions,
): Promise<ModelFolder> {
  const store = options.mustKeep ? options.store : new SpillStore(options.store);
  await keepRecord(store, base, bytes);
  const folder = new CachedFolder(base, manifest, bytes, { ...options, store });
  await folder.fetchAll();
  await pruneKept(store);
  return folder;
}

class CachedFolder implements ModelFolder {
  readonly source: string;
  readonly manifest: Manifest;
  readonly #manifestBytes: Uint8Array;
  readonly #options: CachedFolderOptions;
  #done = 0; // number of bytes that are available, out of `#total`
  #total = 0;

  constructor(source: string, manifest: Manifest, bytes: Uint8Array, options: CachedFolderOptions) {
    this.source = source;
    this.manifest = manifest;
    this.#manifestBytes = bytes;
    this.#options = options;
  }

  get kept(): boolean {
    const { store } = this.#options;
    return store.shared && !(store instanceof SpillStore && store.spilled);
  }

  has(name: string): boolean {
    return Object.hasOwn(this.manifest.files, name);
  }

  async bytes(name: string): Promise<Uint8Array> {
    if (name === MANIFEST) return this.#manifestBytes;
    return joined(recordOf(this.manifest, name).size, this.stream(name));
  }

  async *stream(name: string): AsyncGenerator<Uint8Array, void, undefined> {
    const record = recordOf(this.manifest, name);
    const kept = this.#kept(record);
    let given = 0;
    for (let round = 0; given < record.size; round += 1) {
      if (round > 0) await this.#fetch(name, record); // the damaged chunks have been removed by now
      if (round > TRIES) throw this.#damaged(name);
      for await (const chunk of kept.chunks(given)) {
        given += chunk.byteLength;
        yield chunk;
      }
    }
  }

  /** Download the missing files, a few at a time. */
  async fetchAll(): Promise<void> {
    const files = [...filesRead(this.manifest)];
    const kept = await Promise.all(files.map(([, record]) => this.#kept(record).bytesKept()));
    this.#total = files.reduce((sum, [, { size }]) => sum + size, 0);
    this.#done = kept.reduce((sum, bytes) => sum + bytes, 0);
    await this.#checkRoom(this.#total - this.#done);
    this.#report(0);
    const missing = files.filter(([, { size }], index) => (kept[index] ?? 0) < size);
    const worker = async (): Promise<void> => {
      for (let next = missing.shift(); next; next = missing.shift()) await this.#fetch(...next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }

  async #checkRoom(needed: number): Promise<void> {
    const { store } = this.#options;
    try {
      await checkRoom(needed);
    } catch (error) {
      if (!(store instanceof SpillStore)) throw error;
      store.spill();
    }
  }

  /** Download the rest of a file, unless another page does so: then use its result. */
  async #fetch(name: string, record: FileRecord): Promise<void> {
    const { store, signal } = this.#options;
    const work = (): Promise<void> => this.#fetchAlone(name, record);
    if (!store.shared) return work();
    const before = await this.#kept(record).bytesKept();
    await alone(`wherry:${record.sha256}`, signal, async () => {
      this.#report((await this.#kept(record).bytesKept()) - before);
      await work();
    });
  }

  /** Download a file; a damaged one is downloaded once more from its beginning. */
  async #fetchAlone(name: string, record: FileRecord): Promise<void> {
    for (let round = 0; round < TRIES; round += 1) {
      if (await this.#fetchRest(name, record)) return;
      await this.#kept(record).remove();
      this.#report(-record.size);
    }
    throw this.#damaged(name);
  }

  /** Download the rest of a file; false if its hash differs from the manifest's. */
  async #fetchRest(name: string, record: FileRecord): Promise<boolean> {
    const kept = this.#kept(record);
    const hash = await hasher();
    let at = 0;
    for await (const chunk of kept.chunks()) {
      hash.update(chunk);
      at += chunk.byteLength;
    }
    const pieces = download(this.source + name, record.size, at, this.#options);
    for await (const chunk of inChunks(pieces, (bytes) => {
      this.#report(bytes);
    })) {
      hash.update(chunk);
      await kept.put(at, chunk);
      at += chunk.byteLength;
    }
    return hash.digest() === record.sha256;
  }

  #kept(record: FileRecord): KeptFile {
    return new KeptFile(this.#options.store, record);
  }

  #report(more: number): void {
    this.#done = Math.max(0, this.#done + more);
    this.#options.progress?.(Math.min(this.#done, this.#total), this.#total);
  }

  #damaged(name: string): DamagedFileError {
    const { sha256, size } = recordOf(this.manifest, name);
    return new DamagedFileError(
      name,
      `${this.source}${name} is not what ${MANIFEST} lists (${size} bytes, SHA-256 ${sha256}), ` +
        "also when it is fetched again. Upload the folder again.",
    );
  }
}

/** Regroup pieces of any length into chunks of {@link CHUNK} bytes; the last may be shorter. */
async function* inChunks(
  pieces: AsyncIterable<Uint8Array>,
  came: (bytes: number) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let chunk = new Uint8Array(CHUNK);
  let filled = 0;
  for await (let piece of pieces) {
    came(piece.byteLength);
    while (piece.byteLength > 0) {
      const part = piece.subarray(0, CHUNK - filled);
      chunk.set(part, filled);
      filled += part.byteLength;
      piece = piece.subarray(part.byteLength);
      if (filled === CHUNK) {
        yield chunk;
        chunk = new Uint8Array(CHUNK);
        filled = 0;
      }
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}
