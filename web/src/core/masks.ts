import type { Heap } from "./memory.js";
import { reasonOf } from "./errors.js";

/** Which tokens may come next in one request: a grammar's matcher, say. */
export interface CoreMask {
  /** Sets bit t % 32 of bits[t / 32], all 0, for each token t that may come; or true: all may. */
  fill(bits: Uint32Array): boolean | void;
  /** The token has been sampled; true: the output must end here. */
  accept(token: number): boolean | void;
  /** Tokens that must come next whatever the model says, at most `most`. */
  forced?(most: number): ArrayLike<number>;
  /** The request is over. */
  release?(): void;
}

/** The masks of an instance's requests, by the numbers that it knows them by. */
export class Masks {
  private readonly masks = new Map<number, CoreMask>();
  private next = 1;
  private reason = "";

  constructor(private readonly heap: () => Heap) {}

  add(mask: CoreMask): number {
    this.masks.set(this.next, mask);
    return this.next++;
  }

  /** The imports of web/core/page.cc. Nothing may be thrown through the instance. */
  imports(): WebAssembly.ModuleImports {
    return {
      fill: (id: number, bits: number, words: number) =>
        this.guard(() => (this.of(id).fill(this.heap().words(bits, words).fill(0)) === true ? 1 : 0)),
      accept: (id: number, token: number) =>
        this.guard(() => (this.of(id).accept(token) === true ? 1 : 0)),
      forced: (id: number, tokens: number, cap: number) =>
        this.guard(() => {
          const found = Array.from(this.of(id).forced?.(cap) ?? []).slice(0, cap);
          this.heap().ints(tokens, found.length).set(found);
          return found.length;
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
