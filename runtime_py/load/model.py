"""A model in memory with its engine: what MLCEngine and AsyncMLCEngine both stand on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from wherry import settings
from wherry.artifact import Manifest
from wherry.errors import UsageError
from wherry.head import Head, read_head
from wherry.locks import Use

from ..answer.openai import ChatReply, CompletionReply
from ..core.dispatcher import Dispatcher
from ..core.interface import Core, CoreStats, OutputGrammar
from ..grammar.compiler import GrammarCompiler
from ..grammar.constraint import Constraint
from ..request.caller import Caller
from ..request.errors import RequestError
from ..request.plan import Plan, Planner, prompts_of
from ..request.shapes import ChatRequest, CompletionRequest, R, parse, unknown
from ..request.vector_shapes import EmbeddingRequest
from ..request.vectors import VectorPlanner
from ..text.chat_template import ChatTemplate
from ..text.tokenizer import Tokenizer
from ..tools.dialect import Dialect
from ..tools.families import named
from . import loading
from .options import LoadOptions, checked, for_compiler
from .vectors import VectorModel


class LoadedModel:
    """Tokenizer, template and core of one model.

    Args:
        name: what answers call the model.
        core: it is started here, and closed by `close`.
        tokenizer: the model's.
        template: its chat template, or None.
        defaults: generation_config.json.
        context: tokens of one request; None: the library's. A smaller KV cache bounds it.
        max_batch: rows that the core decodes together.
        head: what it does in place of writing text.
        use: of the folder that the model comes from; it ends when the model is closed.
        tool_format: how it calls tools (wherry.runtime.tools.families); None: its template tells.
        folder: that it comes from; `manifest` is its own.
    """

    def __init__(
        self,
        name: str,
        core: Core,
        tokenizer: Tokenizer,
        template: ChatTemplate | None,
        *,
        defaults: Mapping[str, Any] | None = None,
        context: int | None = None,
        max_batch: int = 1,
        head: Head | None = None,
        use: Use | None = None,
        tool_format: str | None = None,
        folder: Path | None = None,
        manifest: Manifest | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.manifest = manifest
        self.tokenizer = tokenizer
        self.max_batch = max_batch
        self.context = _context(core, context)
        self.model_context = int(core.metadata["context"])  # that it was compiled for
        vocab = core.metadata.get("vocab_size")
        self.planner = Planner(
            tokenizer=tokenizer,
            template=template,
            context=self.context,
            vocab_size=vocab if isinstance(vocab, int) else tokenizer.vocab_size,
            defaults=defaults or {},
            compile_grammar=self._compile_grammar,
            dialect=Dialect(template, tool_format, tokenizer.knows) if template else None,
        )
        self.dispatcher = Dispatcher(core)
        self.entries: tuple[str, ...] = tuple(core.metadata.get("entries", ("forward",)))
        self.vectors = VectorModel(
            name,
            VectorPlanner(
                planner=self.planner,
                entries=self.entries,
                head=head,
                size=core.metadata.get("embedding_size"),
            ),
            self.dispatcher,
            most_at_once=2 * max_batch,
        )
        self._use = use
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
        """Load a compiled folder, compiling it first if it is not one; see MLCEngine."""
        options = checked(options)
        threads = options.get("threads")
        threads = settings.threads() if threads is None else threads
        if threads is not None and threads < 1:
            raise UsageError(f"threads is {threads}; it takes a whole number from 1")
        if tool_format := options.get("tool_format"):
            named(tool_format)  # before anything is loaded
        set_up = {} if threads is None else {"threads": threads}
        if options.get("cuda_graphs") is not None:
            set_up["cuda_graphs"] = int(bool(options["cuda_graphs"]))

        def opened(folder: Path) -> LoadedModel:
            use = Use(folder)
            manifest = loading.verified(folder)
            device = options.get("device") or loading.device_of(manifest)
            draft = loading.draft_of(options)
            config = loading.engine_config(manifest, options, device, draft)
            tokenizer, template, defaults = loading.tokenizer_of(folder)
            draft_model = {"draft": draft} if draft else {}
            return cls(
                manifest.name,
                core_factory(folder, manifest, device, set_up, config, **draft_model),
                tokenizer,
                template,
                defaults=defaults,
                context=config.get("context"),
                max_batch=config.get("max_batch", 1),
                head=read_head(folder),
                use=use,
                tool_format=tool_format,
                folder=folder,
                manifest=manifest,
            )

        resolve = partial(loading.resolve, model, **for_compiler(options))
        return loading.with_repair(model, resolve, opened)

    def chat(self, request: ChatRequest, caller: Caller | None = None) -> tuple[Plan, ChatReply]:
        """Plan a chat and its answer.

        Raises:
            RequestError: it cannot be served.
            BusyError: the queue is full; known before anything is tokenized.
        """
        self._require_text()
        self.dispatcher.check_room(request.n or 1)
        plan = self.planner.chat(request, caller or Caller())
        name = request.model or self.name
        return plan, ChatReply(
            name, logprobs=plan.logprobs, forced=plan.forced, tools=plan.may_call
        )

    def completion(
        self, request: CompletionRequest, caller: Caller | None = None
    ) -> tuple[Plan, CompletionReply]:
        """Plan completions and their answer; raises as `chat`."""
        self._require_text()
        self.dispatcher.check_room((request.n or 1) * len(prompts_of(request.prompt)))
        plan = self.planner.completion(request, caller or Caller())
        return plan, CompletionReply(request.model or self.name, logprobs=plan.logprobs)

    def _require_text(self) -> None:
        if "forward" not in self.entries:
            raise RequestError(
                "This model gives embeddings and writes no text: POST /v1/embeddings, or "
                "engine.embeddings.create(input=...)",
                code="no_text",
            )

    def _compile_grammar(self, constraint: Constraint) -> OutputGrammar:
        """Most models are never asked for one: what compiles them is made for the first."""
        with self._grammars_lock:
            if self._grammars is None:
                self._grammars = GrammarCompiler.of(self.tokenizer, self.planner.vocab_size)
        return self._grammars.compile(constraint)

    def stats(self) -> CoreStats:
        """The core's counters."""
        return self.dispatcher.stats()

    def close(self) -> None:
        """End all requests and free the model; idempotent."""
        self.dispatcher.close()
        if self._use:
            self._use.close()
        if self._grammars is not None:
            self._grammars.close()


def _context(core: Core, asked: int | None) -> int:
    """Tokens of one request: no more than the whole cache holds."""
    stats = core.stats()
    return min(asked or int(core.metadata["context"]), stats.pages_total * stats.page_size)


def parse_chat(fields: Mapping[str, Any]) -> ChatRequest:
    """Arguments of `chat.completions.create`; UsageError also for names that nobody knows."""
    return _strict(parse(ChatRequest, fields))


def parse_completion(fields: Mapping[str, Any]) -> CompletionRequest:
    """Arguments of `completions.create`; UsageError also for names that nobody knows."""
    return _strict(parse(CompletionRequest, fields))


def parse_embedding(fields: Mapping[str, Any]) -> EmbeddingRequest:
    """Arguments of `embeddings.create`; UsageError also for names that nobody knows."""
    return _strict(parse(EmbeddingRequest, fields))


def _strict(request: R) -> R:
    if names := unknown(request):
        known = ", ".join(sorted(type(request).model_fields))
        raise UsageError(f"Unknown arguments {', '.join(names)}; accepted are {known}")
    return request
