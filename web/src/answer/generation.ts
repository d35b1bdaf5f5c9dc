import type { CoreEvent } from "../core/core.js";
import type { Plan } from "../request/plan.js";
import type { Timings, Usage } from "../request/types.js";
import { StopAutomaton } from "../text/stop_strings.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { Choice, type Delta } from "./choice.js";

/** One request under way: all its choices, from the core's events to pieces of text. */
export class Generation {
  readonly plan: Plan;
  readonly #choices: readonly Choice[];

  constructor(plan: Plan, tokenizer: Tokenizer) {
    this.plan = plan;
    const stops = new StopAutomaton(plan.stops);
    this.#choices = plan.params.map((_, index) => new Choice(index, plan, tokenizer, stops));
  }

  /** Whether every choice has ended. */
  get done(): boolean {
    return this.#choices.every((choice) => choice.finish !== null);
  }

  /**
   * What an event adds to a choice; undefined for one that has ended.
   *
   * @throws WherryError if the core gave the request up.
   */
  push(index: number, event: CoreEvent): (Delta & { mustAbort: boolean }) | undefined {
    const choice = this.#choices[index];
    if (choice?.finish !== null) return undefined; // also where there is none
    return { ...choice.push(event), mustAbort: choice.mustAbort };
  }

  /** Tokens so far; a stop token that was sampled counts, the prompt of all choices once. */
  get usage(): Usage {
    const sampled = this.#sum((choice) => choice.sampled);
    const drafted = this.#sum((choice) => choice.last?.draftedTokens ?? 0);
    const accepted = this.#sum((choice) => choice.last?.acceptedTokens ?? 0);
    const prompt = this.plan.prompt.length;
    return {
      prompt_tokens: prompt,
      completion_tokens: sampled,
      total_tokens: prompt + sampled,
      prompt_tokens_details: { cached_tokens: this.#cached },
      completion_tokens_details: {
        accepted_prediction_tokens: accepted,
        rejected_prediction_tokens: drafted - accepted,
      },
    };
  }

  /** Times so far; of several choices the longest. */
  get timings(): Timings {
    const longest = (of: (event: CoreEvent) => number): number =>
      Math.max(0, ...this.#choices.map(({ last }) => (last ? of(last) : 0)));
    const prompt = longest((event) => event.prefillSeconds);
    const output = longest((event) => event.decodeSeconds);
    const computed = this.plan.prompt.length - this.#cached;
    const sampled = this.#sum((choice) => choice.sampled);
    return {
      queue_ms: 1e3 * longest((event) => event.queueSeconds),
      cache_n: this.#cached,
      prompt_n: computed,
      prompt_ms: 1e3 * prompt,
      prompt_per_second: prompt > 0 ? computed / prompt : 0,
      predicted_n: sampled,
      predicted_ms: 1e3 * output,
      predicted_per_second: output > 0 ? sampled / output : 0,
    };
  }

  /** Of the choices the first computed what the others found. */
  get #cached(): number {
    return this.#choices[0]?.last?.cachedTokens ?? 0;
  }

  #sum(of: (choice: Choice) => number): number {
    return this.#choices.reduce((sum, choice) => sum + of(choice), 0);
  }
}
