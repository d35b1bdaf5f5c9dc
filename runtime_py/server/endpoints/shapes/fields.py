"""The fields of sampling, with bounds.

Written by `make generated` of app/data/request_fields.json; not to be edited.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .counts import at_most
from .kinds import Biases, ShortText, TokenIds


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
    dry_sequence_breakers: Annotated[list[ShortText] | None, at_most(64, "words")] = None
    logit_bias: Biases = None  # maps a token id to the value added to its logit
    # texts that the output never contains
    bad_words: Annotated[list[ShortText] | None, at_most(1024, "words")] = None
    allowed_token_ids: TokenIds = None  # ids of the only tokens that may be sampled
    stop_token_ids: TokenIds = None  # vLLM's: ids of further tokens that end the output
    # number of output tokens before which no stop token is sampled
    min_tokens: int | None = Field(None, ge=0, lt=2147483648)
    # whether the end-of-text token is ignored, so that only the limit ends the output
    ignore_eos: bool | None = None
    # priority as in vLLM: lower values run first
    priority: int | None = Field(None, gt=-2147483648, lt=2147483648)
