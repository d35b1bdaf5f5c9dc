"""The arguments of `create`: fields of requests, as types that editors know.

Written by `make generated` of app/data/request_fields.json; not to be edited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import Required, TypedDict


class SamplingArguments(TypedDict, total=False):
    """How tokens are chosen; None: generation_config.json, or else no effect."""

    temperature: float | None
    """[0, 2]; temperature of the softmax; 0: greedy decoding"""
    do_sample: bool | None
    """TGI's: false is greedy decoding, whatever the temperature"""
    dynatemp_range: float | None
    """[0, 2]; llama.cpp's: how far the temperature varies with the entropy"""
    dynatemp_exponent: float | None
    """(0, 100]; llama.cpp's: exponent of the entropy in dynatemp"""
    top_p: float | None
    """(0, 1]; total probability of the most likely tokens that are kept (nucleus)"""
    top_k: int | None
    """[-1, 2147483648); number of most likely tokens that are kept; 0, -1: all"""
    min_p: float | None
    """[0, 1); minimum probability of a kept token relative to the most likely token's"""
    typical_p: float | None
    """(0, 1]; total probability that locally typical sampling keeps; 1: off"""
    top_n_sigma: float | None
    """[-1, 1000]; largest distance below the top logit in standard deviations; 0 and below: off"""
    xtc_probability: float | None
    """[0, 1]; probability with which XTC excludes the top tokens; 0: off"""
    xtc_threshold: float | None
    """(0, 1]; probability above which XTC may exclude a token; above 0.5: off"""
    mirostat: Literal[0, 2] | None
    """version of Mirostat sampling; 2: on"""
    mirostat_tau: float | None
    """(0, 100]; surprise that Mirostat aims at, in bits"""
    mirostat_eta: float | None
    """(0, 1]; learning rate of Mirostat"""
    presence_penalty: float | None
    """[-2, 2]; subtracted from the logit of each token that the output contains"""
    frequency_penalty: float | None
    """[-2, 2]; subtracted from a token's logit for each of its occurrences in the output"""
    repetition_penalty: float | None
    """(0, 10]; factor against tokens that occur in prompt or output; 1: off"""
    dry_multiplier: float | None
    """[0, 1000]; strength of the DRY penalty on repeated sequences; 0: off"""
    dry_base: float | None
    """[1, 1000]; growth of the DRY penalty for each further repeated token"""
    dry_allowed_length: int | None
    """[1, 2147483648); number of tokens that may repeat without a DRY penalty"""
    dry_penalty_last_n: int | None
    """[-1, 2147483648); number of past tokens in which DRY searches; -1: all; 0: off"""
    dry_sequence_breakers: Sequence[str] | None
    """texts at which DRY ends a repeated sequence"""
    logit_bias: Mapping[int, float] | Mapping[str, float] | None
    """maps a token id to the value added to its logit"""
    bad_words: Sequence[str] | None
    """texts that the output never contains"""
    allowed_token_ids: Sequence[int] | None
    """ids of the only tokens that may be sampled"""
    stop_token_ids: Sequence[int] | None
    """vLLM's: ids of further tokens that end the output"""
    min_tokens: int | None
    """[0, 2147483648); number of output tokens before which no stop token is sampled"""
    ignore_eos: bool | None
    """whether the end-of-text token is ignored, so that only the limit ends the output"""
    priority: int | None
    """(-2147483648, 2147483648); priority as in vLLM: lower values run first"""


class SharedArguments(SamplingArguments, total=False):
    """Arguments that chats and completions share."""

    model: str | None
    """name of the model; needed where a server has several"""
    max_tokens: int | None
    """[1, 2147483647]; maximum number of output tokens"""
    n: int | None
    """[1, 128]; number of choices for each prompt"""
    seed: int | None
    """seed of sampling: equal seeds give equal texts"""
    stop: str | Sequence[str] | None
    """text, or texts, before which the output ends"""
    include_stop_str_in_output: bool | None
    """vLLM's: whether the output includes the stop string, or the token of stop_token_ids"""
    stream_options: Mapping[str, bool] | None
    """include_usage: whether a last chunk has the token counts"""
    user: str | None
    """name of the user: the fair order gives each user a turn"""
    safety_identifier: str | None
    """OpenAI's newer name of user"""
    cache_salt: str | None
    """vLLM's: only requests of equal salt share cached prefixes"""
    max_drafts: int | None
    """[0, 64]; maximum number of draft tokens in a step; 0: none"""
    prompt_logprobs: int | bool | None
    """vLLM's: number of alternatives for each prompt token; false: none"""
    response_format: Mapping[str, Any] | None
    """OpenAI's constraint of the output: JSON, or a JSON Schema"""
    structured_outputs: Mapping[str, Any] | None
    """vLLM's constraint of the output: json, regex, choice, grammar, ..."""
    guided_json: Mapping[str, Any] | bool | str | None
    """vLLM's older constraint by a JSON Schema"""
    guided_regex: str | None
    """vLLM's older constraint by a regular expression"""
    guided_choice: Sequence[str] | None
    """vLLM's older constraint to one of these texts"""
    guided_grammar: str | None
    """vLLM's older constraint by a grammar"""
    grammar: str | None
    """llama.cpp's constraint of the output by a grammar in GBNF"""
    json_schema: Mapping[str, Any] | bool | None
    """llama.cpp's constraint of the output by a JSON Schema"""


