/** Threads that run the core's kernels: workers, each with an instance over the core's memory. */
import type { Heap } from "./memory.js";

/** The functions that web/core/threads.cc exports. */
export interface ThreadExports {
  wherry_page_allocate(bytes: number): number;
  wherry_page_pool(): number;
}

/** Offsets in the pool of threads.cc that workers write: words of 4 bytes, and a text. */
const FAILED = 2;
const DIED = 2; // value of the word at FAILED after a thread has died
const REASON = { at: 12, bytes: 256 };
// Bytes of a thread's stack. The core's own stack has the same size, and runs the same tasks from a
// greater depth.
const STACK_BYTES = 1 << 20;

/**
 * The whole script of a worker. It is a string, neither a module (packages are bundled in many
 * ways, so its address is unknown) nor a function's source (which minifiers change).
 */
const SCRIPT = `
const port = typeof require === "function" ? require("node:worker_threads").parentPort : self;
port.onmessage = async ({ data: { module, memory, stack, pool } }) => {
  const imports = { env: { memory } };
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== "function") continue;
    (imports[from] ??= {})[name] = () => {
      throw new Error("a thread called " + name);
    };
  }
  let exports;
  try {
    ({ exports } = await WebAssembly.instantiate(module, imports));
    exports.__stack_pointer.value = stack;
  } catch (error) {
    port.postMessage(String(error));
    return;
  }
  port.postMessage("");
  try {
    exports.wherry_page_thread(); // for good
  } catch (error) {
    const words = new TextEncoder().encode(String(error)).subarray(0, ${REASON.bytes - 1});
    new Uint8Array(memory.buffer, pool + ${REASON.at}, ${REASON.bytes}).fill(0).set(words);
    const state = new Int32Array(memory.buffer, pool, 3);
    Atomics.store(state, ${FAILED}, ${DIED});
    Atomics.sub(state, 1, 1); // the task that it had taken
    Atomics.notify(state, 1);
  }
};`;

/** The common interface of workers in browsers and in Node. */
interface Thread {
  /** Resolves to the worker's first message; undefined if it will never send one. */
  readonly first: Promise<unknown>;
  send(message: object): void;
  end(): void;
}

/** The worker threads of one core. */
export class Threads {
  private constructor(
    private readonly workers: readonly Thread[],
    private readonly pool: number,
    private readonly heap: Heap,
  ) {}

  /**
   * Start up to `count` threads, including the core's own. Fewer are started where workers cannot
   * run (for example because of the page's Content-Security-Policy) or memory for a stack is
   * missing.
   */
  static async start(
    count: number,
    module: WebAssembly.Module,
    memory: WebAssembly.Memory,
    heap: Heap,
    exports: ThreadExports,
  ): Promise<Threads> {
    const pool = exports.wherry_page_pool();
    const started: Thread[] = [];
    for (let i = 1; i < count; i++) {
      const thread = newThread();
      if (thread === undefined) break;
      const stack = exports.wherry_page_allocate(STACK_BYTES);
      if (stack === 0) {
        thread.end();
        break;
      }
      started.push(thread);
      // The stack grows downwards, from an address that is a multiple of 16.
      thread.send({ module, memory, stack: (stack + STACK_BYTES) & ~15, pool });
    }
    const first = await Promise.all(started.map((thread) => thread.first));
    const ready = started.filter((_, i) => first[i] === "");
    for (const thread of started) if (!ready.includes(thread)) thread.end();
    return new Threads(ready, pool, heap);
  }

  /** Number of threads for which launches are split. */
  get count(): number {
    return 1 + this.workers.length;
  }

  /**
   * Throw if another thread has trapped, which ends the instance like a trap on this thread.
   * @throws RuntimeError with the thread's message
   */
  throwFailure(): void {
    if (this.heap.ints(this.pool, 3)[FAILED] !== DIED) return;
    throw new WebAssembly.RuntimeError(`in a thread: ${this.heap.text(this.pool + REASON.at)}`);
  }

  end(): void {
    for (const worker of this.workers) worker.end();
  }
}

/** Start a worker; undefined if workers do not exist here. */
function newThread(): Thread | undefined {
  const { Worker: browsers, process } = globalThis as {
    Worker?: typeof Worker;
    process?: { getBuiltinModule?(name: string): unknown };
  };
  if (browsers !== undefined) return browserThread(browsers);
  const node = process?.getBuiltinModule?.("node:worker_threads") as NodeWorkers | undefined;
  return node && nodeThread(node);
}

function browserThread(browsers: typeof Worker): Thread | undefined {
  const url = URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" }));
  try {
    const worker = new browsers(url, { name: "wherry" });
    const first = new Promise<unknown>((resolve) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        resolve(undefined);
      };
    }).finally(() => URL.revokeObjectURL(url));
    return { first, send: (message) => worker.postMessage(message), end: () => worker.terminate() };
  } catch {
    URL.revokeObjectURL(url);
    return undefined;
  }
}

/** The part of node:worker_threads that is used here. */
interface NodeWorkers {
  Worker: new (script: string, options: { eval: true }) => NodeWorker;
}
interface NodeWorker {
  once(event: "message" | "error", listener: (value: unknown) => void): void;
  postMessage(message: object): void;
  terminate(): Promise<number>;
  unref(): void;
}

function nodeThread({ Worker }: NodeWorkers): Thread {
  const worker = new Worker(SCRIPT, { eval: true });
  const first = new Promise<unknown>((resolve) => {
    worker.once("message", resolve);
    worker.once("error", () => resolve(undefined));
  }).finally(() => worker.unref()); // lets the Node process end without waiting for the worker
  return { first, send: (message) => worker.postMessage(message), end: () => void worker.terminate() };
}
