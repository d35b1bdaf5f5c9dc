/** From a request to what the core is asked: prompts in tokens, parameters, seeds. */
import type { CoreParams } from "../core/core.js";
import { RequestError } from "../errors.js";
import type { ChatTemplate } from "../text/chat_template.js";
import type { JsonObject, Tokenizer } from "../text/tokenizer.js";
import { type AskedTools, askedTools } from "../tools/asked_tools.js";
import { conversation, type PlainMessage } from "../tools/conversation.js";
import { knowsTools } from "../tools/written_calls.js";
import { checkRange, checkSeed, randomSeed, samplingParams, seedOf } from "./sampling.js";
import type {
  ChatMessageParam,
  ChatRequest,
  CompletionRequest,
  RequestParams,
  ResponseFormat,
} from "./types.js";
import { checkFields } from "./fields.js";

const COMPLETION_MAX_TOKENS = 16; // OpenAI's default of completions; a chat may fill the context
const MAX_TOP_LOGPROBS = 20;
const MAX_STOPS = 1024;
const ANSWER_SHARE = 4; // a quarter of the context is kept for the answer where nobody says how much

/** A request, ready for the core. */
export interface Plan {
  readonly prompt: Int32Array<ArrayBuffer>;
  /** Messages that are not in it: the oldest, where there was no room for them. */
  readonly dropped: number;
  /** Of each choice: the same but for their seeds. */
  readonly params: readonly Partial<CoreParams>[];
  readonly stops: readonly string[];
  /** Whether logprobs were asked for. */
  readonly logprobs: boolean;
  /** Whether the output continues the prompt's text, rather than being a text of its own. */
  readonly continues: boolean;
  readonly includeUsage: boolean;
  /** What the output is held to. */
  readonly format: OutputFormat;
  /** Functions that it may call. */
  readonly tools: AskedTools | undefined;
}

/** What an output is held to: what the request says, or calls of its tools. */
export type OutputFormat = ResponseFormat | { type: "tools"; asked: AskedTools };

/** What a model brings to a request. */
export interface ModelText {
  readonly tokenizer: Tokenizer;
  /** Undefined: the model only completes texts. */
  readonly template: ChatTemplate | undefined;
  /** Tokens of prompt and output together. */
  readonly context: number;
  readonly vocabSize: number;
  /** generation_config.json */
  readonly defaults: JsonObject;
}

/** @throws RequestError if the request cannot be answered as it is. */
export function planChat(request: ChatRequest, model: ModelText): Plan {
  checkFields("chat", request);
  if (!model.template) {
    throw new RequestError("This model has no chat template. Use completions.create({ prompt }).", {
      param: "messages",
    });
  }
  const { template } = model;
  const tools = askedTools(request);
  const encoded = (messages: readonly PlainMessage[]): number[] => {
    const told = conversation(messages, tools?.tools ?? [], knowsTools(template.source));
    const text = template.render(told.messages, {
      variables: { tools: told.tools, ...request.chat_template_kwargs },
    });
    return model.tokenizer.encode(text, { addSpecialTokens: false });
  };
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? undefined;
  const room = model.context - (maxTokens ?? Math.floor(model.context / ANSWER_SHARE));
  const plain = request.messages.map(plainMessage);
  const sent = request.truncation === "auto" ? newest(plain, encoded, room) : plain;
  if (request.top_logprobs && !request.logprobs) {
    throw new RequestError("top_logprobs needs logprobs: true", { param: "top_logprobs" });
  }
  return planned(request, model, {
    prompt: encoded(sent),
    dropped: plain.length - sent.length,
    field: "messages",
    maxTokens,
    logprobs: request.logprobs === true,
    topLogprobs: request.top_logprobs ?? 0,
    continues: false,
    tools,
  });
}

/** @throws RequestError if the request cannot be answered as it is. */
export function planCompletion(request: CompletionRequest, model: ModelText): Plan {
  checkFields("completion", request);
  const { prompt } = request;
  const ids = typeof prompt === "string" ? model.tokenizer.encode(prompt) : [...prompt];
  const room = Math.max(1, Math.min(COMPLETION_MAX_TOKENS, model.context - ids.length));
  return planned(request, model, {
    prompt: ids,
    dropped: 0,
    field: "prompt",
    maxTokens: request.max_tokens ?? room, // a default is not an error of the caller
    logprobs: request.logprobs != null,
    topLogprobs: request.logprobs ?? 0,
    continues: true,
  });
}

/**
 * What a conversation begins with, and its newest turns: as many as leave room for the answer, as
 * `wherry chat` sends them. A turn begins with a message of the user.
 *
 * @param most tokens of the prompt.
 */
