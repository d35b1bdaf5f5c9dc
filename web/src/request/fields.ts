import { RequestError } from "../errors.js";
import { isObject, type JsonObject } from "../text/tokenizer.js";
import type { ChatRequest, CompletionRequest, RequestParams } from "./types.js";

/** Fields whose neglect would change the answer; each with the values that ask for nothing. */
const MEANINGFUL: Readonly<Record<string, readonly string[]>> = {
  functions: ["[]"],
  function_call: ['"none"', '"auto"'],
  modalities: ['["text"]'],
  audio: [],
  web_search_options: [],
  best_of: ["1"],
  echo: ["false"],
  suffix: ['""'],
  prompt_logprobs: ["false"],
  guided_json: [],
  guided_regex: [],
  guided_choice: [],
  guided_grammar: [],
  structured_outputs: [],
};

type Known<Request> = Readonly<Record<keyof Request, true>>;

const SHARED: Known<RequestParams> = {
  ...{ temperature: true, top_p: true, top_k: true, min_p: true, typical_p: true },
  ...{ presence_penalty: true, frequency_penalty: true, repetition_penalty: true },
  ...{ logit_bias: true, seed: true, min_tokens: true, ignore_eos: true },
  ...{ model: true, max_tokens: true, n: true, stop: true, stream: true, stream_options: true },
  ...{ response_format: true, cache_salt: true },
};
const CHAT: Known<ChatRequest> = {
  ...SHARED,
  ...{ messages: true, max_completion_tokens: true, logprobs: true, top_logprobs: true },
  ...{ tools: true, tool_choice: true, parallel_tool_calls: true, truncation: true },
  chat_template_kwargs: true,
};
const COMPLETION: Known<CompletionRequest> = { ...SHARED, prompt: true, logprobs: true };
/** What others understand, and no answer depends on. */
const NO_EFFECT = new Set([
  ...["metadata", "prompt_cache_key", "prompt_cache_retention", "service_tier", "store"],
  ...["verbosity", "user", "safety_identifier", "priority", "max_drafts", "prediction"],
]);

/** What a field takes that is neither a number nor checked where it is read. */
const SHAPES: Readonly<Record<string, readonly [string, (value: unknown) => boolean]>> = {
  ...Object.fromEntries(["model", "cache_salt"].map((name) => [name, ["a text", isText]])),
  ...Object.fromEntries(
    ["logit_bias", "stream_options", "chat_template_kwargs"].map((name) => [
      name,
      ["an object", isObject],
    ]),
  ),
  stop: [
    "a text or a list of texts",
    (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  ],
  tools: ["a list", Array.isArray],
  truncation: ['"auto" or "disabled"', (value) => value === "auto" || value === "disabled"],
  response_format: [
    'an object with the type "text", "json_object", "json_schema" (and {"json_schema": {"schema": ' +
      '...}}) or "grammar" (and a text under "grammar")',
    isFormat,
  ],
};

/**
 * Refuse requests of the wrong shape, and fields that are not known here, but for those that no answer
 * depends on.
 *
 * @throws RequestError naming the field, and of a misspelt one the nearest.
 */
export function checkFields(kind: "chat", request: ChatRequest): void;
export function checkFields(kind: "completion", request: CompletionRequest): void;
export function checkFields(kind: string, request: ChatRequest | CompletionRequest): void {
  const given = request as unknown as Readonly<Record<string, unknown>>;
  const known = kind === "chat" ? CHAT : COMPLETION;
  const refused = Object.entries(MEANINGFUL).filter(
    ([name, harmless]) => given[name] != null && !harmless.includes(JSON.stringify(given[name])),
  );
  const [first] = refused;
  if (first) {
    throw new RequestError(
      "Not supported in browsers, and leaving it out would change the answer: " +
        refused.map(([name]) => name).join(", "),
      { param: first[0] },
    );
  }
  checkNames(given, Object.keys(known));
  checkShapes(given);
  if (kind === "chat") checkMessages(given["messages"]);
  else checkPrompt(given["prompt"]);
}

function checkNames(given: JsonObject, known: readonly string[]): void {
  const fits = (name: string): boolean =>
    given[name] == null || NO_EFFECT.has(name) || name in MEANINGFUL || known.includes(name);
  const unknown = Object.keys(given).find((name) => !fits(name));
  if (unknown === undefined) return;
  const nearest = known.toSorted((a, b) => distance(unknown, a) - distance(unknown, b))[0] ?? "";
  const near = distance(unknown, nearest) <= Math.max(1, unknown.length / 4);
  throw new RequestError(
    `There is no field ${unknown} here. ` +
      (near ? `Is it ${nearest}?` : `Fields are ${known.toSorted().join(", ")}.`),
    { param: unknown },
  );
}

function checkShapes(given: JsonObject): void {
  for (const [name, [takes, fits]] of Object.entries(SHAPES)) {
    if (given[name] == null || fits(given[name])) continue;
    throw new RequestError(`${name} takes ${takes}`, { param: name });
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isFormat(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { type, json_schema: held, grammar } = value;
  if (type === "json_schema") {
    return isObject(held) && (isObject(held["schema"]) || typeof held["schema"] === "boolean");
  }
  return type === "text" || type === "json_object" || (type === "grammar" && isText(grammar));
}

/** Characters to insert, remove or replace until one is the other. */
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

function checkMessages(messages: unknown): void {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new RequestError("messages has to be a list of at least one message", {
      param: "messages",
    });
  }
  for (const [index, message] of (messages as unknown[]).entries()) {
    const { role, content, tool_calls } = (message ?? {}) as Readonly<Record<string, unknown>>;
    const told = typeof content === "string" || Array.isArray(content);
    if (typeof role === "string" && (told || (content == null && Array.isArray(tool_calls))))
      continue;
    throw new RequestError(`messages.${index} has to have a role and a content, both texts`, {
      param: `messages.${index}`,
    });
  }
}

function checkPrompt(prompt: unknown): void {
  if (typeof prompt === "string" || Array.isArray(prompt)) return;
  throw new RequestError("prompt has to be a text or a list of token ids", { param: "prompt" });
}
