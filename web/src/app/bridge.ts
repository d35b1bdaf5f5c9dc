import type { CoreMask } from "../core/core.js";
import { reasonOf } from "../core/errors.js";
import type { Heap } from "../core/memory.js";
import { readParams } from "../core/params.js";
import { PARAMS } from "../core/records.js";
import type { AppCore, Heard } from "./app.js";

const FAILED = -6; // WHERRY_INTERNAL

/** What the app asks of the script: web/app/script.h. Nothing may be thrown through the module. */
export class Bridge {
  readonly heard = new Map<number, Heard>(); // by the number of a request
  /** Requests whose grammars are being compiled, by the app's ids. */
  readonly compiling = new Map<bigint, Promise<void>>();
  next = 1;
  mask: ((grammar: number, stopIds: readonly number[]) => CoreMask) | undefined;
  compile: ((waiter: bigint, packed: Uint8Array) => Promise<void>) | undefined;
  readonly #core: AppCore;
  #thrown: unknown; // by the core, until its request is told

  constructor(core: AppCore) {
    this.#core = core;
  }

  imports(heap: () => Heap): WebAssembly.ModuleImports {
    return {
      add: (id: bigint, tokens: number, n: number, record: number) => {
        try {
          const params = readParams(heap(), record);
          const mask = this.#maskOf(heap(), record, params.stopIds);
          this.#core.add(Number(id), heap().ints(tokens, n).slice(), params, mask);
          return 0;
        } catch (error) {
          this.#thrown = error;
          return FAILED;
        }
      },
      abort: (id: bigint) => {
        this.#core.abort(Number(id));
      },
      error: (text: number, cap: number) => heap().writeText(reasonOf(this.#thrown), text, cap),
      chunk: (number: number, json: number, n: number, last: number) => {
        const heard = this.heard.get(number);
        const thrown = last === 0 ? undefined : this.#thrown;
        if (last !== 0) {
          this.heard.delete(number);
          this.#thrown = undefined;
        }
        heard?.(heap().textOf(json, n), last !== 0, thrown);
      },
      compile: (waiter: bigint, packed: number, n: number) => {
        // In a task of its own: the app is in the middle of the request.
        const done = Promise.resolve(heap().bytes(packed, n).slice())
          .then((bytes) => this.compile?.(waiter, bytes))
          .finally(() => this.compiling.delete(waiter));
        this.compiling.set(waiter, done);
      },
    };
  }

  #maskOf(heap: Heap, record: number, stopIds: readonly number[]): CoreMask | undefined {
    const mask = PARAMS.get(heap.view(), record, "mask");
    if (mask === 0) return undefined;
    const grammar = heap.view().getUint32(mask + 4, true); // wherry_mask.context
    return this.mask?.(grammar, stopIds);
  }
}
