// Written by `make generated` of app/data/request_fields.json; not to be edited.
import type {
  ChatMessageParam,
  FunctionTool,
  Prediction,
  ResponseFormat,
  Text,
  ToolChoice,
} from "./types.js";

export interface SamplingFields {
  /** [0, 2]; temperature of the softmax; 0: greedy decoding */
  temperature?: number | null;
  /** TGI's: false is greedy decoding, whatever the temperature */
  do_sample?: boolean | null;
  /** [0, 2]; llama.cpp's: how far the temperature varies with the entropy */
  dynatemp_range?: number | null;
  /** (0, 100]; llama.cpp's: exponent of the entropy in dynatemp */
  dynatemp_exponent?: number | null;
  /** (0, 1]; total probability of the most likely tokens that are kept (nucleus) */
  top_p?: number | null;
  /** [-1, 2147483648); number of most likely tokens that are kept; 0, -1: all */
  top_k?: number | null;
  /** [0, 1); minimum probability of a kept token relative to the most likely token's */
  min_p?: number | null;
  /** (0, 1]; total probability that locally typical sampling keeps; 1: off */
  typical_p?: number | null;
  /** [-1, 1000]; largest distance below the top logit in standard deviations; 0 and below: off */
  top_n_sigma?: number | null;
  /** [0, 1]; probability with which XTC excludes the top tokens; 0: off */
  xtc_probability?: number | null;
  /** (0, 1]; probability above which XTC may exclude a token; above 0.5: off */
  xtc_threshold?: number | null;
  /** version of Mirostat sampling; 2: on */
  mirostat?: 0 | 2 | null;
  /** (0, 100]; surprise that Mirostat aims at, in bits */
  mirostat_tau?: number | null;
  /** (0, 1]; learning rate of Mirostat */
  mirostat_eta?: number | null;
  /** [-2, 2]; subtracted from the logit of each token that the output contains */
  presence_penalty?: number | null;
  /** [-2, 2]; subtracted from a token's logit for each of its occurrences in the output */
  frequency_penalty?: number | null;
  /** (0, 10]; factor against tokens that occur in prompt or output; 1: off */
  repetition_penalty?: number | null;
  /** [0, 1000]; strength of the DRY penalty on repeated sequences; 0: off */
  dry_multiplier?: number | null;
  /** [1, 1000]; growth of the DRY penalty for each further repeated token */
  dry_base?: number | null;
  /** [1, 2147483648); number of tokens that may repeat without a DRY penalty */
  dry_allowed_length?: number | null;
  /** [-1, 2147483648); number of past tokens in which DRY searches; -1: all; 0: off */
  dry_penalty_last_n?: number | null;
  /** texts at which DRY ends a repeated sequence */
  dry_sequence_breakers?: readonly string[] | null;
  /** maps a token id to the value added to its logit */
  logit_bias?: Readonly<Record<string, number>> | null;
  /** texts that the output never contains */
  bad_words?: readonly string[] | null;
  /** ids of the only tokens that may be sampled */
  allowed_token_ids?: readonly number[] | null;
  /** vLLM's: ids of further tokens that end the output */
  stop_token_ids?: readonly number[] | null;
  /** [0, 2147483648); number of output tokens before which no stop token is sampled */
  min_tokens?: number | null;
  /** whether the end-of-text token is ignored, so that only the limit ends the output */
  ignore_eos?: boolean | null;
  /** (-2147483648, 2147483648); priority as in vLLM: lower values run first */
  priority?: number | null;
}

