import type { CoreMask } from "../core/core.js";
import { reasonOf } from "../core/errors.js";
import { grammarProgram } from "./programs.js";
import { Program, type ProgramExports } from "./program.js";

/** The exports of the grammar module, which web/app/grammars.cc describes. */
interface Exports extends ProgramExports {
  wherry_grammars_open(packed: number, n: number): number;
  wherry_grammars_compile(packed: number, n: number): number;
  wherry_grammars_forget(number: number): void;
  wherry_grammars_mask(number: number, stopIds: number, n: number): number;
  wherry_grammars_fill(mask: number, bits: number, words: number): number;
  wherry_grammars_accept(mask: number, token: number): number;
  wherry_grammars_forced(mask: number, tokens: number, cap: number): number;
  wherry_grammars_error(mask: number): number;
  wherry_grammars_release(mask: number): void;
}

const MOST_KEPT = 32; // maximum number of cached grammars
/** In place of a grammar's number: the grammar module was built without a compiler. */
const NO_COMPILER = -1;

/** The cache of one model's compiled grammars. The first one loads the grammar module. */
export class Grammars {
  readonly #vocabulary: () => Uint8Array;
  /** Numbers of cached grammars by packed constraint, the most recently used last. */
  readonly #known = new Map<string, number>();
  #program: Promise<Program<Exports> | undefined> | undefined;
  #started: Program<Exports> | undefined;

  /** @param vocabulary returns the result of wherry_page_vocabulary. */
  constructor(vocabulary: () => Uint8Array) {
    this.#vocabulary = vocabulary;
  }

  /**
   * Compile a constraint, unless its grammar is cached.
   *
   * @returns the number of the grammar; -1 if this package was built without a grammar compiler.
   * @throws Error if the constraint cannot be compiled.
   */
  async compile(packed: Uint8Array): Promise<number> {
    const program = await (this.#program ??= this.#start());
    if (!program) return NO_COMPILER;
    const key = new TextDecoder("latin1").decode(packed);
    const number = this.#known.get(key) ?? this.#compiled(program, packed);
    this.#known.delete(key);
    this.#known.set(key, number);
    for (const [oldest, gone] of this.#known) {
      if (this.#known.size <= MOST_KEPT) break;
      this.#known.delete(oldest);
      program.exports.wherry_grammars_forget(gone);
    }
    return number;
  }

  /** Create the mask of one request for a compiled grammar. */
  mask(number: number, stopIds: readonly number[]): CoreMask {
    const program = this.#started;
    if (!program) throw new Error("no grammar is compiled yet");
    const { exports } = program;
    const mask = program.with((args) =>
      exports.wherry_grammars_mask(number, args.ints(stopIds), stopIds.length),
    );
    if (mask === 0) throw new Error(program.lastError());
    return maskOf(program, mask);
  }

  /** Load the grammar module and pass it the vocabulary; undefined if it has no compiler. */
  async #start(): Promise<Program<Exports> | undefined> {
    try {
      const program = await Program.start<Exports>(await grammarProgram(), () => ({}));
      const packed = this.#vocabulary();
      const status = program.with((args) =>
        program.exports.wherry_grammars_open(args.bytes(packed), packed.length),
      );
      if (status > 0) return undefined;
      if (status < 0) throw new Error(program.lastError());
      return (this.#started = program);
    } catch (error) {
      this.#program = undefined; // so that the next request tries again
      throw error;
    }
  }

  #compiled(program: Program<Exports>, packed: Uint8Array): number {
    let number;
    try {
      number = program.with((args) =>
        program.exports.wherry_grammars_compile(args.bytes(packed), packed.length),
      );
    } catch (error) {
      // Later requests get a new module; existing masks continue to use this one.
      this.#program = undefined;
      this.#known.clear();
      throw new Error(trapReason(error), { cause: error });
    }
    if (number < 0) throw new Error(program.lastError());
    return number;
  }
}

/** Say why the module has stopped: an overflow of its stack leaves its memory, or the script's. */
function trapReason(error: unknown): string {
  const overflow = error instanceof RangeError || /out of bounds/i.test(reasonOf(error));
  return overflow
    ? "it takes too much stack"
    : `the grammar compiler has failed: ${reasonOf(error)}`;
}

/** Wrap a mask of the grammar module as a mask of the core. */
function maskOf({ exports, heap }: Program<Exports>, mask: number): CoreMask {
  const checked = (result: number): number => {
    if (result < 0) throw new Error(heap.text(exports.wherry_grammars_error(mask)));
    return result;
  };
  let place = 0; // buffer for bits or tokens in the module's memory, which release() frees
  let bytes = 0;
  /** Return the buffer, enlarged to `wanted` bytes if necessary. */
  const room = (required: number): number => {
    if (required <= bytes) return place;
    exports.wherry_page_free(place);
    place = exports.wherry_page_allocate(required);
    bytes = place === 0 ? 0 : required;
    if (place === 0) throw new Error("no memory for a mask");
    return place;
  };
  return {
    fill(bits) {
      const at = room(bits.byteLength);
      if (checked(exports.wherry_grammars_fill(mask, at, bits.length)) > 0) return true;
      bits.set(heap.words(at, bits.length));
      return false;
    },
    accept: (token) => checked(exports.wherry_grammars_accept(mask, token)) > 0,
    forced(most) {
      const at = room(most * 4);
      return heap.ints(at, checked(exports.wherry_grammars_forced(mask, at, most))).slice();
    },
    release() {
      exports.wherry_grammars_release(mask);
      exports.wherry_page_free(place);
    },
  };
}
