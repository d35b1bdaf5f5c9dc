"""The fields of requests in OpenAI's shapes, with bounds.

Written by `make generated` of app/data/request_fields.json; not to be edited.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from .counts import at_most
from .kinds import (
    Biases,
    Messages,
    Prediction,
    Prompt,
    PromptLogprobs,
    RequestShape,
    Schema,
    SchemaOrText,
    Stops,
    StreamOptions,
    TokenIds,
    Tools,
    Word,
)
from .tools import ToolChoice


class SamplingFields(BaseModel):
    """Fields of sampling; None: generation_config.json, or else no effect."""

    # temperature of the softmax; 0: greedy decoding
    temperature: float | None = Field(None, ge=0, le=2)
    do_sample: bool | None = None  # TGI's: false is greedy decoding, whatever the temperature
    # llama.cpp's: how far the temperature varies with the entropy
    dynatemp_range: float | None = Field(None, ge=0, le=2)
    # llama.cpp's: exponent of the entropy in dynatemp
    dynatemp_exponent: float | None = Field(None, gt=0, le=100)
    # total probability of the most likely tokens that are kept (nucleus)
    top_p: float | None = Field(None, gt=0, le=1)
    # number of most likely tokens that are kept; 0, -1: all
    top_k: int | None = Field(None, ge=-1, lt=2147483648)
    # minimum probability of a kept token relative to the most likely token's
    min_p: float | None = Field(None, ge=0, lt=1)
    # total probability that locally typical sampling keeps; 1: off
    typical_p: float | None = Field(None, gt=0, le=1)
    # largest distance below the top logit in standard deviations; 0 and below: off
    top_n_sigma: float | None = Field(None, ge=-1, le=1000)
    # probability with which XTC excludes the top tokens; 0: off
    xtc_probability: float | None = Field(None, ge=0, le=1)
    # probability above which XTC may exclude a token; above 0.5: off
    xtc_threshold: float | None = Field(None, gt=0, le=1)
    mirostat: Literal[0, 2] | None = None  # version of Mirostat sampling; 2: on
    # surprise that Mirostat aims at, in bits
    mirostat_tau: float | None = Field(None, gt=0, le=100)
    mirostat_eta: float | None = Field(None, gt=0, le=1)  # learning rate of Mirostat
    # subtracted from the logit of each token that the output contains
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    # subtracted from a token's logit for each of its occurrences in the output
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    # factor against tokens that occur in prompt or output; 1: off
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    # strength of the DRY penalty on repeated sequences; 0: off
    dry_multiplier: float | None = Field(None, ge=0, le=1000)
    # growth of the DRY penalty for each further repeated token
    dry_base: float | None = Field(None, ge=1, le=1000)
    # number of tokens that may repeat without a DRY penalty
    dry_allowed_length: int | None = Field(None, ge=1, lt=2147483648)
    # number of past tokens in which DRY searches; -1: all; 0: off
    dry_penalty_last_n: int | None = Field(None, ge=-1, lt=2147483648)
    # texts at which DRY ends a repeated sequence
    dry_sequence_breakers: Annotated[list[Word] | None, at_most(64, "words")] = None
    logit_bias: Biases = None  # maps a token id to the value added to its logit
    # texts that the output never contains
    bad_words: Annotated[list[Word] | None, at_most(1024, "words")] = None
    allowed_token_ids: TokenIds = None  # ids of the only tokens that may be sampled
    stop_token_ids: TokenIds = None  # vLLM's: ids of further tokens that end the output
    # number of output tokens before which no stop token is sampled
    min_tokens: int | None = Field(None, ge=0, lt=2147483648)
    # whether the end-of-text token is ignored, so that only the limit ends the output
    ignore_eos: bool | None = None
    # priority as in vLLM: lower values run first
    priority: int | None = Field(None, gt=-2147483648, lt=2147483648)


class SharedFields(RequestShape, SamplingFields):
    """Fields that chats and completions share."""

    model: str = Field("", max_length=1024)  # name of the model; needed where a server has several
    max_tokens: int | None = Field(None, ge=1, le=2147483647)  # maximum number of output tokens
    n: int | None = Field(None, ge=1, le=128)  # number of choices for each prompt
    # seed of sampling: equal seeds give equal texts
    seed: int | None = Field(None, ge=-9223372036854775808, lt=18446744073709551616)
    stop: Stops = None  # text, or texts, before which the output ends
    # vLLM's: whether the output includes the stop string, or the token of stop_token_ids
    include_stop_str_in_output: bool | None = None
    stream: bool | None = None  # whether the answer comes in chunks
    # include_usage: whether a last chunk has the token counts
    stream_options: StreamOptions | None = None
    # name of the user: the fair order gives each user a turn
    user: str | None = Field(None, max_length=1024)
    safety_identifier: str | None = Field(None, max_length=1024)  # OpenAI's newer name of user
    # vLLM's: only requests of equal salt share cached prefixes
    cache_salt: str | None = Field(None, max_length=1024)
    # maximum number of draft tokens in a step; 0: none
    max_drafts: int | None = Field(None, ge=0, le=64)
    # vLLM's: number of alternatives for each prompt token; false: none
    prompt_logprobs: PromptLogprobs = None
    # OpenAI's constraint of the output: JSON, or a JSON Schema
    response_format: dict[str, Any] | None = None
    # vLLM's constraint of the output: json, regex, choice, grammar, ...
    structured_outputs: dict[str, Any] | None = None
    guided_json: SchemaOrText = None  # vLLM's older constraint by a JSON Schema
    guided_regex: str | None = None  # vLLM's older constraint by a regular expression
    guided_choice: list[str] | None = None  # vLLM's older constraint to one of these texts
    guided_grammar: str | None = None  # vLLM's older constraint by a grammar
    grammar: str | None = None  # llama.cpp's constraint of the output by a grammar in GBNF
    json_schema: Schema = None  # llama.cpp's constraint of the output by a JSON Schema


class ChatFields(BaseModel):
    """Fields of chats only."""

    messages: Messages  # the conversation: role and content of each message
    # newer name of max_tokens, which takes precedence over it
    max_completion_tokens: int | None = Field(None, ge=1, le=2147483647)
    logprobs: bool | None = None  # whether the answer has the log probabilities of its tokens
    top_logprobs: int | None = Field(None, ge=0, le=20)  # number of alternatives for each token
    # text that the output probably repeats; affects only the time
    prediction: Prediction | None = None
    tools: Tools = None  # functions that the model may call, with JSON Schemas of their arguments
    # whether tools may or must be called; null: "auto" if there are tools
    tool_choice: ToolChoice | None = None
    # whether an answer may contain several calls; false: at most one
    parallel_tool_calls: bool | None = None
    # how long the model thinks, where its template knows that; "none": not at all
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    # template variable that enables reasoning; it overrides reasoning_effort
    enable_thinking: bool | None = None
    # how reasoning is returned; "none": inside of the content, as the model wrote it
    reasoning_format: Literal["auto", "deepseek", "none"] | None = None
    separate_reasoning: bool | None = None  # false is the same as "none" for reasoning_format
    # DeepSeek's: an object whose type, "enabled" or "disabled", is enable_thinking
    thinking: dict[str, Any] | None = None
    include_reasoning: bool | None = None  # whether the answer includes the reasoning
    # further variables of the template, which override all others
    chat_template_kwargs: dict[str, Any] | None = None
    # vLLM's: variable of templates that know documents
    documents: list[dict[str, Any]] | None = None
    # vLLM's: whether the prompt ends with the beginning of the assistant's turn
    add_generation_prompt: bool | None = None
    # vLLM's: whether the output continues the last message
    continue_final_message: bool | None = None
    # "auto": the oldest turns are dropped if the conversation exceeds the context
    truncation: Literal["auto", "disabled"] | None = None


class CompletionFields(BaseModel):
    """Fields of completions only."""

    prompt: Prompt  # text that the output continues, texts, token ids, or lists of them
    suffix: str | None = None  # text after the gap that the model fills (fill-in-the-middle)
    # maximum number of output tokens; 0 needs echo and returns only the prompt
    max_tokens: int | None = Field(None, ge=0, le=2147483647)
    # whether the answer begins with the prompt, and with its logprobs if requested
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=20)  # number of alternatives for each token
