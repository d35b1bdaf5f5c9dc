"""A loaded model with its engine, shared by MLCEngine and AsyncMLCEngine."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from wherry.artifact.head import ClassHead
from wherry.artifact.manifest import Manifest
from wherry.base import settings
from wherry.base.locks import Use
from wherry.errors import ModelError, UsageError, misnamed

from ..answer.openai import ChatReply, CompletionReply
from ..caller import Caller
from ..core.dispatcher import Dispatcher
from ..core.interface import Core, CoreStats
from ..core.readers import open_readers
from ..errors import RequestError
from ..grammar.compiler import GrammarCompiler
from ..grammar.constraint import Constraint
from ..grammar.native import Grammar
from ..grammar.turns import AUDITS
from ..request.plan import RequestPlan, RequestPlanner, prompts_of
from ..request.sources import SourceReader
from ..request.vectors import VectorPlanner
from ..shapes.requests import OF_CLIENTS, ChatRequest, CompletionRequest, R, parse
from ..shapes.vectors import EmbeddingRequest
from ..tools.dialect import Dialect
from ..tools.families import named
from . import loading
from .options import LoadOptions, checked, for_compiler
from .side_files import SideFiles
from .vectors import VectorModel


@dataclass(frozen=True, slots=True)
class Origin:
    """The compiled folder from which a model was loaded."""

    folder: Path
    manifest: Manifest
    use: Use  # marks the folder as used in the cache until the model is closed


class LoadedModel:
    """Tokenizer, template and core of one loaded model.

    Args:
        name: the model's name in responses.
        core: the C++ core, which this object starts, and closes in `close`.
        files: the tokenizer, the chat template, the sampling defaults, and the head for embeddings
            or scores.
        context: maximum tokens of one request; None: the compiled library's. A smaller KV cache
            limits it.
        max_batch: number of sequences that the core decodes together.
        tool_format: name of the model's tool-call format (wherry.runtime.tools.families); None: the
            chat template determines it.
        adapt_messages: whether messages that the chat template refuses or leaves out are rewritten.
        origin: the compiled folder; None: the model was not loaded from a folder.
    """

    def __init__(
        self,
        name: str,
        core: Core,
        files: SideFiles,
        *,
        context: int | None = None,
        max_batch: int = 1,
        tool_format: str | None = None,
        adapt_messages: bool = True,
        origin: Origin | None = None,
    ) -> None:
        self.name = name
        self.origin = origin
        self.tokenizer = tokenizer = files.tokenizer
        template = files.template
        self.max_batch = max_batch
        self.context = _context(core, context)
        # the context in tokens that the library was compiled for
        self.model_context = int(core.metadata["context"])
        vocab = core.metadata.get("vocab_size")
        self.entries: tuple[str, ...] = tuple(core.metadata.get("entries", ("forward",)))
        sources = None
        if "encode" in self.entries:
            sources = SourceReader(files.decoder_start)
            if not sources.start:
                raise ModelError(
                    f"{name} reads sources, and its files do not tell with which token its decoder "
                    "begins: config.json has neither decoder_start_token_id nor pad_token_id"
                )
        if template:
            open_readers()  # a missing library fails the load, not a request
        self.planner = RequestPlanner(
            tokenizer=tokenizer,
            template=template,
            context=self.context,
            vocab_size=vocab if isinstance(vocab, int) else tokenizer.vocab_size,
            defaults=files.defaults,
            dialect=Dialect(template, tool_format, tokenizer.knows, adapts=adapt_messages)
            if template
            else None,
            sources=sources,
        )
        self.dispatcher = Dispatcher(core)
        self.vectors = VectorModel(
            name,
            VectorPlanner(
                planner=self.planner,
                entries=self.entries,
                head=files.head,
                size=core.metadata.get("embedding_size"),
            ),
            self.dispatcher,
            most_at_once=2 * max_batch,
        )
        self._grammars: GrammarCompiler | None = None
        self._grammars_lock = threading.Lock()

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        core_factory: loading.CoreFactory = loading.native_core,
        **options: Unpack[LoadOptions],
    ) -> LoadedModel:
        """Load a compiled folder, or compile a model and load it; arguments as in MLCEngine."""
        options = checked(options)
        threads = options.get("threads")
        threads = settings.threads() if threads is None else threads
        if threads is not None and threads < 1:
            raise UsageError(f"threads is {threads}; it takes a whole number from 1")
        if tool_format := options.get("tool_format"):
            named(tool_format)  # raises for an unknown name before the long load
        set_up = {} if threads is None else {"threads": threads}
        if options.get("cuda_graphs") is not None:
            set_up["cuda_graphs"] = int(bool(options["cuda_graphs"]))

        def opened(folder: Path) -> LoadedModel:
            use = Use(folder)
            manifest = loading.verified(folder)
            device = options.get("device") or loading.device_of(manifest)
            draft = loading.draft_of(options)
            config = loading.engine_config(manifest, options, device, draft)
            files = SideFiles.read(folder)
            draft_model = {"draft": draft} if draft else {}
            return cls(
                manifest.name,
                core_factory(folder, manifest, device, set_up, config, **draft_model),
                files,
                context=config.get("context"),
                max_batch=config.get("max_batch", 1),
                tool_format=tool_format,
                adapt_messages=options.get("adapt_messages") is not False,
                origin=Origin(folder, manifest, use),
            )

        resolve = partial(loading.resolve, model, **for_compiler(options))
        return loading.with_repair(model, resolve, opened)

    def chat(
        self, request: ChatRequest, caller: Caller | None = None, context: int | None = None
    ) -> tuple[RequestPlan, ChatReply]:
        """Return the plan of a chat request, and the writer of its response.

        Arguments as of `RequestPlanner.chat`.

        Raises:
            RequestError: the request cannot be served.
            BusyError: the queue is full; checked before tokenization.
        """
        self._require_text()
        self.dispatcher.check_room(request.n or 1)
        plan = self.planner.chat(request, caller or Caller(), context)
        name = request.model or self.name
        return plan, ChatReply(
            name, logprobs=plan.logprobs, forced=plan.forced, tools=plan.may_call
        )

    def completion(
        self, request: CompletionRequest, caller: Caller | None = None
    ) -> tuple[RequestPlan, CompletionReply]:
        """Return the plan of a completion request and the writer of its response.

        Errors as `chat`.
        """
        self._require_text()
        self.dispatcher.check_room((request.n or 1) * len(prompts_of(request.prompt)))
        plan = self.planner.completion(request, caller or Caller())
        return plan, CompletionReply(request.model or self.name, logprobs=plan.logprobs)

    def _require_text(self) -> None:
        if isinstance(self.vectors.head, ClassHead):
            raise RequestError(
                "This model gives classes or scores and writes no text: POST /classify or "
                "/v1/rerank",
                code="no_text",
            )
        if "forward" not in self.entries:
            raise RequestError(
                "This model gives embeddings and writes no text: POST /v1/embeddings, or "
                "engine.embeddings.create(input=...)",
                code="no_text",
            )

    def audit(self, plan: RequestPlan) -> Future[Constraint]:
        """Begin to make the constraint of a plan, in the turn of its tenant.

        Raises:
            BusyError: too much waits already.
        """
        assert plan.constraint is not None, "the plan has a constraint"
        return AUDITS.submit(_tenant_of(plan), plan.constraint)

    def begin_grammar(self, plan: RequestPlan, constraint: Constraint) -> Future[Grammar]:
        """Begin to compile a plan's constraint, in the turn of its tenant.

        The compiler is created at its first use, because most models need none; that reads the
        tokenizer's vocabulary, so call this on a thread.

        Errors as GrammarCompiler.begin.
        """
        with self._grammars_lock:
            if self._grammars is None:
                self._grammars = GrammarCompiler.of(self.tokenizer, self.planner.vocab_size)
        return self._grammars.begin(constraint, _tenant_of(plan))

    def constrained(self, plan: RequestPlan) -> RequestPlan:
        """Return the plan with its grammar; blocks while that is compiled.

        Raises:
            BusyError: too many grammars wait to be compiled.
            RequestError: the constraint cannot be enforced.
        """
        if plan.constraint is None:
            return plan
        return plan.held_to(self.begin_grammar(plan, plan.constraint()).result())

    def stats(self) -> CoreStats:
        """Return the core's counters."""
        return self.dispatcher.stats()

    def close(self) -> None:
        """End all requests and free the model; idempotent."""
        self.dispatcher.close()
        if self.origin:
            self.origin.use.close()
        if self._grammars is not None:
            self._grammars.close()


