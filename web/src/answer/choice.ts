import type { CoreEvent } from "../core/core.js";
import { WherryError } from "../errors.js";
import type { Plan } from "../request/plan.js";
import type { FinishReason } from "../request/types.js";
import { detokenizer, type Detokenizer } from "../text/detokenizer.js";
import { type StopAutomaton, StopStrings } from "../text/stop_strings.js";
import type { Tokenizer } from "../text/tokenizer.js";

/** A token with its log probability (natural logarithm). */
export interface LoggedToken {
  readonly piece: Uint8Array;
  readonly logprob: number;
  readonly top: readonly { piece: Uint8Array; logprob: number }[];
  /** UTF-16 units of the output before it. */
  readonly offset: number;
}

/** What some events add to one choice. */
export interface Delta {
  readonly index: number;
  readonly text: string;
  /** Of the tokens whose text is out. */
  readonly logprobs: readonly LoggedToken[];
  /** Why it ended; null while it goes on. */
  readonly finish: FinishReason | null;
}

/** The text of one choice, from the core's events. */
export class Choice {
  readonly index: number;
  /** Tokens so far, a stop token included. */
  sampled = 0;
  finish: FinishReason | null = null;
  /** The last event with a token: its times and counts are those of the choice so far. */
  last: CoreEvent | undefined;
  /** Whether it ended by a stop string, of which the core knows nothing. */
  mustAbort = false;
  readonly #tokenizer: Tokenizer;
  readonly #detokenizer: Detokenizer;
  readonly #stops: StopStrings;
  readonly #stopIds: ReadonlySet<number>;
  readonly #wantsLogprobs: boolean;
  #logged: { readonly end: number; readonly token: LoggedToken }[] = []; // not given out yet
  #decoded = 0; // UTF-16 units that came out of the detokenizer
  #given = 0; // of them, that were handed out

  constructor(index: number, plan: Plan, tokenizer: Tokenizer, stops: StopAutomaton) {
    this.index = index;
    this.#tokenizer = tokenizer;
    this.#detokenizer = detokenizer(tokenizer, plan.continues ? [...plan.prompt] : []);
    this.#stops = new StopStrings(stops);
    this.#stopIds = new Set(plan.params[index]?.stopIds);
    this.#wantsLogprobs = plan.logprobs;
  }

  /**
   * What an event adds; nothing once the choice has ended.
   *
   * @throws WherryError if the core gave the request up.
   */
  push(event: CoreEvent): Delta {
    const text = this.finish === null ? this.#accept(event) : "";
    this.#given += text.length;
    return { index: this.index, text, logprobs: this.#released(), finish: this.finish };
  }

  #accept(event: CoreEvent): string {
    if (event.finish === "error" || event.finish === "abort") {
      const reason = event.error ?? "";
      throw new WherryError("internal", reason || "The model failed while it ran this request");
    }
    let text = "";
    if (event.token >= 0) {
      this.sampled += 1;
      this.last = event;
      if (!this.#stopIds.has(event.token)) text = this.#text(event);
    }
    if (event.finish === "stop") this.finish = "stop";
    if (event.finish === "length") this.finish ??= "length";
    return text + this.#rest();
  }

  /** At the end, what was held back. */
  #rest(): string {
    if (this.finish === null || this.#stops.stopped) return "";
    const text = this.#stops.push(this.#detokenizer.flush()) + this.#stops.flush();
    if (this.#stops.found !== undefined) this.finish = "stop";
    return text;
  }

  #text(event: CoreEvent): string {
    const piece = this.#detokenizer.push(event.token);
    if (this.#wantsLogprobs) this.#log(event, piece);
    this.#decoded += piece.length;
    const text = this.#stops.push(piece);
    if (this.#stops.stopped) {
      this.finish = "stop";
      this.mustAbort = event.finish === undefined;
    }
    return text;
  }

  #log(event: CoreEvent, piece: string): void {
    const pieceOf = (id: number): Uint8Array => this.#tokenizer.piece(id);
    this.#logged.push({
      end: this.#decoded + piece.length,
      token: {
        piece: pieceOf(event.token),
        logprob: event.logprob,
        top: event.top.map(({ token, logprob }) => ({ piece: pieceOf(token), logprob })),
        offset: this.#decoded,
      },
    });
  }

  /** Tokens whose text is out: all of it, or, at the end, its beginning. */
  #released(): LoggedToken[] {
    const waiting = this.#logged.findIndex(({ end, token }) =>
      this.finish === null ? end > this.#given : this.#stops.stopped && token.offset >= this.#given,
    );
    const ready = waiting < 0 ? this.#logged : this.#logged.slice(0, waiting);
    this.#logged = waiting < 0 ? [] : this.#logged.slice(waiting);
    return ready.map(({ token }) => token);
  }
}