export interface SharedFields {
  /** name of the model; needed where a server has several */
  model?: string | null;
  /** [1, 2147483647]; maximum number of output tokens */
  max_tokens?: number | null;
  /** [1, 128]; number of choices for each prompt */
  n?: number | null;
  /** seed of sampling: equal seeds give equal texts */
  seed?: number | bigint | null;
  /** text, or texts, before which the output ends */
  stop?: string | readonly string[] | null;
  /** vLLM's: whether the output includes the stop string, or the token of stop_token_ids */
  include_stop_str_in_output?: boolean | null;
  /** whether the answer comes in chunks */
  stream?: boolean | null;
  /** include_usage: whether a last chunk has the token counts */
  stream_options?: { include_usage?: boolean } | null;
  /** name of the user: the fair order gives each user a turn */
  user?: string | null;
  /** OpenAI's newer name of user */
  safety_identifier?: string | null;
  /** vLLM's: only requests of equal salt share cached prefixes */
  cache_salt?: string | null;
  /** [0, 64]; maximum number of draft tokens in a step; 0: none */
  max_drafts?: number | null;
  /** vLLM's: number of alternatives for each prompt token; false: none */
  prompt_logprobs?: number | boolean | null;
  /** OpenAI's constraint of the output: JSON, or a JSON Schema */
  response_format?: ResponseFormat | null;
  /** vLLM's constraint of the output: json, regex, choice, grammar, ... */
  structured_outputs?: Readonly<Record<string, unknown>> | null;
  /** vLLM's older constraint by a JSON Schema */
  guided_json?: Readonly<Record<string, unknown>> | boolean | string | null;
  /** vLLM's older constraint by a regular expression */
  guided_regex?: string | null;
  /** vLLM's older constraint to one of these texts */
  guided_choice?: readonly string[] | null;
  /** vLLM's older constraint by a grammar */
  guided_grammar?: string | null;
  /** llama.cpp's constraint of the output by a grammar in GBNF */
  grammar?: string | null;
  /** llama.cpp's constraint of the output by a JSON Schema */
  json_schema?: Readonly<Record<string, unknown>> | boolean | null;
}

export interface ChatFields {
  /** the conversation: role and content of each message */
  messages: readonly ChatMessageParam[];
  /** [1, 2147483647]; newer name of max_tokens, which takes precedence over it */
  max_completion_tokens?: number | null;
  /** whether the answer has the log probabilities of its tokens */
  logprobs?: boolean | null;
  /** [0, 20]; number of alternatives for each token */
  top_logprobs?: number | null;
  /** text that the output probably repeats; affects only the time */
  prediction?: Prediction | null;
  /** functions that the model may call, with JSON Schemas of their arguments */
  tools?: readonly FunctionTool[] | null;
  /** whether tools may or must be called; null: "auto" if there are tools */
  tool_choice?: ToolChoice | null;
  /** whether an answer may contain several calls; false: at most one */
  parallel_tool_calls?: boolean | null;
  /** how long the model thinks, where its template knows that; "none": not at all */
  reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
  /** template variable that enables reasoning; it overrides reasoning_effort */
  enable_thinking?: boolean | null;
  /** how reasoning is returned; "none": inside of the content, as the model wrote it */
  reasoning_format?: "auto" | "deepseek" | "none" | null;
  /** false is the same as "none" for reasoning_format */
  separate_reasoning?: boolean | null;
  /** DeepSeek's: an object whose type, "enabled" or "disabled", is enable_thinking */
  thinking?: Readonly<Record<string, unknown>> | null;
  /** whether the answer includes the reasoning */
  include_reasoning?: boolean | null;
  /** further variables of the template, which override all others */
  chat_template_kwargs?: Readonly<Record<string, unknown>> | null;
  /** vLLM's: variable of templates that know documents */
  documents?: readonly Readonly<Record<string, unknown>>[] | null;
  /** vLLM's: whether the prompt ends with the beginning of the assistant's turn */
  add_generation_prompt?: boolean | null;
  /** vLLM's: whether the output continues the last message */
  continue_final_message?: boolean | null;
  /** "auto": the oldest turns are dropped if the conversation exceeds the context */
  truncation?: "auto" | "disabled" | null;
}

export interface CompletionFields {
  /** text that the output continues, texts, token ids, or lists of them */
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  /** text after the gap that the model fills (fill-in-the-middle) */
  suffix?: string | null;
  /** [0, 2147483647]; maximum number of output tokens; 0 needs echo and returns only the prompt */
  max_tokens?: number | null;
  /** whether the answer begins with the prompt, and with its logprobs if requested */
  echo?: boolean | null;
  /** [0, 20]; number of alternatives for each token */
  logprobs?: number | null;
}

export interface EmbeddingFields {
  /** name of the model; needed where a server has several */
  model?: string | null;
  /** name of the user: the fair order gives each user a turn */
  user?: string | null;
  /** vLLM's: only requests of equal salt share cached prefixes */
  cache_salt?: string | null;
  /** whether texts that are too long are cut; otherwise they are errors */
  truncate?: boolean | null;
  /** [-1, 2147483648); vLLM's: number of tokens that texts are cut to; -1: as many as fit */
  truncate_prompt_tokens?: number | null;
  /** a text, texts, token ids, or lists of them */
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  /** [1, 1048576]; number of an embedding's leading dimensions that are returned; null: all */
  dimensions?: number | null;
  /** "base64": of little-endian float32 */
  encoding_format?: "float" | "base64" | null;
  /** name of the model's prompt that precedes each text */
  prompt_name?: string | null;
}

