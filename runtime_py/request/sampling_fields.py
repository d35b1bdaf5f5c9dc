"""The sampling fields of requests, and their translation to the core's parameters.

The names are OpenAI's, and as extensions those of vLLM (`min_tokens`, `bad_words`,
`allowed_token_ids`, `priority`, ...) and of llama.cpp's server (`typical_p`, `dry_*`, `mirostat`,
`dynatemp_*`, ...). Requests cannot bring code that changes logits. They express its usual purposes
as data (`logit_bias`, `bad_words`, `allowed_token_ids`, `min_tokens`, grammars), which can be
checked, batched, and applied on a device.

The order in which the core applies them is in engine/sampling/sampler.h.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.interface import SamplingParams
from ..errors import RequestError
from ..shapes.fields import SamplingFields
from ..text.tokenizer import Tokenizer

# maximum number of characters in all bad_words: each choice of a request has their tokens
MAX_BAD_WORDS = 2**16
_BREAKERS = ("\n", ":", '"', "*")  # default of `dry_sequence_breakers`, as in llama.cpp
_ALL = -1  # the value by which llama.cpp's clients ask for no limit


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlanner:
    """Translates the fields to the core's parameters, for one model.

    Attribute `defaults` is the content of generation_config.json. Its temperature, top_p, top_k,
    min_p and typical_p apply unless it has `"do_sample": false`; its repetition_penalty always
    does.
    """

    tokenizer: Tokenizer
    vocab_size: int
    defaults: Mapping[str, Any]

    def params(self, asked: SamplingFields, *, max_tokens: int) -> SamplingParams:
        """Return the core's parameters for sampling fields.

        Max_tokens 0: until the context is full.

        Raises:
            RequestError: the model does not have a token id, or fields contradict each other.
        """
        self._check_ids("logit_bias", list(asked.logit_bias or ()))
        self._check_ids("allowed_token_ids", asked.allowed_token_ids or ())
        self._check_ids("stop_token_ids", asked.stop_token_ids or ())
        if max_tokens and (asked.min_tokens or 0) > max_tokens:
            raise RequestError(
                f"min_tokens is {asked.min_tokens}; the output has at most {max_tokens}",
                param="min_tokens",
            )
        return SamplingParams(
            max_tokens=max_tokens,
            min_tokens=asked.min_tokens or 0,
            stop_ids=tuple(
                dict.fromkeys(
                    (
                        *(() if asked.ignore_eos else self.tokenizer.eos_ids),
                        *(asked.stop_token_ids or ()),
                    )
                )
            ),
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
            "temperature": 0.0 if asked.do_sample is False else choose("temperature", 1.0),
            "dynamic_range": asked.dynatemp_range or 0.0,
            "dynamic_exponent": asked.dynatemp_exponent or 1.0,
            "top_p": choose("top_p", 1.0),
            "top_k": max(int(choose("top_k", 0)), 0),  # some clients send -1 for "all tokens"
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
        """Return each word's tokens twice: as at the beginning of a text, and as after a space.

        Raises:
            RequestError: the words are too long.
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
