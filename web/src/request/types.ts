/** Requests and answers in OpenAI's shapes, with extensions under the names of vLLM and llama.cpp. */

/** One part of a message's content; only text is understood. */
export interface TextPart {
  type: "text";
  text: string;
}

/** One message; further fields are handed to the model's template as they are. */
export interface ChatMessageParam {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  /** May be null where there are `tool_calls`. */
  content?: string | readonly TextPart[] | null;
  name?: string;
  /** Of the assistant: what it called. */
  tool_calls?: readonly ToolCall[] | null;
  /** Of a tool: the call that this is the result of. */
  tool_call_id?: string;
}

/** A function that an answer may call. */
export interface FunctionTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    /** JSON Schema of an object. */
    parameters?: Readonly<Record<string, unknown>>;
    /** Whether arguments are held to the schema also where no call is asked for. */
    strict?: boolean | null;
  };
}

/** A call of a function; `arguments` is JSON. */
export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A piece of a call. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments: string };
}

/** Whether functions may be called ("auto"), or have to be, or this one has to be. */
export type ToolChoice =
  "none" | "auto" | "required" | { type: "function"; function: { name: string } };

/** How tokens are chosen. What is left out: the model's generation_config.json, else no effect. */
export interface SamplingParams {
  /** 0 is greedy. */
  temperature?: number | null;
  /** (0, 1] */
  top_p?: number | null;
  /** 0 or -1: all. */
  top_k?: number;
  /** [0, 1): share of the most likely token's probability. */
  min_p?: number;
  /** (0, 1] */
  typical_p?: number;
  /** [-2, 2] */
  presence_penalty?: number | null;
  /** [-2, 2] */
  frequency_penalty?: number | null;
  /** (0, 10]; over prompt and output. */
  repetition_penalty?: number;
  /** Temperature varies by it with the entropy, [0, 2], to the power of the exponent, (0, 100]. */
  dynatemp_range?: number;
  dynatemp_exponent?: number;
  /** Tokens whose logit is this many deviations below the best are left out, up to 1000. */
  top_n_sigma?: number;
  /** [0, 1]: how often the most likely ones above the threshold, (0, 1], are left out. */
  xtc_probability?: number;
  xtc_threshold?: number;
  /** 2 aims at a surprise of tau, (0, 100], by steps of eta, (0, 1]. */
  mirostat?: 0 | 2;
  mirostat_tau?: number;
  mirostat_eta?: number;
  /** Against repeated sequences, as llama.cpp has it. */
  dry_multiplier?: number;
  dry_base?: number;
  dry_allowed_length?: number;
  dry_penalty_last_n?: number;
  dry_sequence_breakers?: readonly string[];
  /** Words that may not come. */
  bad_words?: readonly string[];
  /** No other token may come. */
  allowed_token_ids?: readonly number[];
  /** Token id to what is added to its logit, [-100, 100]; at most 4096. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** Equal seeds and requests give equal tokens, independent of other requests. */
  seed?: number | bigint | null;
  /** Tokens before which the output does not end. */
  min_tokens?: number;
  /** Whether the model's end is no end. */
  ignore_eos?: boolean;
}

/** What the output is held to. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: { name?: string; schema: Readonly<Record<string, unknown>>; strict?: boolean };
    }
  | { type: "grammar"; grammar: string };

/** What both kinds of requests share. */
export interface RequestParams extends SamplingParams {
  /** Name of a loaded model; may be left out where there is one. */
  model?: string;
  /** Tokens of the output at most. */
  max_tokens?: number | null;
  /** Answers to one prompt, 1 to 128. */
  n?: number | null;
  /** Texts at which the output ends; they are not in it. */
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  response_format?: ResponseFormat;
  /** As vLLM and llama.cpp name what the output is held to. */
  structured_outputs?: Readonly<Record<string, unknown>>;
  guided_json?: Readonly<Record<string, unknown>> | string | boolean;
  guided_regex?: string;
  guided_choice?: readonly string[];
  guided_grammar?: string;
  grammar?: string;
  json_schema?: Readonly<Record<string, unknown>> | boolean;
  /** Draft tokens a step, 0 to 64; default: the engine's choice. */
  max_drafts?: number;
  /** Lower goes first. */
  priority?: number;
  /** Requests of one user share a place in the queue. */
  user?: string;
  safety_identifier?: string;
  /** Only requests of equal salt share cached prefixes. */
  cache_salt?: string;
}

