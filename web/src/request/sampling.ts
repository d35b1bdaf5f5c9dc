import type { CoreParams } from "../core/core.js";
import { RequestError } from "../errors.js";
import type { JsonObject } from "../text/tokenizer.js";
import type { SamplingParams } from "./types.js";

const MAX_BIASES = 4096;
const SEED_STEP = 0x9e3779b97f4a7c15n; // odd, so that the seeds of `n` choices differ

interface Range {
  readonly least: number;
  readonly most: number;
  readonly above?: boolean; // whether `least` itself is too little
  readonly below?: boolean; // whether `most` itself is too much
  readonly whole?: boolean;
}

const RANGES: Readonly<Partial<Record<keyof SamplingParams, Range>>> = {
  temperature: { least: 0, most: 2 },
  top_p: { least: 0, most: 1, above: true },
  top_k: { least: -1, most: 2 ** 31 - 1, whole: true },
  min_p: { least: 0, most: 1, below: true },
  typical_p: { least: 0, most: 1, above: true },
  presence_penalty: { least: -2, most: 2 },
  frequency_penalty: { least: -2, most: 2 },
  repetition_penalty: { least: 0, most: 10, above: true },
  min_tokens: { least: 0, most: 2 ** 31 - 1, whole: true },
};

/**
 * How tokens are chosen, as the core takes it.
 *
 * @param defaults generation_config.json. Its temperature, top_p, top_k, min_p and typical_p hold
 *   unless it says `"do_sample": false`; its repetition_penalty always does.
 * @throws RequestError if a field is out of its range.
 */
export function samplingParams(
  asked: SamplingParams,
  defaults: JsonObject,
  vocabSize: number,
): Partial<CoreParams> {
  for (const [name, range] of Object.entries(RANGES)) {
    checkRange(name, asked[name as keyof SamplingParams], range);
  }
  const sampled = defaults["do_sample"] === false ? {} : defaults;
  const choose = (name: keyof SamplingParams, from: JsonObject, fallback: number): number =>
    Number(asked[name] ?? from[name] ?? fallback);
  return {
    temperature: choose("temperature", sampled, 1),
    topP: choose("top_p", sampled, 1),
    topK: Math.max(choose("top_k", sampled, 0), 0),
    minP: choose("min_p", sampled, 0),
    typicalP: choose("typical_p", sampled, 1),
    repetitionPenalty: choose("repetition_penalty", defaults, 1),
    presencePenalty: asked.presence_penalty ?? 0,
    frequencyPenalty: asked.frequency_penalty ?? 0,
    minTokens: asked.min_tokens ?? 0,
    bias: biasOf(asked.logit_bias ?? {}, vocabSize),
  };
}

/** @throws RequestError if a seed is no whole number of 64 bits. */
export function checkSeed(seed: unknown): void {
  if (seed == null) return;
  const whole = typeof seed === "bigint" || Number.isInteger(seed) ? BigInt(seed as number) : null;
  if (whole !== null && whole >= -(2n ** 63n) && whole < 2n ** 64n) return;
  throw new RequestError(
    `seed is ${typeof seed === "bigint" ? seed : JSON.stringify(seed)}; it takes a whole number from ` +
      "-2^63 to 2^64 - 1",
    { param: "seed" },
  );
}

/** The seed of a choice, as Python's engine gives it: the same numbers, the same tokens. */
export function seedOf(seed: number | bigint, choice: number): bigint {
  return BigInt.asUintN(64, BigInt(seed) + BigInt(choice) * SEED_STEP);
}

/** A seed for a request that has none. */
export function randomSeed(): bigint {
  return crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
}

/** @throws RequestError if a number is none, or out of its range. */
export function checkRange(name: string, value: unknown, range: Range): void {
  if (value == null) return;
  const { least, most, above = false, below = false, whole = false } = range;
  const fits =
    typeof value === "number" &&
    (above ? value > least : value >= least) &&
    (below ? value < most : value <= most) &&
    (!whole || Number.isInteger(value));
  if (fits) return;
  const found = typeof value === "number" ? String(value) : JSON.stringify(value);
  const kind = whole ? "a whole number" : "a number";
  throw new RequestError(
    `${name} is ${found}; it takes ${kind} ${above ? "above" : "from"} ${least} ` +
      `${below ? "and below" : "to"} ${most}`,
    { param: name },
  );
}

function biasOf(
  asked: Readonly<Record<string, number>>,
  vocabSize: number,
): ReadonlyMap<number, number> {
  const ids = Object.keys(asked).map(Number);
  if (ids.length > MAX_BIASES) {
    throw new RequestError(`logit_bias has ${ids.length} tokens; at most ${MAX_BIASES} are read`, {
      param: "logit_bias",
    });
  }
  const unknown = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
  if (unknown !== undefined) {
    throw new RequestError(`logit_bias names token ${unknown}; ids go from 0 to ${vocabSize - 1}`, {
      param: "logit_bias",
    });
  }
  for (const value of Object.values(asked)) {
    checkRange("logit_bias", value, { least: -100, most: 100 });
  }
  return new Map(Object.entries(asked).map(([id, value]) => [Number(id), value]));
}