export interface RerankFields {
  /** name of the model; needed where a server has several */
  model?: string | null;
  /** name of the user: the fair order gives each user a turn */
  user?: string | null;
  /** vLLM's: only requests of equal salt share cached prefixes */
  cache_salt?: string | null;
  /** whether texts that are too long are cut; otherwise they are errors */
  truncate?: boolean | null;
  /** [-1, 2147483648); vLLM's: number of tokens that pairs are cut to; -1: as many as fit */
  truncate_prompt_tokens?: number | null;
  /** [0, 2147483648); number of tokens that the query is cut to; 0: all of them are read */
  max_tokens_per_query?: number | null;
  /** [0, 2147483648); number of tokens that documents are cut to; 0: all of them are read */
  max_tokens_per_doc?: number | null;
  /** text that the documents are compared with */
  query: string;
  /** texts, or objects with a text */
  documents: Text | readonly Text[];
  /** [0, 2147483648); number of documents that are returned; null, 0: all */
  top_n?: number | null;
  /** whether the answer includes the documents; null: it does */
  return_documents?: boolean | null;
  /** what a reranker that reads a prompt judges by */
  instruction?: string | null;
}

export interface ClassifyFields {
  /** name of the model; needed where a server has several */
  model?: string | null;
  /** name of the user: the fair order gives each user a turn */
  user?: string | null;
  /** vLLM's: only requests of equal salt share cached prefixes */
  cache_salt?: string | null;
  /** whether texts that are too long are cut; otherwise they are errors */
  truncate?: boolean | null;
  /** [-1, 2147483648); vLLM's: number of tokens that texts are cut to; -1: as many as fit */
  truncate_prompt_tokens?: number | null;
  /** a text or texts, each perhaps in an object with a text */
  input: Text | readonly Text[];
}

/** Names of fields; `others` are refused where they would change the answer. */
export const FIELD_NAMES = {
  sampling: [
    "temperature",
    "do_sample",
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
    "stop_token_ids",
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
    "include_stop_str_in_output",
    "stream",
    "stream_options",
    "user",
    "safety_identifier",
    "cache_salt",
    "max_drafts",
    "prompt_logprobs",
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
    "prediction",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning_effort",
    "enable_thinking",
    "reasoning_format",
    "separate_reasoning",
    "thinking",
    "include_reasoning",
    "chat_template_kwargs",
    "documents",
    "add_generation_prompt",
    "continue_final_message",
    "truncation",
  ],
  completion: ["prompt", "suffix", "max_tokens", "echo", "logprobs"],
  embedding: [
    "model",
    "user",
    "cache_salt",
    "truncate",
    "truncate_prompt_tokens",
    "input",
    "dimensions",
    "encoding_format",
    "prompt_name",
  ],
  rerank: [
    "model",
    "user",
    "cache_salt",
    "truncate",
    "truncate_prompt_tokens",
    "max_tokens_per_query",
    "max_tokens_per_doc",
    "query",
    "documents",
    "top_n",
    "return_documents",
    "instruction",
  ],
  classify: ["model", "user", "cache_salt", "truncate", "truncate_prompt_tokens", "input"],
  others: [
    "repeat_penalty",
    "n_predict",
    "num_predict",
    "max_new_tokens",
    "stop_sequences",
    "no_stop_trim",
    "regex",
    "ebnf",
    "functions",
    "function_call",
    "modalities",
    "audio",
    "web_search_options",
    "best_of",
    "chat_template",
    "context",
    "custom_logit_processor",
    "extra_body",
    "format",
    "guided_whitespace_pattern",
    "input_embeds",
    "input_ids",
    "length_penalty",
    "logits_processors",
    "lora",
    "lora_path",
    "min_keep",
    "no_repeat_ngram_size",
    "num_beams",
    "options",
    "prompt_embeds",
    "return_full_text",
    "samplers",
    "skip_special_tokens",
    "stop_regex",
    "system",
    "template",
    "top_a",
    "truncate_prompt_tokens",
    "use_beam_search",
    "watermark",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "store",
    "verbosity",
  ],
} as const;
