import { CoreError, type CoreStatus, statusOf } from "./errors.js";
import { importsOf } from "./imports.js";
import { Masks } from "./masks.js";
import { Arguments, Heap } from "./memory.js";
import { EVENT, PARAMS, STATS } from "./records.js";
import { canShareMemory, memoryImport, ownMemory, sharedMemory, withSharing } from "./shared_memory.js";
import { Threads } from "./threads.js";

/** The functions used here of the C ABI in engine/include/wherry.h and web/core/page.cc. */
interface Exports {
  memory?: WebAssembly.Memory;
  _initialize(): void;
  wherry_page_allocate(bytes: number): number;
  wherry_page_free(at: number): void;
  wherry_page_size(record: number): number;
  wherry_page_mask(mask: number): number;
  wherry_page_pool(): number;
  wherry_last_error(): number;
  wherry_loader_create(
    lib: number,
    index: number,
    device: number,
    options: number,
    out: number,
  ): number;
  wherry_loader_free(loader: number): number;
  wherry_loader_tensors(loader: number): number;
  wherry_loader_place(loader: number, i: number, data: number): number;
  wherry_loader_filled(loader: number, i: number): number;
  wherry_loader_finish(loader: number, model: number): number;
  wherry_model_free(model: number): number;
  wherry_model_metadata(model: number): number;
  wherry_engine_create(model: number, draft: number, config: number, out: number): number;
  wherry_engine_destroy(engine: number): number;
  wherry_engine_clear_cache(engine: number): number;
  wherry_params_init(params: number): void;
  wherry_engine_add(
    engine: number,
    id: bigint,
    tokens: number,
    n: number,
    params: number,
  ): number;
  wherry_engine_abort(engine: number, id: bigint): number;
  wherry_engine_launch(engine: number): number;
  wherry_engine_ready(engine: number, ready: number): number;
  wherry_engine_collect(engine: number, events: number, cap: number, n: number): number;
  wherry_engine_stats(engine: number, out: number): number;
}

/** One instance of model.wasm: the core and one compiled model. */
export class Instance {
  private constructor(
    readonly exports: Exports,
    readonly heap: Heap,
    readonly masks: Masks,
    private readonly helpers: Threads | undefined,
  ) {}

  /**
   * Compile and instantiate model.wasm.
   *
   * @param gpu creates the imports of a device for the instance's memory
   * @param now returns milliseconds on the instance's clock
   * @param threads number of threads for kernels, this one included; fewer run if the browser has
   *     fewer
   * @throws CoreError incompatible: the file is not a model of this version
   */
  static async create(
    bytes: Uint8Array<ArrayBuffer>,
    gpu: (heap: () => Heap) => WebAssembly.ModuleImports,
    now: () => number,
    threads: number,
  ): Promise<Instance> {
    let heap: Heap | undefined;
    const heapOf = (): Heap => {
      if (heap === undefined) throw new CoreError("internal", "the instance has no memory yet");
      return heap;
    };
    const masks = new Masks(heapOf);
    const { module, memory, shared } = await compile(bytes, threads > 1);
    const own = {
      wherry_mask: masks.imports(),
      wherry_gpu: gpu(heapOf),
      ...(memory && { env: { memory } }),
    };
    const exports = await instantiate(module, importsOf(module, own, heapOf, now));
    const instances = memory ?? exports.memory;
    if (!(instances instanceof WebAssembly.Memory)) {
      throw new CoreError("incompatible", "model.wasm has no memory");
    }
    heap = new Heap(instances);
    exports._initialize();
    checkRecords(exports);
    const helpers = shared ? await Threads.start(threads, module, instances, heap, exports) : undefined;
    return new Instance(exports, heap, masks, helpers);
  }

  /** Number of threads that run kernels, this one included. */
  get threads(): number {
    return this.helpers?.count ?? 1;
  }

  /** Throw if another thread has trapped. @throws RuntimeError with that thread's message */
  throwFailure(): void {
    this.helpers?.throwFailure();
  }

  /** End the threads of the instance, which cannot be called afterwards. */
  end(): void {
    this.helpers?.end();
  }

  /** Run a call with memory for its arguments, which is freed afterwards. */
  with<T>(call: (args: Arguments) => T): T {
    const { wherry_page_allocate, wherry_page_free } = this.exports;
    const args = new Arguments(this.heap, wherry_page_allocate, wherry_page_free);
    try {
      return call(args);
    } finally {
      args.free();
    }
  }

  /**
   * Check the status that the core returned. @throws CoreError if `status` is not 0, with the
   * core's message
   */
  check(status: number): void {
    if (status === 0) return;
    throw this.error(statusOf(status));
  }

  error(status: CoreStatus): CoreError {
    return new CoreError(status, this.lastError());
  }

  lastError(): string {
    return this.heap.text(this.exports.wherry_last_error());
  }

  /** Return the 32-bit number that a call writes through its last argument. */
  out(call: (args: Arguments, out: number) => number): number {
    return this.with((args) => {
      const out = args.block(4);
      this.heap.view().setUint32(out, 0, true);
      this.check(call(args, out));
      return this.heap.view().getUint32(out, true);
    });
  }
}

/** A compiled module, and the memory that it imports; undefined if it has its own. */
interface Compiled {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory | undefined;
  readonly shared: boolean;
}

async function compile(bytes: Uint8Array<ArrayBuffer>, share: boolean): Promise<Compiled> {
  const imported = memoryImport(bytes);
  try {
    if (imported === undefined) {
      return { module: await WebAssembly.compile(bytes), memory: undefined, shared: false };
    }
    const shared = share && canShareMemory() ? sharedMemory(imported) : undefined;
    const module = await WebAssembly.compile(withSharing(bytes, imported, shared !== undefined));
    return { module, memory: shared ?? ownMemory(imported), shared: shared !== undefined };
  } catch (thrown) {
    throw unusable(thrown);
  }
}

async function instantiate(
  module: WebAssembly.Module,
  imports: WebAssembly.Imports,
): Promise<Exports> {
  try {
    return (await WebAssembly.instantiate(module, imports)).exports as unknown as Exports;
  } catch (thrown) {
    throw unusable(thrown);
  }
}

function unusable(thrown: unknown): CoreError {
  return new CoreError("incompatible", `model.wasm cannot be used: ${String(thrown)}`);
}

/**
 * Check that the sizes of the C structs match. @throws CoreError incompatible: they differ from
 * this package's
 */
function checkRecords(exports: Exports): void {
  [PARAMS, EVENT, STATS].forEach((record, i) => {
    const has = exports.wherry_page_size(i);
    if (has === record.bytes) return;
    const words = `record ${i} has ${has} bytes, this package's ${record.bytes}`;
    throw new CoreError("incompatible", `model.wasm is of another version: ${words}`);
  });
}
