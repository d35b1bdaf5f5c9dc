/** What browsers, workers and Node have, not each of them all of it. */
interface Platform {
  readonly navigator?: {
    readonly storage?: StorageManager;
    readonly gpu?: GPU;
    readonly hardwareConcurrency?: number;
    readonly locks?: LockManager;
  };
  readonly caches?: CacheStorage;
  readonly FileSystemFileHandle?: typeof FileSystemFileHandle;
  readonly setImmediate?: (callback: () => void) => unknown; // Node
  readonly crypto: { readonly subtle?: SubtleCrypto };
}

/** The globals, with those that may be missing marked so. */
export const platform = globalThis as unknown as Platform;
