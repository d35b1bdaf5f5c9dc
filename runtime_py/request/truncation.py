"""Cuts the texts of requests for vectors, scores and classes to the tokens that a model reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import RequestError
from ..shapes.vectors import PairsRequest, TruncatedRequest
from ..text.tokenizer import Tokenizer

# Characters that are tokenized for each token that is kept, at most: it bounds the work for texts
# of any length. Words of more characters a token are cut earlier than they need to be.
_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """What happens to texts that are too long.

    Attributes:
        most: tokens of a text, or of a query with its document, at most; special tokens count.
        cuts: whether longer ones are cut at their ends; otherwise they are an error.
        query: tokens that are kept of a query before that; None: all.
        document: tokens that are kept of a document before that; None: all.
    """

    most: int
    cuts: bool = False
    query: int | None = None
    document: int | None = None


def truncation_of(request: TruncatedRequest, longest: int) -> Truncation:
    """Return what a request says, for a model that reads `longest` tokens.

    Raises:
        RequestError: two fields contradict.
    """
    most, given = longest, request.truncate_prompt_tokens
    if given is not None:
        if request.truncate is False:
            raise RequestError(
                f"truncate is false and truncate_prompt_tokens is {given}: send one of them",
                param="truncate_prompt_tokens",
            )
        most = longest if given == -1 else min(given, longest)
    query, document = None, None
    if isinstance(request, PairsRequest):
        query, document = request.max_tokens_per_query, request.max_tokens_per_doc
    return Truncation(
        most=most,
        cuts=bool(request.truncate) or given is not None,
        query=query or None,
        document=document or None,
    )


def first_tokens(tokenizer: Tokenizer, text: str, most: int | None) -> str:
    """Return the beginning of a text that has at most `most` tokens, without special ones."""
    if most is None:
        return text
    text = text[: _CHARACTERS * most]
    (made,) = tokenizer.backend.encode_batch([text], add_special_tokens=False)
    if len(made.ids) <= most:
        return text
    # A character of several tokens is left out as a whole.
    return text[: min(made.offsets[most - 1][1], made.offsets[most][0])]


def cut_text(tokenizer: Tokenizer, text: str, most: int) -> list[int]:
    """Return the tokens of a text, cut at its end; special tokens after it stay."""
    ids = tokenizer.encode(text[: _CHARACTERS * most])
    if len(ids) <= most:
        return ids
    bare = tokenizer.encode("")
    kept = 0
    while kept < min(len(bare), most) and bare[-1 - kept] == ids[-1 - kept]:
        kept += 1
    return ids[: most - kept] + ids[len(ids) - kept :]


def cut_pair(tokenizer: Tokenizer, pair: tuple[str, str], most: int) -> tuple[list[int], list[int]]:
    """Return tokens and segments of a pair, the longer text cut first, as cross-encoders do.

    Raises:
        RequestError: `most` has no room for a token of each text.
    """
    first, second = (text[: _CHARACTERS * most] for text in pair)
    (made,) = tokenizer.backend.encode_batch([(first, second)], add_special_tokens=True)
    if len(made.ids) <= most:
        return made.ids, made.type_ids
    places = made.sequence_ids  # 0, 1, or None for a special token
    counts = places.count(0), places.count(1)
    room = most - (len(places) - sum(counts))
    if room < 2:
        raise RequestError(
            f"truncate_prompt_tokens is {most}; a pair of texts needs {most - room + 2} or more",
            param="truncate_prompt_tokens",
        )
    left = list(_longest_first(counts, room))
    kept = []
    for i, place in enumerate(places):
        if place is not None:
            left[place] -= 1
        if place is None or left[place] >= 0:
            kept.append(i)
    return [made.ids[i] for i in kept], [made.type_ids[i] for i in kept]


def _longest_first(counts: tuple[int, int], room: int) -> tuple[int, int]:
    """Return the tokens that two texts keep in `room` tokens: the longer one loses first."""
    short = min(counts)
    if 2 * short <= room:
        return (short, room - short) if counts[0] <= counts[1] else (room - short, short)
    half = room // 2
    return (half, room - half) if counts[0] <= counts[1] else (room - half, half)


def cut_prompt(
    tokenizer: Tokenizer, written: Callable[[str], str], document: str, most: int
) -> list[int] | None:
    """Return the tokens of a prompt whose document is cut; None: the rest is too long by itself.

    `written` returns the prompt with a document in it.
    """
    document = document[: _CHARACTERS * most]
    while True:
        ids = tokenizer.encode(written(document), add_special_tokens=False)
        if len(ids) <= most:
            return ids
        count = len(tokenizer.encode(document, add_special_tokens=False))
        kept = count - (len(ids) - most)
        shorter = first_tokens(tokenizer, document, kept) if kept > 0 else ""
        if not shorter or shorter == document:
            return None
        document = shorter
