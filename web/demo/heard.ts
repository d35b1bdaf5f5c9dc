import type { ChatCompletionChunk, Timings, Usage } from "../src/index.js";
import { duration, speed } from "./format.js";

/** Collects facts from an answer's chunks, apart from its text: speed, tokens, end. */
export class Heard {
  finish: string | null = null;
  #usage: Usage | undefined;
  #timings: Timings | undefined;
  #first: number | undefined; // time of the first chunk in milliseconds

  take(chunk: ChatCompletionChunk, at: number): string {
    this.#usage = chunk.usage ?? this.#usage;
    this.#timings = chunk.timings ?? this.#timings;
    const [choice] = chunk.choices;
    this.finish = choice?.finish_reason ?? this.finish;
    const text = choice?.delta.content ?? "";
    if (text) this.#first ??= at;
    return text;
  }

  get speed(): number | undefined {
    return this.#timings?.predicted_per_second;
  }

  get note(): string {
    const words: string[] = [];
    if (this.#usage) words.push(`${this.#usage.completion_tokens} tokens`);
    if (this.speed) words.push(speed(this.speed));
    if (this.#first !== undefined) words.push(`first after ${duration(this.#first)}`);
    const cached = this.#usage?.prompt_tokens_details.cached_tokens ?? 0;
    if (cached > 0) words.push(`${cached} tokens from the cache`);
    if (this.finish === "length") words.push("cut off: no tokens left");
    if (this.finish === "stopped") words.push("stopped");
    return words.join(" · ");
  }
}
