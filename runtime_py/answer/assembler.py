"""Turns the core's events for one choice into pieces of its text, reasoning and tool calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from wherry.errors import WherryError

from ..core.interface import NO_TOKEN_LEFT, Event, Finish, Job
from ..errors import RequestError
from ..request.plan import RequestPlan
from ..text.detokenizer import detokenizer
from ..text.stop_strings import StopAutomaton, StopStrings
from ..text.tokenizer import Tokenizer
from ..tools.parts import CallBegin, CallEnd, Part, Reasoning, joined
from .delta import Delta, LoggedToken, Pieces, PromptToken
from .shapes import FinishReason


class Assembler:
    """Assembles the parts (text, reasoning, tool calls) of one choice from the core's events.

    A token's logprob is released with the last character of its text. Text goes from the
    detokenizer through the stop strings, which see everything that the model writes, to the parser.

    Attributes:
        sampled: number of tokens so far, a stop token included.
        reasoning: number of these tokens that are reasoning.
        seconds: seconds spent in the queue, on the prompt and on the output.
        cached: number of prompt tokens that were found in the prefix cache.
        drafted: number of draft tokens that the model has verified.
        accepted: number of draft tokens that the model has accepted.
        finish: why the choice ended; None while it runs.
        must_abort: whether a stop string or the parser ended the choice, so that the core must
            still be told to abort the request.
    """

    def __init__(
        self, job: Job, plan: RequestPlan, tokenizer: Tokenizer, stops: StopAutomaton
    ) -> None:
        self.index = job.index
        self._stop_ids = frozenset(job.params.stop_ids) - plan.shown_ids
        self._min_tokens = job.params.min_tokens
        self._tokenizer = tokenizer
        context = job.prompt if plan.continues and not plan.echo else ()
        self._detokenizer = detokenizer(tokenizer, context, plan.visible)
        self._parser = plan.parser()
        self._shows_reasoning = plan.show_reasoning
        self._called = False
        self._undecided = 0  # number of tokens that have produced no part yet
        # prompt tokens whose text is not released yet
        self._echo = deque(job.prompt if plan.echo else ())
        self._echo_size = len(self._echo)
        self._writes = plan.writes
        self._stops = StopStrings(stops)
        self._wants_logprobs = plan.logprobs
        self._wants_prompt = plan.prompt_logprobs
        self._prompt: list[PromptToken] = []  # echoed prompt tokens that are not released yet
        # each token with the position at which its text ends
        self._logged: deque[tuple[int, LoggedToken]] = deque()
        self._decoded = 0  # characters that have left the detokenizer
        self._given = 0  # characters that the parser has received
        self.sampled = self.cached = self.drafted = self.accepted = self.reasoning = 0
        self.seconds = (0.0, 0.0, 0.0)
        self.finish: FinishReason | None = None
        self.must_abort = False

    def push(self, events: Iterable[Event]) -> Delta:
        """Process events and return the new delta; an ended choice ignores them.

        Raises:
            WherryError: the core failed on the request.
        """
        delta = Delta(self.index)
        parts: list[Part] = []
        for event in events:
            if self.finish is None:
                parts += self._parsed(event)
        delta.parts = joined(parts)
        delta.prompt, self._prompt = self._prompt, []
        delta.finish, delta.stop = self.finish, self._stops.found
        if self._wants_logprobs:
            delta.logprobs = self._released()
        return delta

    def _parsed(self, event: Event) -> list[Part]:
        """Parse the text of one event, and at the choice's end the text that was withheld."""
        thinks = self._parser.reasoning
        text = self._accept(event)
        self._given += len(text)
        parts = self._parser.push(text) if text else []
        if event.token >= 0 and not event.prompt and self._writes:
            self._count(parts, thinks=thinks or self._parser.reasoning)
        if self.finish is None and self._parser.done:
            self.finish = "stop"
            self.must_abort = event.finish == Finish.RUNNING
        if self.finish is not None:
            parts += self._parser.finish()
        self._called = self._called or any(isinstance(p, CallBegin) for p in parts)
        cut = any(isinstance(p, CallEnd) and not p.whole for p in parts)
        if self.finish == "stop" and self._called and not (cut and self._stops.stopped):
            self.finish = "tool_calls"
        if not self._shows_reasoning:
            parts = [p for p in parts if not isinstance(p, Reasoning)]
        return parts

    def _count(self, parts: list[Part], *, thinks: bool) -> None:
        """Count a token as reasoning or not; a marker's last token decides for the whole marker."""
        self._undecided += 1
        if thinks:
            self.reasoning += self._undecided
        if thinks or parts:
            self._undecided = 0

    def _accept(self, event: Event) -> str:
        if event.finish == Finish.ERROR and NO_TOKEN_LEFT in event.error:
            raise RequestError(event.error, code="no_token_possible")
        if event.finish == Finish.ERROR:
            raise WherryError(event.error or "The model failed while it ran this request")
        if event.finish == Finish.ABORTED:
            raise WherryError("The request was aborted")
        text = self._echoed(event)
        if event.prompt:
            if self._wants_prompt:
                self._prompt.append(PromptToken(event.token, event.logprob, event.top))
            return text
        if not self._writes:
            self.finish = "length"
            self.must_abort = event.finish == Finish.RUNNING
            return text
        if event.token >= 0:
            self.sampled += 1
            self.cached = event.cached_tokens
            self.drafted, self.accepted = event.drafted_tokens, event.accepted_tokens
            self.seconds = event.queue_seconds, event.prefill_seconds, event.decode_seconds
        if event.token >= 0 and event.token not in self._stop_ids:
            text += self._text(event)
        # the model sampled a stop id, or a token that completed the grammar
        if event.finish == Finish.STOP:
            self.finish = "stop"
        if event.finish == Finish.LENGTH and self.finish is None:
            self.finish = "length"
        if self.finish is not None and not self._stops.stopped:
            # an unfinished character is left out
            text += self._stops.push(self._detokenizer.flush().rstrip("\N{REPLACEMENT CHARACTER}"))
            text += self._stops.flush()
            self.finish = "stop" if self._stops.stopped else self.finish
        return text

    def _echoed(self, event: Event) -> str:
        """Return the prompt's text up to this event's token.

        The first output token releases the rest. The core has events of prompt tokens only if their
        logprobs were requested, and none for the first. Stop strings are not searched in the
        prompt.
        """
        text = ""
        while self._echo:
            last = event.prompt and len(self._echo) < self._echo_size
            text += self._piece(self._echo.popleft(), event if last else None)
            if last:
                break
        return text

    def _text(self, event: Event) -> str:
        if self.sampled <= self._min_tokens:  # stop strings are not searched in these
            return self._piece(event.token, event)
        text = self._stops.push(self._piece(event.token, event))
        if self._stops.stopped:
            self.finish = "stop"
            self.must_abort = event.finish == Finish.RUNNING
        return text

    def _piece(self, token: int, event: Event | None) -> str:
        """Return a token's text, and record the token with its logprobs from the event."""
        piece = self._detokenizer.push(token)
        if self._wants_logprobs:
            logged = LoggedToken(
                self._tokenizer.piece(token),
                event.logprob if event else None,
                Pieces(event.top, self._tokenizer.piece) if event and event.top else (),
                self._decoded,
            )
            self._logged.append((self._decoded + len(piece), logged))
        self._decoded += len(piece)
        return piece

    def _released(self) -> list[LoggedToken]:
        """Return the tokens whose text is released, at the end of the choice even in part."""
        ready: list[LoggedToken] = []
        while self._logged and (
            self._logged[0][0] <= self._given
            if self.finish is None
            else self._logged[0][1].offset < self._given or not self._stops.stopped
        ):
            ready.append(self._logged.popleft()[1])
        return ready