/** A chat. */
export interface ChatRequest extends RequestParams {
  messages: readonly ChatMessageParam[];
  /** As max_tokens, and before it. */
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  /** Alternatives of each token, 0 to 20. */
  top_logprobs?: number | null;
  /** Functions that the answer may call; its calls are read as the model's family writes them. */
  tools?: readonly FunctionTool[] | null;
  tool_choice?: ToolChoice | null;
  /** Whether it may call several (true). */
  parallel_tool_calls?: boolean | null;
  /**
   * "auto" leaves out the oldest turns of a conversation that has become longer than the context, and
   * `dropped_messages` tells how many messages; default: that is an error.
   */
  truncation?: "auto" | "disabled" | null;
  /** How long a model that reasons does; where its template knows it. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
  enable_thinking?: boolean | null;
  /** "none" leaves reasoning in the text, as `separate_reasoning: false` does. */
  reasoning_format?: "auto" | "deepseek" | "none" | null;
  separate_reasoning?: boolean | null;
  /** Whether reasoning is in the answer (true). */
  include_reasoning?: boolean | null;
  /** Whether the prompt ends with the beginning of an answer (true). */
  add_generation_prompt?: boolean | null;
  /** Continues the last message, which is the assistant's. */
  continue_final_message?: boolean | null;
  /** Variables of the template: {"enable_thinking": false}. */
  chat_template_kwargs?: Readonly<Record<string, unknown>>;
}

/** A text, or its tokens, that the model continues. */
export interface CompletionRequest extends RequestParams {
  prompt: string | readonly number[] | readonly (string | readonly number[])[];
  /** Alternatives of each token, 0 to 20. */
  logprobs?: number | null;
}

export type FinishReason = "stop" | "length" | "tool_calls";

/** Tokens of a request. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** `cached_tokens`: of the prompt, found in the prefix cache. */
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: {
    accepted_prediction_tokens: number;
    rejected_prediction_tokens: number;
    reasoning_tokens: number;
  };
}

/** Times of a request, under the names of llama.cpp's server and one of our own, `queue_ms`. */
export interface Timings {
  /** Before the first step. */
  queue_ms: number;
  /** Tokens of the prompt, found in the prefix cache. */
  cache_n: number;
  /** Of the others. */
  prompt_n: number;
  /** From the first step to the first token. */
  prompt_ms: number;
  prompt_per_token_ms: number;
  prompt_per_second: number;
  /** Tokens of all choices. */
  predicted_n: number;
  /** From the first token to the last. */
  predicted_ms: number;
  predicted_per_token_ms: number;
  predicted_per_second: number;
}

export interface TopLogprob {
  token: string;
  logprob: number;
  /** UTF-8, which may be a part of a character. */
  bytes: number[];
}

export interface TokenLogprob extends TopLogprob {
  top_logprobs: TopLogprob[];
}

export interface ChatLogprobs {
  content: TokenLogprob[];
  refusal: null;
}

export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  /** Seconds since 1970. */
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: "assistant";
      /** null: calls and nothing else. */
      content: string | null;
      refusal: null;
      /** What the model wrote to itself, under the names of DeepSeek and of vLLM. */
      reasoning_content?: string;
      reasoning?: string;
      tool_calls?: ToolCall[];
    };
    finish_reason: FinishReason;
    logprobs: ChatLogprobs | null;
  }[];
  /** See `truncation`. */
  dropped_messages?: number;
  usage: Usage;
  timings: Timings;
}

/** A piece of a chat's answer; the last one has no choices if usage was asked for. */
export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    delta: {
      role?: "assistant";
      content?: string;
      reasoning_content?: string;
      reasoning?: string;
      /** How a call begins (id and name), some of its arguments, or both; `index` says of which. */
      tool_calls?: ToolCallDelta[];
    };
    finish_reason: FinishReason | null;
    logprobs?: ChatLogprobs | null;
  }[];
  /** In the first one; see `truncation`. */
  dropped_messages?: number;
  usage?: Usage | null;
  timings?: Timings;
}

/** Tokens of a completion, column by column. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  /** Characters of the output before each token. */
  text_offset: number[];
}

/** A completion, or a piece of one. */
export interface Completion {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: {
    index: number;
    text: string;
    finish_reason: FinishReason | null;
    logprobs: CompletionLogprobs | null;
  }[];
  usage?: Usage;
  timings?: Timings;
}
