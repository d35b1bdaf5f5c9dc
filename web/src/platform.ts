/** Globals of browsers, workers and Node, each of which lacks some of them. */
interface Platform {
  readonly isSecureContext?: boolean; // false: the page came by http from another machine
  readonly navigator?: {
    readonly storage?: StorageManager;
    readonly gpu?: GPU;
    readonly hardwareConcurrency?: number;
    readonly locks?: LockManager;
  };
  readonly caches?: CacheStorage;
  readonly FileSystemFileHandle?: typeof FileSystemFileHandle;
  readonly setImmediate?: (callback: () => void) => unknown; // exists only in Node
  readonly crypto: { readonly subtle?: SubtleCrypto };
}

/** The global object, typed so that globals which may be missing are optional. */
export const platform = globalThis as unknown as Platform;
