/**
 * Runs the C++ core in a page or in Node: tokens in, tokens out. One instance is an engine with one
 * model.
 */
import { CoreError, reasonOf } from "./errors.js";
import { type CoreEvent, readEvents } from "./events.js";
import { Gpu } from "./gpu.js";
import { withoutGpu } from "./gpu_imports.js";
import { Instance } from "./instance.js";
import type { Heap } from "./memory.js";
import type { CoreMask } from "./masks.js";
import { type CoreParams, defaultParams, writeParams } from "./params.js";
import { type CoreStats, readStats } from "./stats.js";
import { EVENT } from "./records.js";
import { loadWeights } from "./weights.js";

export { CoreError, type CoreStatus } from "./errors.js";
export type { CoreEvent, CoreFinish, TopLogprob } from "./events.js";
export type { CoreMask } from "./masks.js";
export type { CoreParams } from "./params.js";
export type { CoreStats } from "./stats.js";

export type DeviceKind = "webgpu" | "wasm";

export interface CoreFiles {
  /** Read a small file as a whole: wherry.json, model.wasm, tensor-cache.json. */
  bytes(name: string): Promise<Uint8Array>;
  /** Read a weight shard in pieces, in order, already checked against the manifest's sha256. */
  stream(name: string): AsyncIterable<Uint8Array>;
}

/** Configuration for wherry_engine_create; a missing field has the engine's default. */
export interface EngineConfig {
  max_batch?: number; // maximum number of sequences decoded together
  context?: number; // maximum tokens of one request
  kv_tokens?: number; // tokens in the whole KV cache
  prefill_chunk?: number; // maximum rows of one step
  prefix_cache?: boolean;
  max_drafts?: number; // maximum draft tokens of requests that set no limit themselves
  // largest factor by which prompt chunks may slow down a running request's steps
  max_slowdown?: number;
  max_step_seconds?: number; // maximum seconds of a step with prompt chunks; 0: no limit
  /**
   * Number of CPU threads; default: one. More than one needs shared memory and a thread that may
   * wait.
   */
  threads?: number;
}

export interface CoreProgress {
  phase: "compile" | "weights" | "pipelines";
  done: number; // bytes of weights in the phase "weights", otherwise a count
  total: number;
}

export interface CoreOptions {
  files: CoreFiles;
  device: DeviceKind;
  /** The GPU device for target webgpu; the caller requests the adapter and its features. */
  gpu?: GPUDevice;
  engine?: EngineConfig;
  progress?: (event: CoreProgress) => void;
  signal?: AbortSignal;
}

/** The compiled library's metadata, which docs/design/compiled-library.md describes. */
export interface Metadata {
  readonly name: string;
  readonly vocab_size: number;
  readonly context: number;
  readonly page_size: number;
  readonly max_batch?: number;
  readonly prefill_chunk?: number;
  readonly logit_rows?: number;
  readonly embedding_size?: number;
  readonly candidates?: number;
  readonly entries: readonly string[];
}

export interface Core {
  readonly metadata: Metadata;
  /** Number of CPU threads that compute. */
  readonly threads: number;
  paramsDefault(): CoreParams;
  /** Queue a request. @throws CoreError invalid_argument: the core refuses it */
  add(id: number, tokens: Int32Array, params: CoreParams, mask?: CoreMask): void;
  /** Abort a request. @throws CoreError not_found: it has ended already */
  abort(id: number): void;
  /**
   * Run one step: launch it, await the device, collect the events. Calls must not overlap. Returns
   * [] if there is nothing to do. @throws CoreError device_lost, out_of_memory: after these every
   * later call fails, too
   */
  step(): Promise<CoreEvent[]>;
  stats(): CoreStats;
  clearCache(): void;
  /** Free the device's buffers and release the instance. */
  destroy(): void;
}

const EVENTS = 64; // maximum number of events that one call returns
const MOST_THREADS = 64;

class WasmCore implements Core {
  private readonly events: number;
  private readonly count: number;
  private stepping = false;
  private ended: CoreError | undefined;