class ChatArguments(SharedArguments, total=False):
    """The arguments of `engine.chat.completions.create`, with those below."""

    messages: Required[Sequence[Mapping[str, Any]]]
    """the conversation: role and content of each message"""
    max_completion_tokens: int | None
    """[1, 2147483647]; newer name of max_tokens, which takes precedence over it"""
    logprobs: bool | None
    """whether the answer has the log probabilities of its tokens"""
    top_logprobs: int | None
    """[0, 20]; number of alternatives for each token"""
    prediction: Mapping[str, Any] | None
    """text that the output probably repeats; affects only the time"""
    tools: Sequence[Mapping[str, Any]] | None
    """functions that the model may call, with JSON Schemas of their arguments"""
    tool_choice: Literal["none", "auto", "required"] | Mapping[str, Any] | None
    """whether tools may or must be called; null: 'auto' if there are tools"""
    parallel_tool_calls: bool | None
    """whether an answer may contain several calls; false: at most one"""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    """how long the model thinks, where its template knows that; 'none': not at all"""
    enable_thinking: bool | None
    """template variable that enables reasoning; it overrides reasoning_effort"""
    reasoning_format: Literal["auto", "deepseek", "none"] | None
    """how reasoning is returned; 'none': inside of the content, as the model wrote it"""
    separate_reasoning: bool | None
    """false is the same as 'none' for reasoning_format"""
    thinking: Mapping[str, Any] | None
    """DeepSeek's: an object whose type, 'enabled' or 'disabled', is enable_thinking"""
    include_reasoning: bool | None
    """whether the answer includes the reasoning"""
    chat_template_kwargs: Mapping[str, Any] | None
    """further variables of the template, which override all others"""
    documents: Sequence[Mapping[str, Any]] | None
    """vLLM's: variable of templates that know documents"""
    add_generation_prompt: bool | None
    """vLLM's: whether the prompt ends with the beginning of the assistant's turn"""
    continue_final_message: bool | None
    """vLLM's: whether the output continues the last message"""
    truncation: Literal["auto", "disabled"] | None
    """'auto': the oldest turns are dropped if the conversation exceeds the context"""


class CompletionArguments(SharedArguments, total=False):
    """The arguments of `engine.completions.create`, with those below."""

    prompt: Required[str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]]
    """text that the output continues, texts, token ids, or lists of them"""
    suffix: str | None
    """text after the gap that the model fills (fill-in-the-middle)"""
    echo: bool | None
    """whether the answer begins with the prompt, and with its logprobs if requested"""
    logprobs: int | None
    """[0, 20]; number of alternatives for each token"""


class EmbeddingArguments(TypedDict, total=False):
    """The arguments of `engine.embeddings.create`."""

    model: str | None
    """name of the model; needed where a server has several"""
    user: str | None
    """name of the user: the fair order gives each user a turn"""
    cache_salt: str | None
    """vLLM's: only requests of equal salt share cached prefixes"""
    truncate: bool | None
    """whether texts that are too long are cut; otherwise they are errors"""
    truncate_prompt_tokens: int | None
    """[-1, 2147483648); vLLM's: number of tokens that texts are cut to; -1: as many as fit"""
    input: Required[str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]]
    """a text, texts, token ids, or lists of them"""
    dimensions: int | None
    """[1, 1048576]; number of an embedding's leading dimensions that are returned; null: all"""
    encoding_format: Literal["float", "base64"] | None
    """'base64': of little-endian float32"""
    prompt_name: str | None
    """name of the model's prompt that precedes each text"""
