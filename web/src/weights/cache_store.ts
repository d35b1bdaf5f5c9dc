import { platform } from "../platform.js";
import type { ByteStore } from "./byte_store.js";
import { quotaExceeded } from "./quota.js";

const CACHE = "wherry";
// prefix of the addresses under which values are stored; no server has pages there
const PREFIX = "/.wherry/";

/**
 * A store over the Cache API, for browsers whose private file system cannot be written from here.
 */
export class CacheStore implements ByteStore {
  readonly shared = true;
  readonly #cache: Cache;

  private constructor(cache: Cache) {
    this.#cache = cache;
  }

  /** Open the store; undefined if the browser has none, for example on http:// pages. */
  static async open(): Promise<CacheStore | undefined> {
    try {
      const cache = await platform.caches?.open(CACHE);
      return cache && new CacheStore(cache);
    } catch {
      return undefined;
    }
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const match = await this.#cache.match(PREFIX + name);
    return match && new Uint8Array(await match.arrayBuffer());
  }

  async put(name: string, value: Uint8Array): Promise<void> {
    try {
      await this.#cache.put(PREFIX + name, new Response(value as Uint8Array<ArrayBuffer>));
    } catch (error) {
      throw await quotaExceeded(error, value.byteLength);
    }
  }

  async remove(path: string): Promise<void> {
    await this.#cache.delete(PREFIX + path);
    for (const name of await this.names(path)) await this.#cache.delete(PREFIX + name);
  }

  async names(path: string): Promise<string[]> {
    const start = `${PREFIX}${path}/`;
    const paths = (await this.#cache.keys()).map(({ url }) => new URL(url).pathname);
    return paths
      .filter((one) => one.startsWith(start))
      .map((one) => one.slice(PREFIX.length))
      .sort();
  }
}
