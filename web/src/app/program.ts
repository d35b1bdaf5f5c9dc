import { importsOf } from "../core/imports.js";
import { Arguments, Heap } from "../core/memory.js";

/** The functions that both modules of the app export, see web/app/exports.cc. */
export interface ProgramExports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  wherry_page_allocate(bytes: number): number;
  wherry_page_free(at: number): void;
  wherry_last_error(): number;
}

/** An instance of one of the app's modules. */
export class Program<Exports extends ProgramExports> {
  readonly exports: Exports;
  readonly heap: Heap;

  private constructor(exports: Exports) {
    this.exports = exports;
    this.heap = new Heap(exports.memory);
  }

  /**
   * Instantiate a module and initialize it.
   *
   * @param imports returns the module's imports, given access to the instance's memory.
   */
  static async start<Exports extends ProgramExports>(
    module: WebAssembly.Module,
    imports: (heap: () => Heap) => WebAssembly.Imports,
  ): Promise<Program<Exports>> {
    let program: Program<Exports> | undefined;
    const heap = (): Heap => {
      if (!program) throw new Error("the module has no memory yet");
      return program.heap;
    };
    const all = importsOf(module, imports(heap), heap, Date.now);
    const { exports } = await WebAssembly.instantiate(module, all);
    program = new Program(exports as unknown as Exports);
    program.exports._initialize();
    return program;
  }

  /** Run `call` with an allocator of arguments in the module's memory, and free them afterwards. */
  with<T>(call: (args: Arguments) => T): T {
    const { exports } = this;
    const args = new Arguments(
      this.heap,
      (bytes) => exports.wherry_page_allocate(bytes),
      (at) => exports.wherry_page_free(at),
    );
    try {
      return call(args);
    } finally {
      args.free();
    }
  }

  /** Return the reason why the last call has failed. */
  lastError(): string {
    return this.heap.text(this.exports.wherry_last_error());
  }
}
