import type { ToolCall } from "../request/types.js";
import { isObject } from "../text/tokenizer.js";
import { BEGIN, END } from "./written_calls.js";

/** What some text of an answer comes to. */
export interface Read {
  readonly text: string;
  readonly calls: readonly ToolCall[];
}

/**
 * Tells text from calls, as it comes. What may be the beginning of a mark waits; a call is given out
 * when it is complete. What stands between marks and is no call stays text; blanks round calls are
 * nobody's, but for what keeps the words before a call from those after it.
 */
export class CallReader {
  /** Calls so far. */
  count = 0;
  readonly #several: boolean;
  #waiting = "";
  #called = false; // since the last text
  #spoke = false;
  #gap = ""; // blanks before or between calls

  /** @param several whether more than the first call counts. */
  constructor(several: boolean) {
    this.#several = several;
  }

  /** @param last whether no more text follows. */
  push(piece: string, last: boolean): Read {
    this.#waiting += piece;
    let text = "";
    const calls: ToolCall[] = [];
    for (let next = this.#next(last); next !== undefined; next = this.#next(last)) {
      if (typeof next === "string") text += this.#said(next);
      else if (this.#several || this.count === 0) {
        calls.push(next);
        this.count += 1;
      }
      if (typeof next !== "string") this.#called = true;
    }
    return { text: last && this.count > 0 ? text.trimEnd() : text, calls };
  }

  /** The next text or call; undefined: nothing, or nothing that is sure yet. */
  #next(last: boolean): string | ToolCall | undefined {
    const begin = this.#waiting.indexOf(BEGIN);
    if (begin < 0) return this.#take(this.#waiting.length - (last ? 0 : this.#doubtful()));
    const before = this.#waiting.slice(0, begin).trimEnd().length;
    if (before > 0) return this.#take(before);
    const end = this.#waiting.indexOf(END);
    if (end < 0 && !last) return undefined;
    const whole = this.#take(end < 0 ? this.#waiting.length : end + END.length) ?? "";
    const inside = whole.slice(begin + BEGIN.length, end < 0 ? undefined : end);
    const call = callOf(inside);
    if (call) this.#gap ||= whole.slice(0, begin);
    return call ?? whole;
  }

  #take(length: number): string | undefined {
    const taken = this.#waiting.slice(0, length);
    this.#waiting = this.#waiting.slice(length);
    return taken === "" ? undefined : taken;
  }

  #said(text: string): string {
    const words = this.#called ? text.trimStart() : text;
    if (words === "") return "";
    const gap = this.#gap || text.slice(0, text.length - words.length);
    const said = this.#called && this.#spoke ? gap + words : words;
    [this.#called, this.#spoke, this.#gap] = [false, true, ""];
    return said;
  }

  /** Characters at the end that may begin a mark, and the blanks before them. */
  #doubtful(): number {
    const { length } = this.#waiting;
    let sure = length;
    for (let n = Math.min(BEGIN.length - 1, length); n > 0 && sure === length; n -= 1) {
      if (BEGIN.startsWith(this.#waiting.slice(length - n))) sure = length - n;
    }
    return length - this.#waiting.slice(0, sure).trimEnd().length;
  }
}

function callOf(text: string): ToolCall | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value) || typeof value["name"] !== "string") return undefined;
  const given = value["arguments"] ?? value["parameters"] ?? {};
  const arguments_ = typeof given === "string" ? given : JSON.stringify(given);
  return {
    id: newId(),
    type: "function",
    function: { name: value["name"], arguments: arguments_ },
  };
}

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `call_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
