/**
 * Types of requests and answers in OpenAI's shapes, with extensions under the names of vLLM and
 * llama.cpp.
 */

/** One part of a message's content; only text is supported. */
export interface TextPart {
  type: "text";
  text: string;
}

/** One message of a chat; unknown fields are passed to the model's template unchanged. */
export interface ChatMessageParam {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  /** Text of the message; null is allowed if the message has `tool_calls`. */
  content?: string | readonly TextPart[] | null;
  name?: string;
  /** The calls in an assistant's message. */
  tool_calls?: readonly ToolCall[] | null;
  /** In a tool's message, the id of the call that it answers. */
  tool_call_id?: string;
}

/** A function that the model may call. */
export interface FunctionTool {
  type: "function";
  function: {
    name: string;
    description?: string;
    /** The JSON Schema of the function's arguments, an object. */
    parameters?: Readonly<Record<string, unknown>>;
    /** Whether arguments must follow the schema even if no call is required. */
    strict?: boolean | null;
  };
}

/** A call of a function; `arguments` is JSON as a text. */
export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A streamed piece of a call. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: "function";
  function: { name?: string; arguments: string };
}

/**
 * Whether the model may call functions ("auto"), must call one ("required"), or must call a named
 * one.
 */
export type ToolChoice =
  "none" | "auto" | "required" | { type: "function"; function: { name: string } };

/**
 * How tokens are sampled. A missing field has the value in the model's generation_config.json, or
 * else no effect.
 */
export interface SamplingParams {
  /** Temperature of the softmax; 0 is greedy decoding. */
  temperature?: number | null;
  /** Total probability of the most likely tokens that are kept (nucleus), in (0, 1]. */
  top_p?: number | null;
  /** Number of most likely tokens that are kept; 0 or -1: all. */
  top_k?: number;
  /** Minimum probability of kept tokens relative to the most likely token's, in [0, 1). */
  min_p?: number;
  /** Total probability of the tokens kept by locally typical sampling, in (0, 1]. */
  typical_p?: number;
  /** Subtracted from the logit of each token that occurs in the output, [-2, 2]. */
  presence_penalty?: number | null;
  /** Subtracted from a token's logit for each of its occurrences in the output, [-2, 2]. */
  frequency_penalty?: number | null;
  /** Factor against tokens that occur in prompt or output, (0, 10]. */
  repetition_penalty?: number;
  /**
   * The temperature varies by up to this value, [0, 2], with the entropy to the power of the
   * exponent, (0, 100].
   */
  dynatemp_range?: number;
  dynatemp_exponent?: number;
  /**
   * Tokens whose logit is more than this number of standard deviations below the largest are
   * removed; up to 1000.
   */
  top_n_sigma?: number;
  /**
   * Probability, [0, 1], with which the top tokens above the threshold, (0, 1], are removed (XTC).
   */
  xtc_probability?: number;
  xtc_threshold?: number;
  /**
   * 2 enables Mirostat, which aims at a surprise of tau bits, (0, 100], with learning rate eta, (0,
   * 1].
   */
  mirostat?: 0 | 2;
  mirostat_tau?: number;
  mirostat_eta?: number;
  /** Strength of the DRY penalty on repeated sequences, as in llama.cpp. */
  dry_multiplier?: number;
  dry_base?: number;
  dry_allowed_length?: number;
  dry_penalty_last_n?: number;
  dry_sequence_breakers?: readonly string[];
  /** Words that the output never contains. */
  bad_words?: readonly string[];
  /** Ids of the only tokens that may be sampled. */
  allowed_token_ids?: readonly number[];
  /** Maps a token id to the value added to its logit, [-100, 100]; at most 4096 entries. */
  logit_bias?: Readonly<Record<string, number>> | null;
  /**
   * Seed of the random numbers: equal seeds and requests give equal tokens, whatever other requests
   * run.
   */
  seed?: number | bigint | null;
  /** Number of tokens before which the output does not end. */
  min_tokens?: number;
  /** Whether the end-of-text token does not end the output. */
  ignore_eos?: boolean;
}

/** The format to which the output is constrained. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: { name?: string; schema: Readonly<Record<string, unknown>>; strict?: boolean };
    }
  | { type: "grammar"; grammar: string };

/** Fields that chats and completions share. */
export interface RequestParams extends SamplingParams {
  /** Name of a loaded model; optional if only one is loaded. */
  model?: string;
  /** Maximum number of output tokens. */
  max_tokens?: number | null;
  /** Number of answers to one prompt, 1 to 128. */
  n?: number | null;
  /** Texts at which the output ends; they are not part of it. */
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  response_format?: ResponseFormat;
  /** Constraint of the output under vLLM's name; llama.cpp's names follow. */
  structured_outputs?: Readonly<Record<string, unknown>>;
  guided_json?: Readonly<Record<string, unknown>> | string | boolean;
  guided_regex?: string;
  guided_choice?: readonly string[];
  guided_grammar?: string;
  grammar?: string;
  json_schema?: Readonly<Record<string, unknown>> | boolean;
  /** Maximum number of draft tokens in a step, 0 to 64; default: the engine chooses. */
  max_drafts?: number;
  /** Priority of the request; lower values run first. */
  priority?: number;
  /** Name of the user; all requests of a user share one place in the queue. */
  user?: string;
  safety_identifier?: string;
  /** Salt of the prefix cache: only requests with equal salt share cached prefixes. */
  cache_salt?: string;
}

