"""How tokens are chosen, as clients ask for it, and what the core is told.

The names are OpenAI's, and as extensions those of vLLM (`min_tokens`, `bad_words`,
`allowed_token_ids`, `priority`, ...) and of llama.cpp's server (`typical_p`, `dry_*`, `mirostat`,
`dynatemp_*`, ...). Custom code that changes logits is not accepted in any form: what such
processors are written for is asked for as data: `logit_bias`, `bad_words`, `allowed_token_ids`,
`min_tokens`, and grammars, which are masks. So it can be checked, batched, and run on a device.

The order in which the core applies them is in engine/sampling/sampler.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ..core.interface import SamplingParams
from ..text.tokenizer import Tokenizer
from .counts import at_most
from .errors import RequestError

TokenId = Annotated[int, Field(ge=0, lt=2**31)]
Word = Annotated[str, Field(min_length=1, max_length=1024)]

MAX_BIASES = 4096  # tokens of logit_bias
MAX_ALLOWED = 2**18  # tokens of allowed_token_ids: more than vocabularies have
MAX_BAD_WORDS = 2**16  # characters of all bad_words: each choice of a request has its tokens
_BREAKERS = ("\n", ":", '"', "*")  # llama.cpp's
_ALL = -1  # "no limit" to llama.cpp


class SamplingFields(BaseModel):
    """Fields of a request. None: the model's generation_config.json, else what changes nothing."""

    temperature: float | None = Field(None, ge=0, le=2)
    dynatemp_range: float | None = Field(None, ge=0, le=2)
    dynatemp_exponent: float | None = Field(None, gt=0, le=100)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, lt=2**31)
    min_p: float | None = Field(None, ge=0, lt=1)
    typical_p: float | None = Field(None, gt=0, le=1)
    top_n_sigma: float | None = Field(None, ge=-1, le=1000)  # 0 and below: none
    xtc_probability: float | None = Field(None, ge=0, le=1)
    xtc_threshold: float | None = Field(None, gt=0, le=1)  # above 0.5: none
    mirostat: Literal[0, 2] | None = None
    mirostat_tau: float | None = Field(None, gt=0, le=100)
    mirostat_eta: float | None = Field(None, gt=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    dry_multiplier: float | None = Field(None, ge=0, le=1000)
    dry_base: float | None = Field(None, ge=1, le=1000)
    dry_allowed_length: int | None = Field(None, ge=1, lt=2**31)
    dry_penalty_last_n: int | None = Field(None, ge=-1, lt=2**31)  # -1: all; 0: no DRY
    dry_sequence_breakers: Annotated[list[Word] | None, at_most(64, "texts")] = None
    logit_bias: Annotated[
        dict[TokenId, Annotated[float, Field(ge=-100, le=100)]] | None,
        at_most(MAX_BIASES, "tokens"),
    ] = None
    bad_words: Annotated[list[Word] | None, at_most(1024, "words")] = None
    allowed_token_ids: Annotated[
        list[TokenId] | None, Field(min_length=1), at_most(MAX_ALLOWED, "tokens")
    ] = None
    min_tokens: int | None = Field(None, ge=0, lt=2**31)
    ignore_eos: bool | None = None
    priority: int | None = Field(None, gt=-(2**31), lt=2**31)  # lower goes first, as in vLLM


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlanner:
    """From the fields to the core's parameters, for one model.

    `defaults` is generation_config.json. Its temperature, top_p, top_k, min_p and typical_p hold
    unless it says `"do_sample": false`; its repetition_penalty always does.
    """

    tokenizer: Tokenizer
    vocab_size: int
    defaults: Mapping[str, Any]

    def params(self, asked: SamplingFields, *, max_tokens: int) -> SamplingParams:
        """The core's parameters; max_tokens 0: until the context ends.

        Raises:
            RequestError: an id that the model does not have, or fields that contradict each other.
        """
        self._check_ids("logit_bias", list(asked.logit_bias or ()))
        self._check_ids("allowed_token_ids", asked.allowed_token_ids or ())
        if max_tokens and (asked.min_tokens or 0) > max_tokens:
            raise RequestError(
                f"min_tokens is {asked.min_tokens}; the output has at most {max_tokens}",
                param="min_tokens",
            )
        return SamplingParams(
            max_tokens=max_tokens,
            min_tokens=asked.min_tokens or 0,
            stop_ids=() if asked.ignore_eos else self.tokenizer.eos_ids,
            **self._probabilities(asked),
            **self._penalties(asked),
            bias=asked.logit_bias or {},
            bad_words=self._bad_words(asked.bad_words or ()),
            allowed=tuple(dict.fromkeys(asked.allowed_token_ids or ())),
            priority=-(asked.priority or 0),
        )

    def _choose(self, asked: SamplingFields, name: str, fallback: float, *, always: bool) -> float:
        value = getattr(asked, name)
        if value is None and (always or self.defaults.get("do_sample") is not False):
            value = self.defaults.get(name)
        return fallback if value is None else value

    def _probabilities(self, asked: SamplingFields) -> dict[str, Any]:
        def choose(name: str, fallback: float) -> float:
            return self._choose(asked, name, fallback, always=False)

        threshold = asked.xtc_threshold or 0.1
        excludes = asked.xtc_probability if threshold <= 0.5 else 0.0
        return {
            "temperature": choose("temperature", 1.0),
            "dynamic_range": asked.dynatemp_range or 0.0,
            "dynamic_exponent": asked.dynatemp_exponent or 1.0,
            "top_p": choose("top_p", 1.0),
            "top_k": max(int(choose("top_k", 0)), 0),  # -1 means all to some clients
            "min_p": choose("min_p", 0.0),
            "typical_p": choose("typical_p", 1.0),
            "top_n_sigma": max(asked.top_n_sigma or 0.0, 0.0),
            "xtc_probability": excludes or 0.0,
            "xtc_threshold": min(threshold, 0.5),
            "mirostat_tau": (asked.mirostat_tau or 5.0) if asked.mirostat else 0.0,
            "mirostat_eta": asked.mirostat_eta or 0.1,
        }

    def _penalties(self, asked: SamplingFields) -> dict[str, Any]:
        last = _ALL if asked.dry_penalty_last_n is None else asked.dry_penalty_last_n
        multiplier = (asked.dry_multiplier or 0.0) if last else 0.0
        breakers = asked.dry_sequence_breakers
        return {
            "repetition_penalty": self._choose(asked, "repetition_penalty", 1.0, always=True),
            "presence_penalty": asked.presence_penalty or 0.0,
            "frequency_penalty": asked.frequency_penalty or 0.0,
            "dry_multiplier": multiplier,
            "dry_base": 1.75 if asked.dry_base is None else asked.dry_base,
            "dry_allowed_length": asked.dry_allowed_length or 2,
            "dry_range": max(last, 0),
            "dry_breakers": (
                self.tokenizer.ids_with(_BREAKERS if breakers is None else breakers)
                if multiplier
                else ()
            ),
        }

    def _bad_words(self, words: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """Each word as it stands at the beginning of a text, and after a space.

        Raises:
            RequestError: they are too long.
        """
        if (size := sum(map(len, words))) > MAX_BAD_WORDS:
            raise RequestError(
                f"bad_words have {size} characters in all; at most {MAX_BAD_WORDS} are accepted",
                param="bad_words",
            )
        found: dict[tuple[int, ...], None] = {}
        for word in words:
            for text in (word, " " + word.lstrip()):
                if ids := tuple(self.tokenizer.encode(text, add_special_tokens=False)):
                    found[ids] = None
        return tuple(found)

    def _check_ids(self, field: str, ids: Sequence[int]) -> None:
        if unknown := [i for i in ids if i >= self.vocab_size]:
            raise RequestError(
                f"{field} names token {unknown[0]}; ids go from 0 to {self.vocab_size - 1}",
                param=field,
            )
