/** A queue of values for one reader, which waits for them. */
export class EventQueue<T> {
  readonly #values: T[] = [];
  #failure: Error | undefined;
  #wake: (() => void) | undefined;

  /** Append a value; one that comes after the failure is dropped. */
  push(value: T): void {
    if (this.#failure) return;
    this.#values.push(value);
    this.#wake?.();
  }

  /** End the queue with an error: queued values are still read, then `next` throws. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  /** Wait for values, and return all that are queued, at least one. */
  async next(): Promise<T[]> {
    while (this.#values.length === 0) {
      if (this.#failure) throw this.#failure;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      this.#wake = undefined;
    }
    return this.#values.splice(0);
  }
}
