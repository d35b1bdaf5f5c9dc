/** Requests and answers in OpenAI's shapes, with extensions under the names of vLLM and llama.cpp. */
import type {
  ChatFields,
  ClassifyFields,
  CompletionFields,
  EmbeddingFields,
  RerankFields,
  SamplingFields,
  SharedFields,
} from "./request_fields.js";

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

/** Text that the output probably repeats; it affects only the time. */
export interface Prediction {
  type?: "content";
  content: string | readonly TextPart[];
}

/** The constraint on the format of the output. */
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
export interface ChatRequest extends RequestParams, ChatFields {}

/** A text, or its tokens, that the model continues. */
export interface CompletionRequest extends RequestParams, CompletionFields {}

/** A text of a request for numbers. */
export type Text = string | { readonly text: string };

/** Texts, or their tokens, whose embeddings are wanted. */
export type EmbeddingRequest = EmbeddingFields;

/** A query, and the documents that are ranked by how well they match it. */
export type RerankRequest = RerankFields;

/** Texts whose classes are wanted. */
export type ClassifyRequest = ClassifyFields;

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

/**
 * Log probabilities of the prompt's tokens and their alternatives by token id, in vLLM's shape; null
 * for the first token.
 */
export type PromptLogprobs = (Record<
  string,
  { logprob: number; rank: number | null; decoded_token: string }
> | null)[];

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
  prompt_logprobs?: PromptLogprobs;
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
    prompt_logprobs?: PromptLogprobs;
  }[];
  usage?: Usage;
  timings?: Timings;
}

/** Token counts of a request for numbers. */
export type VectorUsage = Pick<Usage, "prompt_tokens" | "total_tokens">;

/** The embeddings of texts, in their order. */
export interface EmbeddingAnswer {
  object: "list";
  model: string;
  data: {
    object: "embedding";
    index: number;
    /** Its numbers; with `encoding_format: "base64"` a text, as OpenAI's client expects it. */
    embedding: number[];
  }[];
  usage: VectorUsage;
}

/** Documents by how well they match a query, the best first. */
export interface RerankAnswer {
  id: string;
  model: string;
  results: {
    /** The document's place in the request. */
    index: number;
    /** How well it matches: the higher, the better. */
    relevance_score: number;
    document?: { text: string };
  }[];
  usage: VectorUsage;
}

/** The classes of texts, in their order. */
export interface ClassifyAnswer {
  id: string;
  object: "list";
  /** Unix time in seconds. */
  created: number;
  model: string;
  data: {
    index: number;
    /** The most probable class. */
    label: string;
    /** Probabilities of all classes, in the order of the model's labels. */
    probs: number[];
    num_classes: number;
  }[];
  usage: VectorUsage;
}
