import type { CoreMask } from "../core/core.js";
import { reasonOf } from "../core/errors.js";
import type { Heap } from "../core/memory.js";
import { readParams } from "../core/params.js";
import { PARAMS } from "../core/records.js";
import type { AppCore, Heard } from "./app.js";

const FAILED = -6; // the status WHERRY_INTERNAL of wherry.h

/**
 * The functions that the app module imports, see web/app/script.h. They catch all exceptions,
 * because none may pass through the module.
 */
export class Bridge {
  /** Callbacks of running requests, by the script's number of the request. */
  readonly heard = new Map<number, Heard>();
  /** Compilations that have not finished, by the app module's id of the request. */
  readonly compiling = new Map<bigint, Promise<void>>();
  next = 1; // number of the next request
  mask: ((grammar: number, stopIds: readonly number[]) => CoreMask) | undefined;
  compile: ((waiter: bigint, packed: Uint8Array) => Promise<void>) | undefined;
  readonly #core: AppCore;
  #thrown: unknown; // exception of AppCore.add, until the request's callback has received it

  constructor(core: AppCore) {
    this.#core = core;
  }

  /** Return the import object of the module; `heap` returns the module's memory. */
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
        // Compile after this call, because the app module is still starting the request.
        const done = Promise.resolve(heap().bytes(packed, n).slice())
          .then((bytes) => this.compile?.(waiter, bytes))
          .finally(() => this.compiling.delete(waiter));
        this.compiling.set(waiter, done);
      },
    };
  }

  /** Return the mask for the grammar in a wherry_params; undefined if it has none. */
  #maskOf(heap: Heap, record: number, stopIds: readonly number[]): CoreMask | undefined {
    const mask = PARAMS.get(heap.view(), record, "mask");
    if (mask === 0) return undefined;
    const grammar = heap.view().getUint32(mask + 4, true); // field `context` of wherry_mask
    return this.mask?.(grammar, stopIds);
  }
}