  constructor(
    private readonly instance: Instance,
    private readonly model: number,
    private readonly engine: number,
    readonly metadata: Metadata,
    private readonly gpu: Gpu | undefined,
  ) {
    const { wherry_page_allocate } = instance.exports;
    this.events = wherry_page_allocate(EVENTS * EVENT.bytes);
    this.count = wherry_page_allocate(4);
    if (this.events === 0 || this.count === 0) {
      throw new CoreError("out_of_memory", "no memory for the records of events");
    }
  }

  get threads(): number {
    return this.instance.threads;
  }

  paramsDefault(): CoreParams {
    return this.guarded((instance) => defaultParams(instance));
  }

  add(id: number, tokens: Int32Array, params: CoreParams, mask?: CoreMask): void {
    this.guarded((instance) => {
      instance.with((args) => {
        const at = args.ints(tokens);
        const record = writeParams(instance, args, params, mask);
        const { wherry_engine_add } = instance.exports;
        instance.check(wherry_engine_add(this.engine, BigInt(id), at, tokens.length, record));
      });
    });
  }

  abort(id: number): void {
    this.guarded((instance) => {
      instance.check(instance.exports.wherry_engine_abort(this.engine, BigInt(id)));
    });
  }

  async step(): Promise<CoreEvent[]> {
    const instance = this.usable();
    if (this.stepping) throw new CoreError("busy", "a step is running: await it first");
    this.stepping = true;
    try {
      this.gpu?.beginStep();
      const status = instance.exports.wherry_engine_launch(this.engine);
      instance.throwFailure();
      instance.check(status);
      if (this.gpu !== undefined) await this.settled(this.gpu);
      return this.collect();
    } catch (thrown) {
      throw this.noted(thrown);
    } finally {
      this.stepping = false;
    }
  }

  stats(): CoreStats {
    return this.guarded((instance) => readStats(instance, this.engine, this.gpu));
  }

  clearCache(): void {
    this.guarded((instance) => {
      instance.check(instance.exports.wherry_engine_clear_cache(this.engine));
    });
  }

  destroy(): void {
    if (this.ended?.status === "aborted") return;
    const { exports } = this.instance;
    if (this.ended === undefined && !this.stepping) {
      exports.wherry_engine_destroy(this.engine);
      exports.wherry_model_free(this.model);
    }
    this.ended = new CoreError("aborted", "this core was destroyed");
    this.gpu?.destroy();
    this.instance.end();
  }

  /** Run the GPU commands that the step has recorded, until it waits for nothing more. */
  private async settled(gpu: Gpu): Promise<void> {
    const { exports } = this.instance;
    do {
      await gpu.settle();
      if (this.ended !== undefined) throw this.ended;
      this.instance.check(exports.wherry_engine_ready(this.engine, this.count));
    } while (this.instance.heap.view().getInt32(this.count, true) === 0);
  }

  private collect(): CoreEvent[] {
    const { exports, heap } = this.instance;
    const collected: CoreEvent[] = [];
    let n: number;
    do {
      this.instance.check(
        exports.wherry_engine_collect(this.engine, this.events, EVENTS, this.count),
      );
      n = heap.view().getUint32(this.count, true);
      collected.push(...readEvents(this.instance, this.events, n));
    } while (n === EVENTS);
    return collected;
  }

  private usable(): Instance {
    if (this.ended !== undefined) throw this.ended;
    this.gpu?.throwFailure();
    return this.instance;
  }

  private guarded<T>(call: (instance: Instance) => T): T {
    const instance = this.usable();
    try {
      return call(instance);
    } catch (thrown) {
      throw this.noted(thrown);
    }
  }

  /**
   * Return the error to throw for `thrown`; after a trap or a failed device the core is unusable.
   */
  private noted(thrown: unknown): CoreError {
    if (this.gpu?.failed === true || !(thrown instanceof CoreError)) this.ended ??= asEnd(thrown);
    return this.ended ?? asEnd(thrown);
  }
}

function asEnd(thrown: unknown): CoreError {
  if (thrown instanceof CoreError) return thrown;
  return new CoreError("internal", `the instance failed: ${String(thrown)}`, { cause: thrown });
}

/** The fields of the manifest that the core needs. */
interface Manifest {
  target?: { objects?: { symbols?: string } };
}

/**
 * Load a compiled folder of `--target webgpu` or `wasm`.
 *
 * @throws CoreError incompatible: the folder is not of this version; out_of_memory; device_lost;
 *     aborted; and unchanged all errors that `files` throws
 */
