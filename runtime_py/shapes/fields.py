"""The fields of requests.

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
    """None: generation_config.json, else what changes nothing."""

    temperature: float | None = Field(None, ge=0, le=2)  # 0: greedy
    # llama.cpp's; the temperature varies by this with the entropy
    dynatemp_range: float | None = Field(None, ge=0, le=2)
    dynatemp_exponent: float | None = Field(None, gt=0, le=100)  # llama.cpp's; of the entropy
    # nucleus: least set of tokens with this probability
    top_p: float | None = Field(None, gt=0, le=1)
    # only the k most likely tokens; 0, -1: all
    top_k: int | None = Field(None, ge=-1, lt=2147483648)
    # least share of the most likely token's probability
    min_p: float | None = Field(None, ge=0, lt=1)
    typical_p: float | None = Field(None, gt=0, le=1)  # locally typical sampling; 1: off
    # standard deviations of the logits; 0 and below: off
    top_n_sigma: float | None = Field(None, ge=-1, le=1000)
    xtc_probability: float | None = Field(None, ge=0, le=1)  # exclude top choices; 0: off
    xtc_threshold: float | None = Field(None, gt=0, le=1)  # above 0.5: off
    mirostat: Literal[0, 2] | None = None  # 2: on
    mirostat_tau: float | None = Field(None, gt=0, le=100)  # surprise that is aimed at, in bits
    mirostat_eta: float | None = Field(None, gt=0, le=1)  # learning rate
    presence_penalty: float | None = Field(None, ge=-2, le=2)  # of tokens in the output
    # of tokens in the output, for each occurrence
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    # of tokens in prompt and output; 1: off
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    # penalty of repeated sequences; 0: off
    dry_multiplier: float | None = Field(None, ge=0, le=1000)
    dry_base: float | None = Field(None, ge=1, le=1000)  # growth of the DRY penalty a token
    # tokens that may repeat without a penalty
    dry_allowed_length: int | None = Field(None, ge=1, lt=2147483648)
    # tokens that DRY looks back; -1: all; 0: off
    dry_penalty_last_n: int | None = Field(None, ge=-1, lt=2147483648)
    # texts that end a repeated sequence
    dry_sequence_breakers: Annotated[list[Word] | None, at_most(64, "words")] = None
    logit_bias: Biases = None  # token id -> added to its logit
    # texts that the output never completes
    bad_words: Annotated[list[Word] | None, at_most(1024, "words")] = None
    allowed_token_ids: TokenIds = None  # the only tokens that may be sampled
    min_tokens: int | None = Field(None, ge=0, lt=2147483648)  # no stop token is sampled before
    ignore_eos: bool | None = None  # the output ends at its limit alone
    # lower runs first, as in vLLM
    priority: int | None = Field(None, gt=-2147483648, lt=2147483648)


class SharedFields(RequestShape, SamplingFields):
    """What chats and completions share."""

    model: str = Field("", max_length=1024)
    max_tokens: int | None = Field(None, ge=1, le=2147483647)
    n: int | None = Field(None, ge=1, le=128)  # choices of each prompt
    # equal seeds give equal texts
    seed: int | None = Field(None, ge=-9223372036854775808, lt=18446744073709551616)
    stop: Stops = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, max_length=1024)
    safety_identifier: str | None = Field(None, max_length=1024)
    # vLLM's: only requests of equal salt share cached prefixes
    cache_salt: str | None = Field(None, max_length=1024)
    max_drafts: int | None = Field(None, ge=0, le=64)  # draft tokens a step; 0: none
    prompt_logprobs: PromptLogprobs = None  # vLLM's: alternatives of each prompt token; false: none
    response_format: dict[str, Any] | None = None  # OpenAI's: JSON, or a JSON Schema
    structured_outputs: dict[str, Any] | None = None  # vLLM's: json, regex, choice, grammar, ...
    guided_json: SchemaOrText = None
    guided_regex: str | None = None
    guided_choice: list[str] | None = None
    guided_grammar: str | None = None
    grammar: str | None = None  # llama.cpp's, in GBNF
    json_schema: Schema = None  # llama.cpp's


class ChatFields(BaseModel):
    """Of chats."""

    messages: Messages
    max_completion_tokens: int | None = Field(None, ge=1, le=2147483647)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=20)
    prediction: Prediction | None = None  # text that the answer repeats; changes only the time
    tools: Tools = None
    tool_choice: ToolChoice | None = None  # None: "auto" if there are tools
    parallel_tool_calls: bool | None = None  # false: at most one call
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )
    enable_thinking: bool | None = None  # a variable of templates; it overrides reasoning_effort
    # How reasoning is separated from text; "none": it stays in the content, as the model wrote it.
    reasoning_format: Literal["auto", "deepseek", "none"] | None = None
    separate_reasoning: bool | None = None  # false: as reasoning_format "none"
    include_reasoning: bool | None = None  # false: the answer has no reasoning
    # variables of the template; they override all others
    chat_template_kwargs: dict[str, Any] | None = None
    # vLLM's: whether the prompt ends with the beginning of the assistant's turn
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None  # vLLM's: the answer continues the last message


class CompletionFields(BaseModel):
    """Of completions."""

    prompt: Prompt
    suffix: str | None = None  # text after the gap that the model fills
    # 0 needs echo: the answer is the prompt
    max_tokens: int | None = Field(None, ge=0, le=2147483647)
    # the answer begins with the prompt, with its logprobs if they are requested
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=20)
