/** Runs several conversations at once, to show the engine's batching at work. */
import { AbortedError, type Engine, type Timings } from "../src/index.js";
import { element } from "./dom.js";
import { speed } from "./format.js";

const PROMPTS = [
  "Tell me a story about a fox.",
  "Tell me a story about a brave mouse.",
  "Write a poem about the sea.",
  "Tell me a story about a lighthouse.",
  "Count from one to twenty.",
  "Tell me a story about two friends.",
  "What are the days of the week?",
  "Tell me a story about a lost key.",
];
/** The system prompt that all conversations share, so that the engine computes it once. */
const SYSTEM = "You are a friendly helper. You answer in short and simple sentences.";
const MAX_TOKENS = 160;

/** Runs conversations until it is stopped: as soon as one ends, the next one begins. */
export class Crowd {
  readonly #engine: Engine;
  readonly #list: HTMLElement;
  #controller: AbortController | undefined;
  #next = 0;

  constructor(engine: Engine, list: HTMLElement) {
    this.#engine = engine;
    this.#list = list;
  }

  get running(): boolean {
    return this.#controller !== undefined;
  }

  /** Start this number of conversations. */
  start(size: number): void {
    this.stop();
    const controller = (this.#controller = new AbortController());
    const lanes = Array.from({ length: size }, () => new Lane());
    this.#list.replaceChildren(...lanes.map(({ item }) => item));
    for (const lane of lanes) void this.#converse(lane, controller.signal);
  }

  stop(): void {
    this.#controller?.abort();
    this.#controller = undefined;
  }

  async #converse(lane: Lane, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const prompt = PROMPTS[this.#next++ % PROMPTS.length] ?? "";
      try {
        await this.#say(lane, prompt, signal);
      } catch (error) {
        if (error instanceof AbortedError) lane.show("stopped", "stopped");
        else lane.fail(error instanceof Error ? error.message : String(error));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 600));
    }
  }

  async #say(lane: Lane, prompt: string, signal: AbortSignal): Promise<void> {
    lane.begin(prompt);
    const messages = [
      { role: "system" as const, content: SYSTEM },
      { role: "user" as const, content: prompt },
    ];
    const options = { stream_options: { include_usage: true }, max_tokens: MAX_TOKENS };
    const answer = await this.#engine.chat.completions.create(
      { messages, stream: true, ...options },
      { signal },
    );
    for await (const { choices, timings } of answer) {
      lane.add(choices[0]?.delta.content ?? "");
      if (timings) lane.end(timings);
    }
  }
}

/** One conversation of the crowd, and the card that shows it. */
class Lane {
  readonly item: HTMLLIElement;
  readonly #state = element("span", { class: "state" });
  readonly #count = element("span");
  readonly #prompt = element("div", { class: "asked" });
  readonly #text = element("span");
  #tokens = 0;
  #started = 0;

  constructor() {
    const top = element("div", { class: "top" }, this.#state, this.#count);
    const text = element("p", { class: "text" }, this.#text);
    this.item = element("li", { class: "lane" }, top, this.#prompt, text);
  }

  begin(prompt: string): void {
    this.#prompt.textContent = prompt;
    this.#text.textContent = "";
    this.#tokens = 0;
    this.#count.textContent = "";
    this.show("waiting", "reads");
  }

  add(text: string): void {
    if (!text) return;
    if (this.#tokens === 0) this.#started = performance.now();
    this.#text.append(text);
    this.#tokens += 1;
    this.#count.textContent = `${this.#tokens} tokens`;
    const seconds = (performance.now() - this.#started) / 1000;
    this.show("writing", seconds > 0.3 ? speed((this.#tokens - 1) / seconds) : "writes");
  }

  end({ predicted_n: written, predicted_per_second: rate, cache_n: cached }: Timings): void {
    this.#count.textContent = `${written} tokens, ${cached} cached`;
    this.show("done", speed(rate));
  }

  fail(reason: string): void {
    this.#text.textContent = reason;
    this.show("failed", "failed");
  }

  show(kind: string, words: string): void {
    this.item.className = `lane ${kind}`;
    this.#state.textContent = words;
  }
}
