import { platform } from "../platform.js";
import type { ByteStore } from "./byte_store.js";
import { CacheStore } from "./cache_store.js";
import { MemoryStore } from "./memory_store.js";
import { type KeptModel, keptModels, removeKept } from "./model_records.js";
import { OpfsStore } from "./opfs_store.js";
import { type StorageRoom, storageRoom } from "./quota.js";

/**
 * The models that this browser stores for this site.
 *
 * ```ts
 * const cache = await ModelCache.open();
 * for (const model of await cache.list()) console.log(model.url, model.bytes);
 * await cache.remove("https://example.org/models/demo/");
 * ```
 */
export class ModelCache {
  /** Kind of storage; "memory" lasts only as long as this page. */
  readonly kind: "opfs" | "cache" | "memory";
  /** The store that holds the files. @internal */
  readonly store: ByteStore;

  private constructor(kind: ModelCache["kind"], store: ByteStore) {
    this.kind = kind;
    this.store = store;
  }

  /** Open the best cache that the browser has: its private file system, else the Cache API. */
  static async open(): Promise<ModelCache> {
    const files = await OpfsStore.open();
    if (files) return new ModelCache("opfs", files);
    const cache = await CacheStore.open();
    if (cache) return new ModelCache("cache", cache);
    return ModelCache.inMemory();
  }

  /** Create a cache that lasts as long as the object. */
  static inMemory(): ModelCache {
    return new ModelCache("memory", new MemoryStore());
  }

  /** List the stored models, the most recently used first. */
  list(): Promise<KeptModel[]> {
    return keptModels(this.store);
  }

  /** Remove a model by the address of its folder; files that other models share stay. */
  remove(url: string): Promise<void> {
    return removeKept(this.store, url.endsWith("/") ? url : `${url}/`);
  }

  /**
   * Return the bytes that this site uses and may still store; undefined if the browser does not
   * tell.
   */
  room(): Promise<StorageRoom> {
    return storageRoom();
  }

  /** Ask the browser to keep the models when the disk becomes full; it may ask the person. */
  async persist(): Promise<boolean> {
    return (await platform.navigator?.storage?.persist()) ?? false;
  }
}
