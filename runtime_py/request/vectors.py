"""Plans requests for embeddings, and for scores of pairs of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wherry.artifact.head import ClassHead, EmbeddingHead, Head, ScoreHead

from ..caller import Caller
from ..core.interface import Job, SamplingParams
from ..errors import RequestError
from ..shapes.vectors import (
    MAX_INPUTS,
    ClassifyRequest,
    EmbeddingRequest,
    PairsRequest,
    TruncatedRequest,
)
from ..text.chat_template import ChatTemplate
from ..text.tokenizer import TooManyTokens
from .plan import RequestPlanner, number_of, prompts_of
from .truncation import Truncation, cut_pair, cut_prompt, cut_text, first_tokens, truncation_of

_QUERIES = ("query",)  # names that sentence-transformers gives to the prompt before a query
_DOCUMENTS = ("document", "passage", "corpus")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorPlanner:
    """Plans requests for vectors or scores, for one model.

    Attributes:
        planner: the planner with the model's limits and tokenizer.
        entries: names of the functions in the compiled library.
        head: the content of wherry-head.json; None: the model generates text.
        size: the number of dimensions of an embedding; None: unknown before the first one.
    """

    planner: RequestPlanner
    entries: Sequence[str]
    head: Head | None
    size: int | None

    @property
    def pooling(self) -> EmbeddingHead:
        """Return how the model pools hidden states into an embedding."""
        return self.head if isinstance(self.head, EmbeddingHead) else EmbeddingHead()

    def embeddings(self, request: EmbeddingRequest, caller: Caller) -> list[Job]:
        """Return a job for each input of a request for embeddings.

        Raises:
            Abandoned: the client has gone.
            RequestError: the model has no embeddings or not this size, the input is empty or too
                long, or a prompt's name or a token id is unknown.
        """
        self._require_embeddings()
        inputs = prompts_of(request.input)
        if len(inputs) > MAX_INPUTS:
            raise RequestError(
                f"input has {len(inputs)} texts; at most {MAX_INPUTS} are accepted", param="input"
            )
        if request.dimensions and self.size and request.dimensions > self.size:
            raise RequestError(
                f"dimensions is {request.dimensions}; this model's embeddings have {self.size}",
                param="dimensions",
            )
        prompt = self._prompt(request.prompt_name)
        if request.prompt_name and not all(isinstance(text, str) for text in inputs):
            raise RequestError("prompt_name is for texts; input has token ids", param="prompt_name")
        return self.texts(inputs, prompt, caller, "input", request, self.truncation(request))

    def texts(
        self,
        inputs: Sequence[Any],
        prompt: str,
        caller: Caller,
        field: str,
        request: TruncatedRequest,
        cut: Truncation,
    ) -> list[Job]:
        """Return a job for each input: a text, which `prompt` precedes, or a list of token ids."""
        params = _embedded(request)
        jobs = []
        for i, given in enumerate(inputs):
            where = f"{field}[{i}]" if len(inputs) > 1 else field
            ids = given[: cut.most] if cut.cuts else given
            if isinstance(given, str):
                ids = self._tokens(prompt + given, caller, where, cut)
            self._check(ids, where)
            jobs.append(Job(i, ids, params))
        return jobs

    def pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None,
        caller: Caller,
        request: PairsRequest,
        cut: Truncation,
    ) -> list[Job]:
        """Return two jobs for each query and document, which ask for the logprobs of yes and no.

        Raises:
            Abandoned: the client has gone.
            RequestError: the model has no template, or a pair is too long.
        """
        head, template = self.head, self.planner.template
        assert isinstance(head, ScoreHead)
        if template is None:
            raise RequestError("This model has no chat template, which pairs are written in")
        if instruction is None and head.default_prompt is not None:
            instruction = head.prompts[head.default_prompt]
        params = SamplingParams(
            max_tokens=1,
            temperature=0.0,
            user=number_of(request.user),
            salt=number_of(request.cache_salt),
        )
        jobs: list[Job] = []
        for i, (query, document) in enumerate(pairs):
            written = partial(_written, template, query, instruction, caller)
            ids = self._prompted(written, document, caller, f"documents[{i}]", cut)
            self.planner.check(ids, params, f"documents[{i}]")
            for token in (head.yes, head.no):
                jobs.append(Job(len(jobs), ids, replace(params, allowed=(token,))))
        return jobs

    def classes(self, request: ClassifyRequest, caller: Caller) -> list[Job]:
        """Return a job for each text of a request for classes; their results are logits.

        Raises:
            Abandoned: the client has gone.
            RequestError: the model has no classes, or a text is empty or too long.
        """
        if not isinstance(self.head, ClassHead):
            raise RequestError(
                "This model has no classes. Serve a model for sequence classification, whose "
                "config.json names ...ForSequenceClassification",
                code="no_classes",
            )
        return self.texts(request.input, "", caller, "input", request, self.truncation(request))

    def matches(
        self,
        pairs: Sequence[tuple[str, str]],
        caller: Caller,
        request: PairsRequest,
        cut: Truncation,
    ) -> list[Job]:
        """Return a job for each query and document, whose result is the logit of a cross-encoder.

        Raises:
            Abandoned: the client has gone.
            RequestError: the model has several classes, or a pair is too long or holds a separator.
        """
        head = self.head
        assert isinstance(head, ClassHead)
        if len(head.labels) != 1:
            raise RequestError(
                f"This model has {len(head.labels)} classes, and a ranking needs a single score: "
                "POST /classify",
                code="no_scores",
            )
        params = _embedded(request)
        jobs = []
        for i, pair in enumerate(pairs):
            ids = self._paired(pair, head.separator, caller, f"documents[{i}]", cut)
            jobs.append(Job(i, ids, params))
        return jobs

    def _paired(
        self,
        pair: tuple[str, str],
        separator: int | None,
        caller: Caller,
        field: str,
        cut: Truncation,
    ) -> list[int]:
        """Return the tokens of a pair; the library finds the second text by the separator."""
        caller.check()
        tokenizer = self.planner.tokenizer
        if cut.cuts:
            ids, kinds = cut_pair(tokenizer, pair, cut.most)
        else:
            try:
                ids, kinds = tokenizer.encode_pair(*pair, self._longest, caller)
            except TooManyTokens as e:
                raise self._too_long(field, f"{e.at_least} tokens or more") from e
        self._check(ids, field)
        first = ids.index(separator) if separator in ids else len(ids)
        if (
            separator is not None
            and any(kinds)
            and kinds != [int(k > first) for k in range(len(ids))]
        ):
            name = self.planner.tokenizer.backend.id_to_token(separator)
            raise RequestError(
                f"{field} or the query contains {name}, the token between them", param="documents"
            )
        return ids

    def retrieval_prompts(self) -> tuple[str, str]:
        """Return the prompts before a query and before a document, by the names in the model."""
        head = self.pooling
        default = head.prompts.get(head.default_prompt or "", "")
        query, document = (
            next((head.prompts[n] for n in names if n in head.prompts), default)
            for names in (_QUERIES, _DOCUMENTS)
        )
        return query, document

    def require_similarity(self) -> EmbeddingHead:
        """Check that the angles of the model's embeddings mean similarity.

        Raises:
            RequestError: the model generates text and was not trained for similarity.
        """
        self._require_embeddings()
        if isinstance(self.head, EmbeddingHead):
            return self.head
        raise RequestError(
            "This model writes text: nothing says that its embeddings can be compared, nor which "
            "of its tokens mean yes and no. Serve an embedding model or a reranker in the layout "
            "of sentence-transformers (modules.json with Pooling, or with LogitScore)",
            code="no_scores",
        )

    def _prompt(self, name: str | None) -> str:
        head = self.pooling
        name = name if name is not None else head.default_prompt
        if name is None:
            return ""
        if name not in head.prompts:
            known = ", ".join(repr(n) for n in head.prompts) or "none"
            raise RequestError(
                f"prompt_name is {name[:100]!r}; this model's prompts are {known}",
                param="prompt_name",
            )
        return head.prompts[name]

    def _require_embeddings(self) -> None:
        if isinstance(self.head, ClassHead):
            raise RequestError(
                "This model has classes and no embeddings: POST /classify"
                + (" or /v1/rerank" if len(self.head.labels) == 1 else ""),
                code="no_embeddings",
            )
        if "embed" in self.entries:
            return
        if isinstance(self.head, ScoreHead):
            raise RequestError(
                "This model scores pairs of texts and has no embeddings: POST /v1/rerank",
                code="no_embeddings",
            )
        raise RequestError(
            "This model reads a source and writes a text, and has no embeddings: "
            "POST /v1/completions"
            if "encode" in self.entries
            else "This model was compiled by a version without embeddings. Compile it again: "
            "wherry compile MODEL -o DIR",
            code="no_embeddings",
        )

    @property
    def _longest(self) -> int:
        head = self.head if isinstance(self.head, ClassHead) else self.pooling
        return min(self.planner.context, head.max_tokens or self.planner.context)

    def _encoded(
        self, text: str, caller: Caller, field: str, *, add_special_tokens: bool = True
    ) -> list[int]:
        caller.check()
        try:
            return self.planner.tokenizer.encode_at_most(
                text, self._longest, caller, add_special_tokens=add_special_tokens
            )
        except TooManyTokens as e:
            raise self._too_long(field, f"{e.at_least} tokens or more") from e

    def truncation(self, request: TruncatedRequest) -> Truncation:
        """Return what a request says of texts that are too long; errors as in `truncation_of`."""
        return truncation_of(request, self._longest)

    def shortened(self, texts: Sequence[str], most: int | None, caller: Caller) -> Sequence[str]:
        """Return texts of at most `most` tokens each; None: as they are."""
        made = []
        for text in texts:
            caller.check()
            made.append(first_tokens(self.planner.tokenizer, text, most))
        return made

    def _tokens(self, text: str, caller: Caller, field: str, cut: Truncation) -> list[int]:
        if not cut.cuts:
            return self._encoded(text, caller, field)
        caller.check()
        return cut_text(self.planner.tokenizer, text, cut.most)

    def _prompted(
        self,
        written: Callable[[str], str],
        document: str,
        caller: Caller,
        field: str,
        cut: Truncation,
    ) -> list[int]:
        """Return the tokens of a reranker's prompt; `written` returns it for a document."""
        if not cut.cuts:
            return self._encoded(written(document), caller, field, add_special_tokens=False)
        caller.check()
        most = min(cut.most, self.planner.context - 1)  # a token for the answer
        ids = cut_prompt(self.planner.tokenizer, written, document, most)
        if ids is None:
            raise RequestError(
                f"At most {most} tokens are read, and the query and the prompt around it have "
                "more. Shorten the query.",
                param="query",
                code="context_length_exceeded",
            )
        return ids

    def _check(self, ids: Sequence[int], field: str) -> None:
        if not ids:
            raise RequestError(f"{field} is empty; the model needs at least one token", param=field)
        if len(ids) > self._longest:
            raise self._too_long(field, f"{len(ids)} tokens")
        vocab = self.planner.vocab_size
        if (worst := max(ids)) >= vocab or min(ids) < 0:
            raise RequestError(
                f"{field} holds token {worst}; ids go from 0 to {vocab - 1}", param=field
            )

    def _too_long(self, field: str, found: str) -> RequestError:
        return RequestError(
            f"This model reads at most {self._longest} tokens; {field} has {found}. Shorten it, or "
            'send "truncate": true, which cuts it at its end.',
            param=field,
            code="context_length_exceeded",
        )


def _embedded(request: TruncatedRequest) -> SamplingParams:
    """Return the parameters of a job without output."""
    user, salt = number_of(request.user), number_of(request.cache_salt)
    return SamplingParams(embed=1, user=user, salt=salt)


def _written(
    template: ChatTemplate, query: str, instruction: str | None, caller: Caller, document: str
) -> str:
    """Return a reranker's prompt, written with the roles that sentence-transformers uses."""
    messages = [{"role": "query", "content": query}, {"role": "document", "content": document}]
    if instruction is not None:
        messages.insert(0, {"role": "system", "content": instruction})
    return template.render(messages, caller=caller)
