/** Threads that take part in a core's kernels: workers, each with an instance over the core's memory. */
import type { Heap } from "./memory.js";

/** Of web/core/threads.cc. */
export interface ThreadExports {
  wherry_page_allocate(bytes: number): number;
  wherry_page_pool(): number;
}

/** What threads.cc and the workers write of the pool: words of 4 bytes, and a text. */
const FAILED = 2;
const DIED = 2; // a value of that word
const REASON = { at: 12, bytes: 256 };
// The core's own stack is as large, and what a task calls is called there, too, from deeper down.
const STACK_BYTES = 1 << 20;

/**
 * A worker's whole life. It is no module with an address, because packages are bundled in many ways,
 * and no function's text, because that is what minifiers write over.
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

/** Workers as browsers have them, or as Node has. */
interface Thread {
  /** What the worker says first; undefined if it never will. */
  readonly first: Promise<unknown>;
  send(message: object): void;
  end(): void;
}

/** The threads of one core. */
export class Threads {
  private constructor(
    private readonly workers: readonly Thread[],
    private readonly pool: number,
    private readonly heap: Heap,
  ) {}

  /**
   * Start up to `count` threads, the core's own included. There are fewer where no worker can be
   * started, by the page's Content-Security-Policy for one, or where there is no memory for its stack.
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
      // It grows down, from an address that 16 divides.
      thread.send({ module, memory, stack: (stack + STACK_BYTES) & ~15, pool });
    }
    const first = await Promise.all(started.map((thread) => thread.first));
    const ready = started.filter((_, i) => first[i] === "");
    for (const thread of started) if (!ready.includes(thread)) thread.end();
    return new Threads(ready, pool, heap);
  }

  /** Threads that launches are cut for. */
  get count(): number {
    return 1 + this.workers.length;
  }

  /** @throws RuntimeError: another thread has trapped, which ends the instance as a trap here does */
  throwFailure(): void {
    if (this.heap.ints(this.pool, 3)[FAILED] !== DIED) return;
    throw new WebAssembly.RuntimeError(`in a thread: ${this.heap.text(this.pool + REASON.at)}`);
  }

  end(): void {
    for (const worker of this.workers) worker.end();
  }
}

/** undefined: there are no workers here. */
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

/** What is taken of node:worker_threads. */
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
  }).finally(() => worker.unref()); // a process may end without it
  return { first, send: (message) => worker.postMessage(message), end: () => void worker.terminate() };
}
