import type { Heap } from "./memory.js";
import { reasonOf } from "./errors.js";

/**
 * The tokens that may come next in one request, for example those that a grammar's matcher allows.
 */
export interface CoreMask {
  /**
   * Set bit t % 32 of bits[t / 32], whose bits are 0 at the call, for each token t that may come
   * next; or return true if all tokens may come next.
   */
  fill(bits: Uint32Array): boolean | void;
  /** Note that a token has been sampled; return true if the output must end with it. */
  accept(token: number): boolean | void;
  /** Return at most `most` tokens that must come next whatever the model's logits are. */
  forced?(most: number): ArrayLike<number>;
  /** Free the mask, because its request has ended. */
  release?(): void;
}

/** The masks of an instance's requests, identified by the numbers that the core uses. */
export class Masks {
  private readonly masks = new Map<number, CoreMask>();
  private next = 1;
  private reason = "";

  constructor(private readonly heap: () => Heap) {}

  add(mask: CoreMask): number {
    this.masks.set(this.next, mask);
    return this.next++;
  }

  /**
   * Return the imports that web/core/page.cc declares; they must not throw through the instance.
   */
  imports(): WebAssembly.ModuleImports {
    return {
      fill: (id: number, bits: number, words: number) =>
        this.guard(() => (this.of(id).fill(this.heap().words(bits, words).fill(0)) === true ? 1 : 0)),
      accept: (id: number, token: number) =>
        this.guard(() => (this.of(id).accept(token) === true ? 1 : 0)),
      forced: (id: number, tokens: number, cap: number) =>
        this.guard(() => {
          const ids = Array.from(this.of(id).forced?.(cap) ?? []).slice(0, cap);
          this.heap().ints(tokens, ids.length).set(ids);
          return ids.length;
        }),
      error: (_id: number, text: number, cap: number) =>
        this.heap().writeText(this.reason, text, cap),
      release: (id: number) => {
        this.guard(() => {
          const mask = this.of(id);
          this.masks.delete(id);
          mask.release?.();
          return 0;
        });
      },
    };
  }

  private of(id: number): CoreMask {
    const mask = this.masks.get(id);
    if (mask === undefined) throw new RangeError(`no mask ${id}`);
    return mask;
  }

  private guard(call: () => number): number {
    try {
      return call();
    } catch (thrown) {
      this.reason = reasonOf(thrown);
      return -1;
    }
  }
}