/** A request to continue a chat. */
export interface ChatRequest extends RequestParams {
  messages: readonly ChatMessageParam[];
  /** Newer name of max_tokens, which takes precedence over it. */
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  /** Number of alternatives for each token, 0 to 20. */
  top_logprobs?: number | null;
  /**
   * Functions that the model may call; its calls are parsed in the format of the model's family.
   */
  tools?: readonly FunctionTool[] | null;
  tool_choice?: ToolChoice | null;
  /** Whether the answer may contain several calls; default: true. */
  parallel_tool_calls?: boolean | null;
  /**
   * "auto" removes the oldest turns of a conversation that exceeds the context, and
   * `dropped_messages` tells the number of removed messages; by default such a conversation is an
   * error.
   */
  truncation?: "auto" | "disabled" | null;
  /** How long a reasoning model reasons, if its template supports this. */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
  enable_thinking?: boolean | null;
  /**
   * How reasoning is returned; "none" leaves it in the text, as `separate_reasoning: false` does.
   */
  reasoning_format?: "auto" | "deepseek" | "none" | null;
  separate_reasoning?: boolean | null;
  /** Whether the answer includes the reasoning; default: true. */
  include_reasoning?: boolean | null;
  /** Whether the prompt ends with the beginning of an assistant's turn; default: true. */
  add_generation_prompt?: boolean | null;
  /** Whether the output continues the last message, which must be the assistant's. */
  continue_final_message?: boolean | null;
  /** Variables of the chat template, for example {"enable_thinking": false}. */
  chat_template_kwargs?: Readonly<Record<string, unknown>>;
}

/** A request to continue a text, or its tokens. */
export interface CompletionRequest extends RequestParams {
  prompt: string | readonly number[] | readonly (string | readonly number[])[];
  /** Number of alternatives for each token, 0 to 20. */
  logprobs?: number | null;
}

export type FinishReason = "stop" | "length" | "tool_calls";

/** Token counts of a request. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** `cached_tokens` is the number of prompt tokens that were found in the prefix cache. */
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: {
    accepted_prediction_tokens: number;
    rejected_prediction_tokens: number;
    reasoning_tokens: number;
  };
}

/** Times of a request in the fields of llama.cpp's server, and Wherry's own `queue_ms`. */
export interface Timings {
  /** Milliseconds before the first step. */
  queue_ms: number;
  /** Number of prompt tokens that were found in the prefix cache. */
  cache_n: number;
  /** Number of prompt tokens that were computed. */
  prompt_n: number;
  /** Milliseconds from the first step to the first token. */
  prompt_ms: number;
  prompt_per_token_ms: number;
  prompt_per_second: number;
  /** Number of output tokens of all choices. */
  predicted_n: number;
  /** Milliseconds from the first output token to the last. */
  predicted_ms: number;
  predicted_per_token_ms: number;
  predicted_per_second: number;
}

export interface TopLogprob {
  token: string;
  logprob: number;
  /** The token's UTF-8 bytes, perhaps only a part of a character. */
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
  /** Unix time in seconds. */
  created: number;
  model: string;
  choices: {
    index: number;
    message: {
      role: "assistant";
      /** Text of the answer; null if it has only calls. */
      content: string | null;
      refusal: null;
      /** Reasoning of the model, under DeepSeek's name; vLLM's name follows. */
      reasoning_content?: string;
      reasoning?: string;
      tool_calls?: ToolCall[];
    };
    finish_reason: FinishReason;
    logprobs: ChatLogprobs | null;
  }[];
  /** Number of messages that `truncation` removed. */
  dropped_messages?: number;
  usage: Usage;
  timings: Timings;
}

/** A chunk of a chat's answer; with usage requested, the last one has no choices. */
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
      /**
       * Pieces of calls: the id and name that begin one, some of its arguments, or both; `index`
       * names the call.
       */
      tool_calls?: ToolCallDelta[];
    };
    finish_reason: FinishReason | null;
    logprobs?: ChatLogprobs | null;
  }[];
  /** Number of messages that `truncation` removed, in the first chunk. */
  dropped_messages?: number;
  usage?: Usage | null;
  timings?: Timings;
}

/** Logprobs of a completion's tokens, in columns. */
export interface CompletionLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  /** Number of output characters before each token. */
  text_offset: number[];
}

/** A completion, or a chunk of a streamed one. */
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
