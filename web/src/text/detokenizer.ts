/**
 * Token ids to text, one token at a time, without ever cutting a character. The pieces joined are
 * the text of all tokens decoded together; what was handed out is never taken back.
 */
import type { TokenBytes } from "./token_bytes.js";
import type { Tokenizer } from "./tokenizer.js";
import { Utf8Stream } from "./utf8_stream.js";

const REPLACEMENT = "\uFFFD";
const TAIL = 16; // tokens of a prompt that can bear on what follows: more than any character's bytes
const PENDING = 16; // tokens held for a character before they are given out as they are

/** Text of a growing list of tokens. */
export interface Detokenizer {
  /** The text that this token completes; "" while a character is unfinished. */
  push(token: number): string;
  /** What is left at the end: U+FFFD for an unfinished character. */
  flush(): string;
}

/**
 * A detokenizer for one output.
 *
 * @param prompt ids that the text continues: its pieces are then what follows the prompt's text, a
 *   leading space included. Empty if the output is a text of its own.
 */
export function detokenizer(tokenizer: Tokenizer, prompt: readonly number[] = []): Detokenizer {
  const tail = prompt
    .slice(-4 * TAIL)
    .filter((id) => tokenizer.isText(id))
    .slice(-TAIL);
  const rule = tokenizer.tokenBytes;
  if (rule) return new ByBytes(tokenizer, rule, tail, prompt.length <= TAIL);
  return new InContext(tokenizer, tail);
}

/** Joins the bytes of tokens and decodes UTF-8 as it comes. */
class ByBytes implements Detokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #rule: TokenBytes;
  readonly #utf8: Utf8Stream;
  #strip: number; // spaces that the beginning of the text may still lose

  constructor(tokenizer: Tokenizer, rule: TokenBytes, tail: readonly number[], whole: boolean) {
    this.#tokenizer = tokenizer;
    this.#rule = rule;
    this.#utf8 = new Utf8Stream(rule);
    this.#strip = rule.strip;
    for (const token of tail) {
      this.push(token);
      if (!whole) this.#strip = 0; // the prompt's beginning lies before its tail
    }
  }

  push(token: number): string {
    const name = this.#tokenizer.name(token);
    if (name === undefined || this.#tokenizer.specialIds.has(token)) return "";
    return this.#start(this.#utf8.push(this.#rule.of(name)));
  }

  flush(): string {
    return this.#start(this.#utf8.flush());
  }

  #start(text: string): string {
    let at = 0;
    while (this.#strip > 0 && at < text.length) {
      if (text[at] === " ") {
        at += 1;
        this.#strip -= 1;
      } else {
        this.#strip = 0;
      }
    }
    return text.slice(at);
  }
}

/**
 * Asks the library for the text of a few tokens with and without the new ones. The context is what
 * was given out last, so a decoder sees the neighbours that it needs, and the work of a token does
 * not grow with the text.
 */
class InContext implements Detokenizer {
  readonly #tokenizer: Tokenizer;
  #context: number[];
  #pending: number[] = [];

  constructor(tokenizer: Tokenizer, tail: number[]) {
    this.#tokenizer = tokenizer;
    this.#context = tail;
  }

  push(token: number): string {
    if (!this.#tokenizer.isText(token)) return "";
    this.#pending.push(token);
    const text = this.#newText();
    const full = this.#pending.length === PENDING;
    if (text.endsWith(REPLACEMENT) && !full) return "";
    if (text || full) {
      this.#context = [...this.#context, ...this.#pending].slice(-TAIL);
      this.#pending = [];
    }
    return text;
  }

  flush(): string {
    const text = this.#pending.length > 0 ? this.#newText() : "";
    this.#pending = [];
    return text;
  }

  #newText(): string {
    const before = this.#tokenizer.decode(this.#context).replace(/\uFFFD+$/, "");
    const after = this.#tokenizer.decode([...this.#context, ...this.#pending]);
    return after.startsWith(before) ? after.slice(before.length) : after;
  }
}
