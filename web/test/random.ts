/** Random numbers that are the same in every run: xorshift32. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2654435761 || 1;
  }

  /** Return a random integer from 0 up to, but below, `limit`. */
  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }

  bytes(length: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length }, () => this.below(256));
  }
}
