"""Turns a request into jobs for the core: prompt tokens, parameters, seeds."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..caller import Caller
from ..core.interface import MAX_TOP_LOGPROBS, Job, OutputGrammar, SamplingParams
from ..errors import ContextOverflow, RequestError
from ..grammar.constraint import Constraint
from ..grammar.fields import FIELDS, constraint_of, given_fields
from ..shapes.requests import ChatRequest, CompletionRequest, SamplingRequest
from ..text import fill_in
from ..text.chat_template import ChatTemplate
from ..text.tokenizer import Tokenizer, TooManyTokens
from ..tools.dialect import Dialect
from ..tools.parts import Parser, PlainParser
from ..tools.talk import Talk
from .continuation import marked, up_to, with_prefix
from .dropped_turns import without_oldest
from .sampling_fields import SamplingPlanner
from .sources import SourceReader

# number of characters of a predicted output for each token; the rest of the prediction is ignored
MAX_PREDICTED = 16
# maximum number of logprobs in all choices of a request, of about 60 bytes each
MAX_LOGPROBS = 2**21
# OpenAI's default for max_tokens of /v1/completions; for a chat it is the rest of the context.
COMPLETION_MAX_TOKENS = 16
_SEED_STEP = 0x9E3779B97F4A7C15  # odd, so that all `n` choices have different seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """A request that is ready for the core: its jobs, and the facts that its response needs."""

    jobs: list[Job]
    # makes the constraint of the outputs: it takes long, and the jobs get the grammar afterwards
    constraint: Callable[[], Constraint] | None = None
    stops: tuple[str, ...]
    keeps_stops: bool = False  # whether the output includes the stop string that ends it
    shown_ids: frozenset[int] = frozenset()  # stop tokens whose text belongs to the output
    logprobs: bool  # whether the client asked for logprobs of the output
    # whether the client asked for logprobs of the prompt (vLLM's field)
    prompt_logprobs: bool = False
    # whether the output continues the prompt's text, so that the detokenizer needs its end
    continues: bool
    echo: bool = False  # whether the response begins with the prompt's text
    # whether the response has output; if false, it drops the one token that the core samples
    writes: bool = True
    prompt_tokens: int  # number of prompt tokens; each prompt counts once, for any n
    n: int  # number of choices for each prompt; the jobs of a prompt are consecutive
    include_usage: bool
    parser: Callable[[], Parser] = PlainParser  # creates the parser of one choice
    visible: frozenset[int] = frozenset()  # special tokens that the parser receives by name
    show_reasoning: bool = True
    may_call: bool = False  # whether the request offers tools to the model
    forced: bool = False  # whether the request asks for one tool by name
    dropped_messages: int = 0  # messages that `truncation` has left out
    adapted: tuple[str, ...] = ()  # how the messages were adapted to the chat template

    def at_most(self, tokens: int | None) -> RequestPlan:
        """Return the plan with outputs limited to this number of tokens; None: no further limit.

        Protocols whose limits may exceed the context plan a request without a limit, so that its
        outputs reach to the end of the context, and then limit the plan.
        """
        if tokens is None:
            return self
        return self._with(lambda p: replace(p, max_tokens=min(p.max_tokens, tokens)))

    def held_to(self, grammar: OutputGrammar) -> RequestPlan:
        """Return the plan with outputs that follow the grammar of its constraint."""
        return self._with(lambda p: replace(p, grammar=grammar))

    def _with(self, change: Callable[[SamplingParams], SamplingParams]) -> RequestPlan:
        jobs = [replace(job, params=change(job.params)) for job in self.jobs]
        return replace(self, jobs=jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlanner:
    """Plans requests for one model.

    Attributes:
        defaults: generation_config.json (see SamplingPlanner); a field that it lacks has OpenAI's
            default (temperature 1, top_p 1).
        dialect: the format in which the model writes tool calls and reasoning.
        sources: how an encoder-decoder reads prompts; None: prompts are the decoder's first tokens.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None
    context: int  # maximum number of tokens of prompt and output together
    vocab_size: int
    defaults: Mapping[str, Any]
    dialect: Dialect | None = None
    sources: SourceReader | None = None

    @property
    def chats(self) -> bool:
        """Tell whether the model answers chats."""
        return self.template is not None and self.sources is None

    def chat(self, request: ChatRequest, caller: Caller, context: int | None = None) -> RequestPlan:
        """Plan a chat request: render the messages, tokenize them, and choose the parameters.

        Args:
            request: the chat.
            caller: the client.
            context: number of tokens to which `truncation` shortens the conversation; None: the
                model's context.

        Raises:
            Abandoned: the client has gone.
            RequestError: the model has no template, the content is not text, or the prompt is too
                long for the context.
        """
        request, dropped = without_oldest(
            with_prefix(request), context or self.context, lambda chat: self._length(chat, caller)
        )
        talk, text, changes = self._rendered(request, caller)
        prompt = self.encoded(text, caller, "messages", add_special_tokens=False)
        asked = request.max_completion_tokens or request.max_tokens or 0
        wanted = bool(request.logprobs)
        if request.top_logprobs and not wanted:
            raise RequestError("top_logprobs needs logprobs: true", param="top_logprobs")
        constraint = talk.constraint(text, self._constraint(request))
        params = self._params(request, asked, request.top_logprobs or 0)
        if not request.ignore_eos:
            params = replace(params, stop_ids=(*params.stop_ids, *talk.stop_ids(params.stop_ids)))
        if predicted := _predicted_text(request):
            predicted = predicted[: MAX_PREDICTED * self.context]
            params = replace(params, prediction=tuple(self._prediction(predicted, caller)))
        continues = bool(request.continue_final_message)
        plan = self._plan(request, [prompt], params, wanted, "messages", continues=continues)
        return replace(
            plan,
            constraint=constraint,
            parser=talk.parser(text, held=constraint is not None),
            visible=talk.visible,
            show_reasoning=request.include_reasoning is not False,
            may_call=talk.may_call,
            forced=talk.forced,
            dropped_messages=dropped,
            adapted=changes,
        )

    def nothing(self, request: ChatRequest) -> RequestPlan:
        """Return a plan without output for messages of which the template makes no prompt.

        The core computes one token, because it has no empty requests.
        """
        params = self._params(request, 1, 0)
        plan = self._plan(request, [[0]], params, False, "messages", continues=False)
        return replace(plan, writes=False, prompt_tokens=0)

    def _length(self, request: ChatRequest, caller: Caller) -> int:
        """Return the number of a chat's prompt tokens; more than the context may be any such."""
        try:
            return len(self.prompt_of(request, caller))
        except RequestError as e:
            if e.code != "context_length_exceeded":
                raise
            return self.context + 1

    def prompt_of(
        self, request: ChatRequest, caller: Caller, *, add_special_tokens: bool = False
    ) -> list[int]:
        """Return the token ids of a chat's messages in the model's template.

        Errors as in `chat`.
        """
        _, text, _ = self._rendered(with_prefix(request), caller)
        return self.encoded(text, caller, "messages", add_special_tokens=add_special_tokens)

    def _rendered(self, request: ChatRequest, caller: Caller) -> tuple[Talk, str, tuple[str, ...]]:
        """Return the chat in the model's dialect, its prompt, and how the messages were adapted."""
        if self.template is None or self.sources is not None:
            lacks = "has no chat template" if self.sources is None else "reads a source, no chat"
            raise RequestError(
                f"This model {lacks}. Use completions: POST /v1/completions, or "
                "engine.completions.create(prompt=...).",
                param="messages",
                code="no_chat_template",
            )
        talk = Talk(request, self.dialect or Dialect(self.template), self.tokenizer)
        messages, mark = marked(request, talk.messages)
        opens = not mark and _adds_generation_prompt(request)
        variables = {**talk.variables, "add_generation_prompt": opens}
        text, changes = talk.dialect.rendered(messages, caller, **variables)
        caller.check()
        return talk, up_to(mark, text), changes

    def _prediction(self, text: str, caller: Caller) -> list[int]:
        caller.check()
        return self.tokenizer.encode(text, add_special_tokens=False)[: self.context]

    def completion(self, request: CompletionRequest, caller: Caller) -> RequestPlan:
        """Plan completions: `n` choices for each prompt, in the order of the prompts.

        Raises:
            Abandoned: the client has gone.
            RequestError: a prompt is empty, has an unknown id or is too long for the context.
        """
        prompts = [
            self.encoded(p, caller, "prompt") if isinstance(p, str) else p
            for p in prompts_of(request.prompt)
        ]
        if self.sources is not None:
            self.sources.refuse(request)
        if request.suffix:
            prompts = self._with_gap(request, prompts, caller)
        if request.max_tokens == 0 and not request.echo:
            raise RequestError(
                "max_tokens is 0: nothing would be written. With echo the prompt is, and its "
                "logprobs",
                param="max_tokens",
            )
        asked = COMPLETION_MAX_TOKENS if request.max_tokens is None else max(request.max_tokens, 1)
        # The default number of output tokens is shortened if it does not fit; a requested one is
        # refused.
        if request.max_tokens is None and prompts:
            asked = max(1, min(asked, self.context - max(self._before_output(p) for p in prompts)))
        params = self._params(request, asked, request.logprobs or 0)
        wanted = request.logprobs is not None
        if request.echo and wanted:
            most = max(params.prompt_logprobs, params.top_logprobs)
            params = replace(params, prompt_logprobs=most)
        if request.suffix and not request.ignore_eos:
            ends = (*params.stop_ids, *fill_in.stop_ids(self.tokenizer))
            params = replace(params, stop_ids=tuple(dict.fromkeys(ends)))
        continues = self.sources is None
        plan = self._plan(request, prompts, params, wanted, "prompt", continues=continues)
        return replace(
            plan,
            constraint=self._constraint(request),
            echo=bool(request.echo),
            writes=request.max_tokens != 0,
        )

    def _with_gap(
        self, request: CompletionRequest, prompts: Sequence[list[int]], caller: Caller
    ) -> list[list[int]]:
        """Return prompts with a suffix as fill-in-the-middle prompts; the model fills the gap."""
        suffix, way = request.suffix or "", fill_in.way_of(self.tokenizer)
        if way is None:
            raise RequestError(
                "suffix is not supported by this model: its vocabulary has no tokens to fill "
                "gaps with (such as <|fim_prefix|>)",
                param="suffix",
                code="unsupported_parameter",
            )
        if request.echo:
            raise RequestError("echo and suffix exclude each other", param="echo")
        # the suffix is tokenized alone to check its length
        self.encoded(suffix, caller, "suffix", add_special_tokens=False)
        return [fill_in.prompt(self.tokenizer, way, p, suffix) for p in prompts]

    def encoded(
        self, text: str, caller: Caller, field: str, *, add_special_tokens: bool = True
    ) -> list[int]:
        """Return the token ids of a text; a text that is far too long is not tokenized to its end.

        Raises:
            Abandoned: the client has gone.
            RequestError: the text is far too long for the context.
        """
        caller.check()
        try:
            return self.tokenizer.encode_at_most(
                text, self.context, caller, add_special_tokens=add_special_tokens
            )
        except TooManyTokens as e:
            raise ContextOverflow(
                self.context,
                e.at_least,
                1,
                field=field,
                hint=f"The {field} has {len(text)} characters.",
                at_least=True,
            ) from e

    def _plan(
        self,
        request: SamplingRequest,
        prompts: Sequence[list[int]],
        params: SamplingParams,
        logprobs: bool,
        field: str,
        *,
        continues: bool,
    ) -> RequestPlan:
        for prompt in prompts:
            self.check(prompt, params, field)
        seed = secrets.randbits(64) if request.seed is None else request.seed
        n = request.n or 1
        jobs = [
            self._job(i, prompt, params, seed + i * _SEED_STEP)
            for i, prompt in enumerate(p for p in prompts for _ in range(n))
        ]
        self._check_logprobs(request, jobs, logprobs=logprobs)
        return RequestPlan(
            jobs=jobs,
            stops=request.stops,
            keeps_stops=bool(request.include_stop_str_in_output),
            shown_ids=frozenset(
                request.stop_token_ids or () if request.include_stop_str_in_output else ()
            ),
            logprobs=logprobs,
            prompt_logprobs=request.prompt_logprobs is not None,
            continues=continues,
            prompt_tokens=sum(map(len, prompts)),
            n=n,
            include_usage=bool(request.stream_options and request.stream_options.include_usage),
        )

    def _check_logprobs(
        self, request: SamplingRequest, jobs: Sequence[Job], *, logprobs: bool
    ) -> None:
        """Refuse too many logprobs, counted over all choices, before they take any memory."""
        first = jobs[0].params
        each = first.top_logprobs + 1 if logprobs else 0
        tokens = sum(job.params.max_tokens for job in jobs)
        of_prompts = (first.prompt_logprobs + 1) * sum(len(job.prompt) for job in jobs)
        accepted = max(MAX_LOGPROBS, self.context * (MAX_TOP_LOGPROBS + 1))
        if each * tokens + of_prompts <= accepted:
            return
        name = "top_logprobs" if isinstance(request, ChatRequest) else "logprobs"
        fields = {
            f"n x max_tokens x ({name} + 1)": each * tokens,
            "n x the prompt's tokens x (prompt_logprobs + 1)": of_prompts,
        }
        told = " and ".join(f"{what} is {count}" for what, count in fields.items() if count)
        raise RequestError(
            f"{told}, of {len(jobs)} outputs; at most {accepted} log probabilities are given. "
            "Ask for fewer outputs, tokens or alternatives.",
            param=name if each else "prompt_logprobs",
        )

    def _before_output(self, prompt: Sequence[int]) -> int:
        """Return the number of the decoder's tokens before the output."""
        return len(prompt) if self.sources is None else len(self.sources.start)

    def _job(self, index: int, prompt: list[int], params: SamplingParams, seed: int) -> Job:
        room = self.context - self._before_output(prompt)
        params = replace(params, seed=seed % 2**64, max_tokens=params.max_tokens or room)
        if self.sources is None:
            return Job(index, prompt, params)
        return Job(index, list(self.sources.start), replace(params, source=tuple(prompt)))

    def check(self, prompt: Sequence[int], params: SamplingParams, field: str = "prompt") -> None:
        """Check that the core can take a prompt and its parameters.

        Raises:
            RequestError: the prompt or a parameter exceeds a limit; the message has the numbers.
        """
        if not prompt:
            raise RequestError(f"{field} is empty; the model needs at least one token", param=field)
        if self.sources is not None and not params.source:
            self.sources.check(len(prompt), params.max_tokens, self.context)
        else:
            self._check_fits(len(prompt), max(params.max_tokens, 1), field)
        if (worst := max(prompt)) >= self.vocab_size or min(prompt) < 0:
            raise RequestError(
                f"{field} holds token {worst}; ids go from 0 to {self.vocab_size - 1}", param=field
            )

    def _check_fits(self, prompt: int, output: int, field: str) -> None:
        if prompt + output > self.context:
            drop = 'truncation: "auto" drops the oldest turns.' if field == "messages" else ""
            raise ContextOverflow(self.context, prompt, output, field=field, hint=drop)

    def _params(self, request: SamplingRequest, max_tokens: int, top: int) -> SamplingParams:
        planner = SamplingPlanner(
            tokenizer=self.tokenizer, vocab_size=self.vocab_size, defaults=self.defaults
        )
        params = planner.params(request, max_tokens=max_tokens)
        if request.prompt_logprobs is not None and request.stream:
            raise RequestError("prompt_logprobs are not streamed", param="prompt_logprobs")
        return replace(
            params,
            prompt_logprobs=-1 if request.prompt_logprobs is None else request.prompt_logprobs,
            top_logprobs=top,
            user=number_of(request.safety_identifier or request.user),
            salt=number_of(request.cache_salt),
            max_drafts=-1 if request.max_drafts is None else request.max_drafts,
        )

    def _constraint(self, request: SamplingRequest) -> Callable[[], Constraint] | None:
        """Return what makes the constraint that the request's own fields ask for; None: none."""
        asked = {name: getattr(request, name) for name in FIELDS}
        if not given_fields(asked):
            return None

        def audited() -> Constraint:
            constraint = constraint_of(asked, self.tokenizer.is_special)
            assert constraint is not None, "a field is given"
            return constraint

        return audited


def _adds_generation_prompt(request: ChatRequest) -> bool:
    """Tell whether the prompt ends with the beginning of the assistant's turn."""
    given = (request.chat_template_kwargs or {}).get("add_generation_prompt")
    return (request.add_generation_prompt if given is None else given) is not False


def _predicted_text(request: ChatRequest) -> str:
    """Return the text that the output probably repeats; "" if the request predicts none."""
    if request.prediction is None:
        return ""
    content = request.prediction.content
    return content if isinstance(content, str) else "".join(part.text or "" for part in content)


def number_of(name: str | None) -> int:
    """Return a name's hash, which identifies a user or a salt to the core; 0 for None.

    Collisions are improbable.
    """
    if not name:
        return 0
    return int.from_bytes(hashlib.sha256(name.encode(errors="surrogatepass")).digest()[:8], "big")


def prompts_of(prompt: str | list[str] | list[int] | list[list[int]]) -> list[Any]:
    """Return the list of prompts in a request; each is a text or a list of token ids."""
    if isinstance(prompt, str) or not prompt or isinstance(prompt[0], int):
        return [prompt]
    return list(prompt)
