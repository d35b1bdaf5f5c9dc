/** Requests and answers in OpenAI's shapes, with extensions under the names of vLLM and llama.cpp. */
import type {
  ChatFields,
  CompletionFields,
  SamplingFields,
  SharedFields,
} from "./request_fields.js";

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

/** What the output is held to. */
export type ResponseFormat =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: { name?: string; schema: Readonly<Record<string, unknown>>; strict?: boolean };
    }
  | { type: "grammar"; grammar: string };

/** How tokens are chosen. What is left out: the model's generation_config.json, else no effect. */
export type SamplingParams = SamplingFields;

/** What both kinds of requests share. */
export interface RequestParams extends SamplingFields, SharedFields {}

/** A chat. */
export interface ChatRequest extends RequestParams, ChatFields {
  /**
   * "auto" leaves out the oldest turns of a conversation that has become longer than the context, and
   * `dropped_messages` tells how many messages; default: that is an error.
   */
  truncation?: "auto" | "disabled" | null;
}

/** A text, or its tokens, that the model continues. */
export interface CompletionRequest extends RequestParams, CompletionFields {}

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
