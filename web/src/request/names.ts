import { RequestError } from "../errors.js";
import type { ChatRequest, CompletionRequest, RequestParams } from "./types.js";

type Known<Request> = Readonly<Record<keyof Request, true>>;

const SHARED: Known<RequestParams> = {
  ...{ temperature: true, top_p: true, top_k: true, min_p: true, typical_p: true },
  ...{ dynatemp_range: true, dynatemp_exponent: true, top_n_sigma: true },
  ...{ xtc_probability: true, xtc_threshold: true },
  ...{ mirostat: true, mirostat_tau: true, mirostat_eta: true },
  ...{ presence_penalty: true, frequency_penalty: true, repetition_penalty: true },
  ...{ dry_multiplier: true, dry_base: true, dry_allowed_length: true, dry_penalty_last_n: true },
  ...{ dry_sequence_breakers: true, bad_words: true, allowed_token_ids: true },
  ...{ logit_bias: true, seed: true, min_tokens: true, ignore_eos: true, max_drafts: true },
  ...{ model: true, max_tokens: true, n: true, stop: true, stream: true, stream_options: true },
  ...{ response_format: true, structured_outputs: true, guided_json: true, guided_regex: true },
  ...{ guided_choice: true, guided_grammar: true, grammar: true, json_schema: true },
  ...{ cache_salt: true, user: true, safety_identifier: true, priority: true },
};
const CHAT: Known<ChatRequest> = {
  ...SHARED,
  ...{ messages: true, max_completion_tokens: true, logprobs: true, top_logprobs: true },
  ...{ tools: true, tool_choice: true, parallel_tool_calls: true, truncation: true },
  ...{ reasoning_effort: true, enable_thinking: true, reasoning_format: true },
  ...{ separate_reasoning: true, include_reasoning: true },
  ...{ chat_template_kwargs: true, add_generation_prompt: true, continue_final_message: true },
};
const COMPLETION: Known<CompletionRequest> = { ...SHARED, prompt: true, logprobs: true };
/**
 * Field names of other servers that are accepted: they change no answer, or the app explains why it
 * refuses them.
 */
const OTHERS = new Set([
  ...["metadata", "prompt_cache_key", "prompt_cache_retention", "service_tier", "store"],
  ...["verbosity", "prediction", "functions", "function_call", "modalities", "audio"],
  ...["web_search_options", "best_of", "echo", "suffix", "prompt_logprobs"],
]);

/**
 * Refuse unknown fields.
 *
 * @throws RequestError naming the field, and for a misspelt name the nearest known one.
 */
export function checkNames(kind: "chat" | "completion", request: object): void {
  const known = Object.keys(kind === "chat" ? CHAT : COMPLETION);
  const unknown = Object.entries(request).find(
    ([name, value]) => value != null && !OTHERS.has(name) && !known.includes(name),
  )?.[0];
  if (unknown === undefined) return;
  const nearest = known.toSorted((a, b) => distance(unknown, a) - distance(unknown, b))[0] ?? "";
  const near = distance(unknown, nearest) <= Math.max(1, unknown.length / 4);
  throw new RequestError(
    `There is no field ${unknown} here. ` +
      (near ? `Is it ${nearest}?` : `Fields are ${known.toSorted().join(", ")}.`),
    { param: unknown },
  );
}

/** The edit distance of two names: insertions, deletions and replacements of characters. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, k) => k);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let k = 1; k <= other.length; k += 1) {
      const same = one[i - 1] === other[k - 1] ? 0 : 1;
      next.push(Math.min((row[k - 1] ?? 0) + same, (row[k] ?? 0) + 1, (next[k - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
