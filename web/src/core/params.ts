import type { CoreMask } from "./masks.js";
import type { Instance } from "./instance.js";
import type { Arguments, Heap } from "./memory.js";
import { PARAMS } from "./records.js";

/**
 * The settings of one request; names and meaning as in the C struct wherry_params of
 * engine/include/wherry.h.
 */
export interface CoreParams {
  maxTokens: number;
  minTokens: number;
  stopIds: readonly number[];
  temperature: number;
  dynamicRange: number;
  dynamicExponent: number;
  topP: number;
  topK: number;
  minP: number;
  typicalP: number;
  topNSigma: number;
  xtcProbability: number;
  xtcThreshold: number;
  mirostatTau: number;
  mirostatEta: number;
  repetitionPenalty: number;
  presencePenalty: number;
  frequencyPenalty: number;
  dryMultiplier: number;
  dryBase: number;
  dryAllowedLength: number;
  dryRange: number;
  dryBreakers: readonly number[];
  seed: number | bigint;
  /** Maps a token id to the value added to its logit; -Infinity forbids the token. */
  bias: ReadonlyMap<number, number>;
  /** Ids of the only tokens that may be sampled; empty: all may. */
  allowed: readonly number[];
  badWords: readonly (readonly number[])[];
  topLogprobs: number;
  promptLogprobs: number;
  priority: number;
  user: number | bigint;
  salt: number | bigint;
  adapter: number;
  maxDrafts: number;
  prediction: readonly number[];
  embed: boolean;
  source: readonly number[];
}

/** Fields that are a single number, by their names in C. */
const NUMBERS = {
  maxTokens: "max_tokens",
  minTokens: "min_tokens",
  temperature: "temperature",
  dynamicRange: "dynamic_range",
  dynamicExponent: "dynamic_exponent",
  topP: "top_p",
  topK: "top_k",
  minP: "min_p",
  typicalP: "typical_p",
  topNSigma: "top_n_sigma",
  xtcProbability: "xtc_probability",
  xtcThreshold: "xtc_threshold",
  mirostatTau: "mirostat_tau",
  mirostatEta: "mirostat_eta",
  repetitionPenalty: "repetition_penalty",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  dryMultiplier: "dry_multiplier",
  dryBase: "dry_base",
  dryAllowedLength: "dry_allowed_length",
  dryRange: "dry_range",
  seed: "seed",
  topLogprobs: "top_logprobs",
  promptLogprobs: "prompt_logprobs",
  priority: "priority",
  user: "user",
  salt: "salt",
  adapter: "adapter",
  maxDrafts: "max_drafts",
} as const;
type NumberField = keyof typeof NUMBERS;

/** Fields that are lists of token ids, which C stores as pointer and length. */
const LISTS = {
  stopIds: ["stop_ids", "n_stop_ids"],
  dryBreakers: ["dry_breakers", "n_dry_breakers"],
  allowed: ["allowed", "n_allowed"],
  prediction: ["prediction", "n_prediction"],
  source: ["source", "n_source"],
} as const;
type ListField = keyof typeof LISTS;

export function defaultParams(instance: Instance): CoreParams {
  return instance.with((args) => {
    const record = args.block(PARAMS.bytes);
    instance.exports.wherry_params_init(record);
    const view = instance.heap.view();
    const numbers = {} as Record<NumberField, number>;
    for (const field of Object.keys(NUMBERS) as NumberField[]) {
      numbers[field] = PARAMS.get(view, record, NUMBERS[field]);
    }
    return {
      ...numbers,
      stopIds: [],
      dryBreakers: [],
      bias: new Map(),
      allowed: [],
      badWords: [],
      prediction: [],
      embed: false,
      source: [],
    };
  });
}

/** Write `params` as a C struct and return its address, valid as long as `args`. */
export function writeParams(
  instance: Instance,
  args: Arguments,
  params: CoreParams,
  mask: CoreMask | undefined,
): number {
  const lists = Object.entries(LISTS).map(([field, [pointer, length]]) => {
    const values = params[field as ListField];
    return { pointer, length, at: values.length > 0 ? args.ints(values) : 0, n: values.length };
  });
  const biasIds = params.bias.size > 0 ? args.ints([...params.bias.keys()]) : 0;
  const biasValues = params.bias.size > 0 ? args.floats([...params.bias.values()]) : 0;
  const badWords = params.badWords.length > 0 ? args.ints(params.badWords.flat()) : 0;
  const lengths = params.badWords.length > 0 ? args.ints(params.badWords.map((w) => w.length)) : 0;
  // allocated after all other blocks, which may have grown the memory
  const record = args.block(PARAMS.bytes);
  instance.exports.wherry_params_init(record);
  const maskAt = mask ? instance.exports.wherry_page_mask(instance.masks.add(mask)) : 0;

  const view = instance.heap.view();
  const set = (name: string, value: number | bigint): void =>
    PARAMS.set(view, record, name, value);
  for (const field of Object.keys(NUMBERS) as NumberField[]) set(NUMBERS[field], params[field]);
  for (const { pointer, length, at, n } of lists) {
    set(pointer, at);
    set(length, n);
  }
  set("bias_ids", biasIds);
  set("bias_values", biasValues);
  set("n_bias", params.bias.size);
  set("bad_words", badWords);
  set("bad_word_lengths", lengths);
  set("n_bad_words", params.badWords.length);
  set("mask", maskAt);
  set("embed", params.embed ? 1 : 0);
  return record;
}

/** Read a C struct that another module has written; its masks are not read. */
export function readParams(heap: Heap, record: number): CoreParams {
  const view = heap.view();
  const get = (name: string): number => PARAMS.get(view, record, name);
  const list = (pointer: string, length: string): number[] =>
    get(length) > 0 ? [...heap.ints(get(pointer), get(length))] : [];
  const numbers = {} as Record<NumberField, number>;
  for (const field of Object.keys(NUMBERS) as NumberField[]) numbers[field] = get(NUMBERS[field]);
  const lists = {} as Record<ListField, number[]>;
  for (const [field, [pointer, length]] of Object.entries(LISTS)) {
    lists[field as ListField] = list(pointer, length);
  }
  const values = heap.floats(get("bias_values"), get("n_bias"));
  const lengths = list("bad_word_lengths", "n_bad_words");
  let at = get("bad_words");
  return {
    ...numbers,
    ...lists,
    seed: PARAMS.exact(view, record, "seed"),
    user: PARAMS.exact(view, record, "user"),
    salt: PARAMS.exact(view, record, "salt"),
    bias: new Map(list("bias_ids", "n_bias").map((id, k) => [id, values[k] ?? 0])),
    badWords: lengths.map((length) => {
      const word = [...heap.ints(at, length)];
      at += 4 * length;
      return word;
    }),
    embed: get("embed") !== 0,
  };
}
