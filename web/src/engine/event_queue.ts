/** Values that come one by one, for one reader that waits for them. */
export class EventQueue<T> {
  readonly #values: T[] = [];
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  push(value: T): void {
    this.#values.push(value);
    this.#wake?.();
  }

  /** What is queued is still read; then `next` throws. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  /** All values that are there, at least one. */
  async next(): Promise<T[]> {
    while (this.#values.length === 0) {
      if (this.#failure) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    return this.#values.splice(0);
  }
}