function newest(
  messages: readonly PlainMessage[],
  encoded: (messages: readonly PlainMessage[]) => readonly number[],
  most: number,
): readonly PlainMessage[] {
  const first = messages.findIndex(({ role }) => role !== "system" && role !== "developer");
  const turns = [...messages.keys()].filter((k) => k > first && messages[k]?.role === "user");
  let sent = messages;
  for (const turn of turns) {
    if (encoded(sent).length <= most) break;
    sent = [...messages.slice(0, first), ...messages.slice(turn)];
  }
  return sent;
}

interface Asked {
  readonly prompt: readonly number[];
  readonly dropped: number;
  readonly field: string;
  readonly maxTokens: number | undefined;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  readonly continues: boolean;
  readonly tools?: AskedTools | undefined;
}

function planned(request: RequestParams, model: ModelText, asked: Asked): Plan {
  const n = request.n ?? 1;
  checkRange("n", n, { least: 1, most: 128, whole: true });
  checkRange("max_tokens", asked.maxTokens, { least: 1, most: 2 ** 31 - 1, whole: true });
  const tops = { least: 0, most: MAX_TOP_LOGPROBS, whole: true };
  checkRange("top_logprobs", asked.topLogprobs, tops);
  checkSeed(request.seed);
  checkPrompt(asked, model);
  const maxTokens = asked.maxTokens ?? model.context - asked.prompt.length;
  const params = {
    ...samplingParams(request, model.defaults, model.vocabSize),
    maxTokens,
    stopIds: request.ignore_eos ? [] : model.tokenizer.eosIds,
    topLogprobs: asked.topLogprobs,
    salt: saltOf(request.cache_salt),
  };
  if ((params.minTokens ?? 0) > maxTokens) {
    throw new RequestError(
      `min_tokens is ${request.min_tokens ?? 0}; the output has at most ${maxTokens}`,
      { param: "min_tokens" },
    );
  }
  const seed = request.seed ?? randomSeed();
  return {
    prompt: Int32Array.from(asked.prompt),
    dropped: asked.dropped,
    params: Array.from({ length: n }, (_, choice) => ({ ...params, seed: seedOf(seed, choice) })),
    stops: stopsOf(request.stop),
    logprobs: asked.logprobs,
    continues: asked.continues,
    includeUsage: request.stream_options?.include_usage === true,
    format: formatOf(request, asked.tools),
    tools: asked.tools,
  };
}

/** Calls are held to their schemas where one is asked for, or a tool says so. */
function formatOf(request: RequestParams, asked: AskedTools | undefined): OutputFormat {
  const held = asked?.must === true || asked?.tools.some(({ function: { strict } }) => strict);
  if (asked && held) return { type: "tools", asked };
  return request.response_format ?? { type: "text" };
}

/** Refuse what the core cannot take, with the numbers. */
function checkPrompt({ prompt, field, maxTokens = 1 }: Asked, model: ModelText): void {
  if (prompt.length === 0) {
    throw new RequestError(`${field} is empty; the model needs at least one token`, {
      param: field,
    });
  }
  const needed = prompt.length + maxTokens;
  if (needed > model.context) {
    throw new RequestError(
      `This model's context is ${model.context} tokens; the request needs ${needed}: ` +
        `${prompt.length} in ${field} and ${maxTokens} for the output. Shorten one of them` +
        (field === "messages" ? ', or drop the oldest messages with truncation: "auto".' : "."),
      { param: field },
    );
  }
  const wrong = prompt.find((id) => !Number.isInteger(id) || id < 0 || id >= model.vocabSize);
  if (wrong !== undefined) {
    throw new RequestError(
      `${field} holds token ${wrong}; ids go from 0 to ${model.vocabSize - 1}`,
      { param: field },
    );
  }
}

function stopsOf(stop: RequestParams["stop"]): string[] {
  const stops = typeof stop === "string" ? [stop] : [...(stop ?? [])];
  if (stops.length > MAX_STOPS) {
    throw new RequestError(`stop has ${stops.length} texts; at most ${MAX_STOPS} are read`, {
      param: "stop",
    });
  }
  return stops;
}

function plainMessage(message: ChatMessageParam): PlainMessage {
  const content = message.content ?? "";
  if (typeof content === "string") return { ...message, content };
  const other = content.find((part) => (part.type as string) !== "text");
  if (other) {
    throw new RequestError(`messages hold content of type ${other.type}; only text is understood`, {
      param: "messages",
    });
  }
  return { ...message, content: content.map((part) => part.text).join("") };
}

/** What the core knows a salt by: 64 bits of FNV-1a; 0 for none. */
function saltOf(salt = ""): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(salt)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return salt === "" ? 0n : hash;
}
