// Written by `make generated` of app/data/request_fields.json; not to be edited.
import type { ChatMessageParam, FunctionTool, ResponseFormat, ToolChoice } from "./types.js";

export interface SamplingFields {
  /** [0, 2]; 0: greedy */
  temperature?: number | null;
  /** [0, 2]; llama.cpp's; the temperature varies by this with the entropy */
  dynatemp_range?: number | null;
  /** (0, 100]; llama.cpp's; of the entropy */
  dynatemp_exponent?: number | null;
  /** (0, 1]; nucleus: least set of tokens with this probability */
  top_p?: number | null;
  /** [-1, 2147483648); only the k most likely tokens; 0, -1: all */
  top_k?: number | null;
  /** [0, 1); least share of the most likely token's probability */
  min_p?: number | null;
  /** (0, 1]; locally typical sampling; 1: off */
  typical_p?: number | null;
  /** [-1, 1000]; standard deviations of the logits; 0 and below: off */
  top_n_sigma?: number | null;
  /** [0, 1]; exclude top choices; 0: off */
  xtc_probability?: number | null;
  /** (0, 1]; above 0.5: off */
  xtc_threshold?: number | null;
  /** 2: on */
  mirostat?: 0 | 2 | null;
  /** (0, 100]; surprise that is aimed at, in bits */
  mirostat_tau?: number | null;
  /** (0, 1]; learning rate */
  mirostat_eta?: number | null;
  /** [-2, 2]; of tokens in the output */
  presence_penalty?: number | null;
  /** [-2, 2]; of tokens in the output, for each occurrence */
  frequency_penalty?: number | null;
  /** (0, 10]; of tokens in prompt and output; 1: off */
  repetition_penalty?: number | null;
  /** [0, 1000]; penalty of repeated sequences; 0: off */
  dry_multiplier?: number | null;
  /** [1, 1000]; growth of the DRY penalty a token */
  dry_base?: number | null;
  /** [1, 2147483648); tokens that may repeat without a penalty */
  dry_allowed_length?: number | null;
  /** [-1, 2147483648); tokens that DRY looks back; -1: all; 0: off */
  dry_penalty_last_n?: number | null;
  /** texts that end a repeated sequence */
  dry_sequence_breakers?: readonly string[] | null;
  /** token id -> added to its logit */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** texts that the output never completes */
  bad_words?: readonly string[] | null;
  /** the only tokens that may be sampled */
  allowed_token_ids?: readonly number[] | null;
  /** [0, 2147483648); no stop token is sampled before */
  min_tokens?: number | null;
  /** the output ends at its limit alone */
  ignore_eos?: boolean | null;
  /** (-2147483648, 2147483648); lower runs first, as in vLLM */
  priority?: number | null;
}

export interface SharedFields {
  model?: string | null;
  /** [1, 2147483647] */
  max_tokens?: number | null;
  /** [1, 128]; choices of each prompt */
  n?: number | null;
  /** equal seeds give equal texts */
  seed?: number | bigint | null;
  stop?: string | readonly string[] | null;
  stream?: boolean | null;
  stream_options?: { include_usage?: boolean } | null;
  user?: string | null;
  safety_identifier?: string | null;
  /** vLLM's: only requests of equal salt share cached prefixes */
  cache_salt?: string | null;
  /** [0, 64]; draft tokens a step; 0: none */
  max_drafts?: number | null;
  /** OpenAI's: JSON, or a JSON Schema */
  response_format?: ResponseFormat | null;
  /** vLLM's: json, regex, choice, grammar, ... */
  structured_outputs?: Readonly<Record<string, unknown>> | null;
  guided_json?: Readonly<Record<string, unknown>> | boolean | string | null;
  guided_regex?: string | null;
  guided_choice?: readonly string[] | null;
  guided_grammar?: string | null;
  /** llama.cpp's, in GBNF */
  grammar?: string | null;
  /** llama.cpp's */
  json_schema?: Readonly<Record<string, unknown>> | boolean | null;
}

export interface ChatFields {
  messages: readonly ChatMessageParam[];
  /** [1, 2147483647] */
  max_completion_tokens?: number | null;
  logprobs?: boolean | null;
  /** [0, 20] */
  top_logprobs?: number | null;
  tools?: readonly FunctionTool[] | null;
  /** None: "auto" if there are tools */
  tool_choice?: ToolChoice | null;
  /** false: at most one call */
  parallel_tool_calls?: boolean | null;
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
  /** a variable of templates; it overrides reasoning_effort */
  enable_thinking?: boolean | null;
  /** How reasoning is separated from text; "none": it stays in the content, as the model wrote it. */
  reasoning_format?: "auto" | "deepseek" | "none" | null;
  /** false: as reasoning_format "none" */
  separate_reasoning?: boolean | null;
  /** false: the answer has no reasoning */
  include_reasoning?: boolean | null;
  /** variables of the template; they override all others */
  chat_template_kwargs?: Readonly<Record<string, unknown>> | null;
  /** vLLM's: whether the prompt ends with the beginning of the assistant's turn */
  add_generation_prompt?: boolean | null;
  /** vLLM's: the answer continues the last message */
  continue_final_message?: boolean | null;
}

export interface CompletionFields {
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  /** [0, 2147483647]; 0 needs echo: the answer is the prompt */
  max_tokens?: number | null;
  /** [0, 20] */
  logprobs?: number | null;
}

/** Names of fields; `others` are refused where they would change the answer. */
export const FIELD_NAMES = {
  sampling: [
    "temperature",
    "dynatemp_range",
    "dynatemp_exponent",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "logit_bias",
    "bad_words",
    "allowed_token_ids",
    "min_tokens",
    "ignore_eos",
    "priority",
  ],
  shared: [
    "model",
    "max_tokens",
    "n",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "user",
    "safety_identifier",
    "cache_salt",
    "max_drafts",
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "grammar",
    "json_schema",
  ],
  chat: [
    "messages",
    "max_completion_tokens",
    "logprobs",
    "top_logprobs",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "enable_thinking",
    "reasoning_format",
    "separate_reasoning",
    "include_reasoning",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
  ],
  completion: ["prompt", "max_tokens", "logprobs"],
  others: [
    "prompt_logprobs",
    "prediction",
    "suffix",
    "echo",
    "functions",
    "function_call",
    "modalities",
    "audio",
    "web_search_options",
    "best_of",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "store",
    "verbosity",
  ],
} as const;