export async function loadCore(options: CoreOptions): Promise<Core> {
  const { files, device, signal, progress = () => undefined } = options;
  if ((device === "webgpu") !== (options.gpu !== undefined)) {
    throw new CoreError("invalid_argument", "`gpu` is given with the device webgpu, and only there");
  }
  const [manifest, wasm, index] = await Promise.all([
    files.bytes("wherry.json").then(textOf),
    files.bytes("model.wasm"),
    files.bytes("tensor-cache.json").then(textOf),
  ]);
  const symbols = symbolsOf(manifest);
  if (signal?.aborted) throw new CoreError("aborted", "loading was aborted");

  progress({ phase: "compile", done: 0, total: 1 });
  let gpu: Gpu | undefined;
  const imports = (heap: () => Heap): WebAssembly.ModuleImports => {
    if (options.gpu === undefined) return withoutGpu();
    gpu = new Gpu(options.gpu, heap, (done, total) => {
      progress({ phase: "pipelines", done, total });
    });
    return gpu.imports();
  };
  // Time for building pipelines is subtracted: it occurs once, so the first steps say nothing about
  // later ones.
  const now = (): number => performance.now() - (gpu?.buildMs ?? 0);
  const { threads = 1, ...engine } = options.engine ?? {};
  const bytes = wasm as Uint8Array<ArrayBuffer>;
  const instance = await Instance.create(bytes, imports, now, checkedThreads(threads));
  progress({ phase: "compile", done: 1, total: 1 });
  try {
    const model = await loadModel(instance, `system:${symbols}`, index, options, gpu);
    const core = await openCore(instance, model, engine, gpu);
    if (signal?.aborted) throw new CoreError("aborted", "loading was aborted");
    return core;
  } catch (thrown) {
    gpu?.destroy();
    instance.end();
    throw thrown instanceof WebAssembly.RuntimeError ? asEnd(thrown) : thrown;
  }
}

function checkedThreads(threads: number): number {
  if (Number.isInteger(threads) && threads >= 1 && threads <= MOST_THREADS) return threads;
  const words = `threads is ${threads}; it takes a whole number from 1 to ${MOST_THREADS}`;
  throw new CoreError("invalid_argument", words);
}

/** The prefix of the model's symbols in model.wasm. */
function symbolsOf(manifest: string): string {
  let parsed: Manifest;
  try {
    parsed = JSON.parse(manifest) as Manifest;
  } catch (thrown) {
    throw new CoreError("incompatible", `wherry.json is not JSON: ${reasonOf(thrown)}`);
  }
  const symbols = parsed.target?.objects?.symbols;
  if (symbols !== undefined) return symbols;
  throw new CoreError("incompatible", "wherry.json names no model for pages: compile it again");
}

async function loadModel(
  instance: Instance,
  library: string,
  index: string,
  options: CoreOptions,
  gpu: Gpu | undefined,
): Promise<number> {
  const { exports } = instance;
  const loader = instance.out((args, out) =>
    exports.wherry_loader_create(
      args.text(library),
      args.text(index),
      args.text(gpu === undefined ? "cpu" : "webgpu"),
      args.text(JSON.stringify({ threads: instance.threads })),
      out,
    ),
  );
  try {
    await loadWeights(instance, loader, options.files, gpu, onBytes(options), options.signal);
    return instance.out((_, out) => exports.wherry_loader_finish(loader, out));
  } finally {
    exports.wherry_loader_free(loader);
  }
}

function onBytes(options: CoreOptions): (done: number, total: number) => void {
  return (done, total) => options.progress?.({ phase: "weights", done, total });
}

async function openCore(
  instance: Instance,
  model: number,
  config: Omit<EngineConfig, "threads">,
  gpu: Gpu | undefined,
): Promise<Core> {
  const { exports, heap } = instance;
  const metadata = JSON.parse(heap.text(exports.wherry_model_metadata(model))) as Metadata;
  const engine = instance.out((args, out) =>
    exports.wherry_engine_create(model, 0, args.text(JSON.stringify(config)), out),
  );
  await gpu?.settle();
  await gpu?.ready();
  return new WasmCore(instance, model, engine, metadata, gpu);
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