def _tenant_of(plan: RequestPlan) -> int:
    """The tenant as the engine tells it: the upper half of `user`."""
    return plan.jobs[0].params.user >> 32


def _context(core: Core, asked: int | None) -> int:
    """Return the maximum tokens of one request: no more than the KV cache, if there is one."""
    context = asked or int(core.metadata["context"])
    if core.metadata.get("groups") == []:
        return context
    stats = core.stats()
    return min(context, stats.pages_total * stats.page_size)


def parse_chat(fields: Mapping[str, Any]) -> ChatRequest:
    """Parse the arguments of `chat.completions.create`; an unknown name is a UsageError."""
    return _strict(ChatRequest, fields)


def parse_completion(fields: Mapping[str, Any]) -> CompletionRequest:
    """Parse the arguments of `completions.create`; an unknown name is a UsageError."""
    return _strict(CompletionRequest, fields)


def parse_embedding(fields: Mapping[str, Any]) -> EmbeddingRequest:
    """Parse the arguments of `embeddings.create`; an unknown name is a UsageError."""
    return _strict(EmbeddingRequest, fields)


def _strict(kind: type[R], fields: Mapping[str, Any]) -> R:
    own = sorted(kind.model_fields)
    # Found before a missing field is, which may be the one that is misspelled.
    if names := sorted({n for n, v in fields.items() if v is not None} - {*own, *OF_CLIENTS}):
        raise UsageError(f"Unknown arguments {misnamed(names, own)}; accepted are {', '.join(own)}")
    return parse(kind, fields)
