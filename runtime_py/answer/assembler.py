"""From the events of one choice to pieces of its text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from wherry.errors import WherryError

from ..core.interface import Event, Finish
from ..request.plan import Job, Plan
from ..text.detokenizer import detokenizer
from ..text.stop_strings import StopAutomaton, StopStrings
from ..text.tokenizer import Tokenizer
from .shapes import FinishReason


@dataclass(frozen=True, slots=True)
class LoggedToken:
    """A token with its log probability, as both of OpenAI's shapes need it."""

    piece: bytes
    logprob: float | None  # None: the first of a prompt
    top: list[tuple[bytes, float]]
    offset: int  # characters of the output before it


@dataclass(slots=True)
class Delta:
    """What some events add to one choice."""

    index: int
    text: str = ""
    logprobs: list[LoggedToken] = field(default_factory=list)
    finish: FinishReason | None = None


class Assembler:
    """Text of one choice. A token's logprob is given out with the last of its text.

    Attributes:
        sampled: tokens so far, a stop token included.
        cached: tokens of the prompt that were found in the prefix cache.
        drafted: tokens guessed ahead; accepted: of them, right.
        finish: why the choice ended; None while it goes on.
        must_abort: it ended by a stop string, of which the core knows nothing.
    """

    def __init__(self, job: Job, plan: Plan, tokenizer: Tokenizer, stops: StopAutomaton) -> None:
        self.index = job.index
        self._stop_ids = frozenset(job.params.stop_ids)
        self._tokenizer = tokenizer
        context = job.prompt if plan.continues and not plan.echo else ()
        self._detokenizer = detokenizer(tokenizer, context)
        self._echo = deque(job.prompt if plan.echo else ())  # of the prompt, not given out yet
        self._echo_size = len(self._echo)
        self._stops = StopStrings(stops)
        self._wants_logprobs = plan.logprobs
        self._logged: deque[tuple[int, LoggedToken]] = deque()  # (where its text ends, token)
        self._decoded = 0  # characters that came out of the detokenizer
        self._given = 0  # characters that were given out
        self.sampled = self.cached = self.drafted = self.accepted = 0
        self.finish: FinishReason | None = None
        self.must_abort = False

    def push(self, events: Iterable[Event]) -> Delta:
        """What these events add; nothing once the choice has ended.

        Raises:
            WherryError: the core gave the request up.
        """
        delta = Delta(self.index)
        for event in events:
            if self.finish is None:
                delta.text += self._accept(event)
        self._given += len(delta.text)
        delta.finish = self.finish
        if self._wants_logprobs:
            delta.logprobs = self._released()
        return delta

    def _accept(self, event: Event) -> str:
        if event.finish == Finish.ERROR:
            raise WherryError(event.error or "The model failed while it ran this request")
        if event.finish == Finish.ABORTED:
            raise WherryError("The request was aborted")
        text = self._echoed(event)
        if event.prompt:
            return text
        if event.token >= 0:
            self.sampled += 1
            self.cached = event.cached_tokens
            self.drafted, self.accepted = event.drafted_tokens, event.accepted_tokens
        if event.token >= 0 and event.token not in self._stop_ids:
            text += self._text(event)
        if event.finish == Finish.STOP:  # a stop id, or the token that completes a grammar
            self.finish = "stop"
        if event.finish == Finish.LENGTH and self.finish is None:
            self.finish = "length"
        if self.finish is not None and not self._stops.stopped:
            text += self._stops.push(self._detokenizer.flush())
            text += self._stops.flush()
            self.finish = "stop" if self._stops.stopped else self.finish
        return text

    def _echoed(self, event: Event) -> str:
        """The prompt's text up to this token of it, or, with the first of the output, its rest.

        The core tells of each of the prompt's tokens but the first, and where logprobs of them are
        wanted only. No stop string is looked for.
        """
        text = ""
        while self._echo:
            last = event.prompt and len(self._echo) < self._echo_size
            text += self._piece(self._echo.popleft(), event if last else None)
            if last:
                break
        return text

    def _text(self, event: Event) -> str:
        text = self._stops.push(self._piece(event.token, event))
        if self._stops.stopped:
            self.finish = "stop"
            self.must_abort = event.finish == Finish.RUNNING
        return text

    def _piece(self, token: int, event: Event | None) -> str:
        """A token's text; logged, with what the event says of it."""
        piece = self._detokenizer.push(token)
        if self._wants_logprobs:
            logged = LoggedToken(
                self._tokenizer.piece(token),
                event.logprob if event else None,
                [(self._tokenizer.piece(i), p) for i, p in event.top] if event else [],
                self._decoded,
            )
            self._logged.append((self._decoded + len(piece), logged))
        self._decoded += len(piece)
        return piece

    def _released(self) -> list[LoggedToken]:
        """Tokens whose text is out: all of it, or, at the end, its beginning."""
        ready: list[LoggedToken] = []
        while self._logged and (
            self._logged[0][0] <= self._given
            if self.finish is None
            else self._logged[0][1].offset < self._given or not self._stops.stopped
        ):
            ready.append(self._logged.popleft()[1])
        return ready
