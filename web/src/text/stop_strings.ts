/**
 * Stop strings, found across the borders of tokens, in time that does not grow with their number:
 * the automaton of Aho and Corasick ("Efficient string matching", 1975) over UTF-16 units.
 */

/** A beginning of stop strings. */
interface State {
  /** Units that it has. */
  readonly depth: number;
  readonly next: Map<string, State>;
  /** Of its proper ends, the longest that is a beginning too. */
  fail: State | undefined;
  /** Length of the longest stop string that ends here; 0 if none does. */
  ends: number;
}

/** The stop strings of a request; its choices share it. */
export class StopAutomaton {
  readonly start: State = newState(0);

  constructor(stops: readonly string[]) {
    for (const stop of stops) this.#insert(stop);
    this.#link();
  }

  /** The state for the longest beginning at the end of the text, one unit later. */
  after(state: State, unit: string): State {
    for (let at: State | undefined = state; at; at = at.fail) {
      const found = at.next.get(unit);
      if (found) return found;
    }
    return this.start;
  }

  #insert(stop: string): void {
    let at = this.start;
    for (const unit of stop.split("")) {
      let next = at.next.get(unit);
      if (!next) at.next.set(unit, (next = newState(at.depth + 1)));
      at = next;
    }
    at.ends = at.depth;
  }

  /** Breadth first: the states that a state fails to are shorter, and done. */
  #link(): void {
    const queue = [this.start];
    for (const state of queue) {
      for (const [unit, child] of state.next) {
        child.fail = state.fail ? this.after(state.fail, unit) : this.start;
        child.ends ||= child.fail.ends;
        queue.push(child);
      }
    }
  }
}

function newState(depth: number): State {
  return { depth, next: new Map(), fail: undefined, ends: 0 };
}

/**
 * Passes a text through until a stop string is complete.
 *
 * Text that may be the beginning of one is held back. Of several stop strings the one that is
 * complete first counts (the longest of those that end at the same place), so the result does not
 * depend on how the text was cut.
 */
export class StopStrings {
  /** The stop string that ended the text; undefined if none has. */
  found: string | undefined;
  readonly #automaton: StopAutomaton;
  #state: State;
  #held = "";

  constructor(automaton: StopAutomaton) {
    this.#automaton = automaton;
    this.#state = automaton.start;
  }

  /** Whether one was found; what follows it is not wanted. */
  get stopped(): boolean {
    return this.found !== undefined;
  }

  /** Text that is certain to belong to the output; "" once stopped. */
  push(piece: string): string {
    if (this.stopped) return "";
    const text = this.#held + piece;
    for (let i = this.#held.length; i < text.length; i += 1) {
      this.#state = this.#automaton.after(this.#state, text.charAt(i));
      const { ends } = this.#state;
      if (ends > 0) {
        this.#held = "";
        this.found = text.slice(i + 1 - ends, i + 1);
        return text.slice(0, i + 1 - ends);
      }
    }
    const certain = text.length - this.#state.depth;
    this.#held = text.slice(certain);
    return text.slice(0, certain);
  }

  /** What was held back, at the end of the text. */
  flush(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }
}
