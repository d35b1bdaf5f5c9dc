"""A loaded model with its engine, shared by MLCEngine and AsyncMLCEngine."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import Unpack

from wherry.artifact.head import Head
from wherry.artifact.manifest import Manifest
from wherry.artifact.variants import tower_for
from wherry.base import settings
from wherry.base.locks import Use
from wherry.errors import ModelError, UsageError, WherryError

from ..caller import Caller
from ..core.interface import Core, CoreStats, SamplingParams
from ..errors import ContextOverflow, RequestError
from ..grammar.calls import check_tool_format
from ..grammar.compiler import GrammarCompiler
from ..grammar.constraint import Constraint
from ..grammar.native import Grammar
from ..grammar.requirements import constraint_of_requirements
from ..grammar.turns import AUDITS
from ..host.dispatcher import Dispatcher
from ..host.host import Host
from ..host.request import HostRequest
from ..host.running import Running
from ..host.sinks import Sink
from ..text.tokenizer import TooManyTokens
from . import loading
from .options import LoadOptions, checked, for_compiler
from .side_files import SideFiles


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
        tool_format: name of the model's tool-call format (app/data/tool_families.json); None: the
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
        self.template = files.template
        self.head: Head | None = files.head
        self.max_batch = max_batch
        self.context = _context(core, context)
        # the context in tokens that the library was compiled for
        self.model_context = int(core.metadata["context"])
        vocab = core.metadata.get("vocab_size")
        self.vocab_size = vocab if isinstance(vocab, int) else tokenizer.vocab_size
        self.entries: tuple[str, ...] = tuple(core.metadata.get("entries", ("forward",)))
        start = files.decoder_start if "encode" in self.entries else ()
        if "encode" in self.entries and not start:
            raise ModelError(
                f"{name} reads sources, and its files do not tell with which token its decoder "
                "begins: config.json has neither decoder_start_token_id nor pad_token_id"
            )
        self.chats = self.template is not None and not start
        self.reads_images = self.chats and files.vision is not None
        rules = tokenizer.token_bytes
        model = {
            "name": name,
            "context": self.context,
            "vocab_size": self.vocab_size,
            "tokens": tokenizer.vocab_size,
            "largest_id": max(tokenizer.backend.get_vocab(with_added_tokens=True).values()),
            "byte_rules": rules and {"each_byte": rules.each_byte, "strip": rules.strip},
            "eos_ids": list(tokenizer.eos_ids),
            "defaults": dict(files.defaults),
            "decoder_start": list(start),
            "head": asdict(files.head) if files.head else {},
            "embedding_size": core.metadata.get("embedding_size") or 0,
            "writes_text": "forward" in self.entries,
            "embeds": "embed" in self.entries,
            "tool_format": tool_format or "",
            "adapts": adapt_messages,
            "vision": files.vision,
        }
        host = Host(model, tokenizer, self.template, core, self._constrain)
        self.dispatcher = Dispatcher(core, host)
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
            check_tool_format(tool_format)  # before the long load
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
            if tower_for(manifest) is None:  # of a model without its tower
                files = replace(files, vision=None)
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

    def start(self, request: HostRequest, sink: Sink, caller: Caller | None = None) -> Running:
        """Plan a request on this thread, and submit it.

        Args:
            request: the request, which has been checked.
            sink: receives its messages.
            caller: the client.

        Raises:
            Abandoned: the client has gone.
            BusyError: the queue is full; checked before tokenization.
            RequestError: the request cannot be served.
        """
        jobs = request.outputs
        if not request.writes:  # so that one request cannot fill the queue
            window = min(2 * self.max_batch, self.dispatcher.limit or 2 * self.max_batch)
            jobs = min(jobs, window)
            request = replace(request, options={**request.options, "window": window})
        return self.dispatcher.begin(request, sink, caller or Caller(), jobs)

    def prompt(self, fields: Any, caller: Caller, *, add_special_tokens: bool = False) -> list[int]:
        """Return the tokens of a chat's messages in the model's template; errors as in `start`."""
        return self.dispatcher.prompt(fields, caller, add_special_tokens=add_special_tokens)

    def encoded(
        self, text: str, caller: Caller, field: str, *, add_special_tokens: bool
    ) -> list[int]:
        """Return the token ids of a text; one that is far too long is not tokenized to its end.

        Raises:
            Abandoned: the client has gone.
            ContextOverflow: the text is far too long for the context.
        """
        caller.check()
        try:
            return self.tokenizer.encode_at_most(
                text, self.context, caller, add_special_tokens=add_special_tokens
            )
        except TooManyTokens as e:
            raise ContextOverflow(
                f"This model's maximum context length is {self.context} tokens; the {field} has "
                f"at least {e.at_least} in {len(text)} characters (context_length_exceeded)",
                param=field,
                context=self.context,
                prompt=e.at_least,
                output=0,
            ) from e

    def checked(self, token_ids: Sequence[int], params: SamplingParams) -> list[int]:
        """Return the prompt of a request on token ids as a list.

        Raises:
            RequestError: it is empty, too long for the context, or holds an unknown id.
        """
        prompt, output = list(token_ids), max(params.max_tokens, 1)
        if not prompt:
            raise RequestError("prompt is empty; the model needs at least one token")
        if len(prompt) + output > self.context:
            raise RequestError(
                f"The prompt has {len(prompt)} tokens and the output {output}; the context has "
                f"{self.context}",
                param="prompt",
                code="context_length_exceeded",
            )
        if (worst := max(prompt)) >= self.vocab_size or min(prompt) < 0:
            raise RequestError(
                f"prompt holds token {worst}; ids go from 0 to {self.vocab_size - 1}",
                param="prompt",
            )
        return prompt

    def _constrain(self, request_id: int, requirements: Any) -> None:
        """Begin to make the grammar of a request: no thread that plain requests need waits."""
        tenant = requirements["tenant"]
        future = AUDITS.submit(
            tenant, lambda: constraint_of_requirements(requirements, self._is_special)
        )
        self.dispatcher.wait_for(request_id, future)
        future.add_done_callback(partial(self._audited, request_id, tenant))

    def _is_special(self, name: str) -> bool:
        return self.tokenizer.special_id(name) is not None

    def _audited(self, request_id: int, tenant: int, future: Future[Constraint]) -> None:
        if future.cancelled():
            return
        try:
            compiling = self._begin_grammar(future.result(), tenant)
        except WherryError as e:
            self.dispatcher.fail(request_id, e)
            return
        self.dispatcher.wait_for(request_id, compiling)
        compiling.add_done_callback(partial(self._compiled, request_id))

    def _begin_grammar(self, constraint: Constraint, tenant: int) -> Future[Grammar]:
        """Begin to compile a constraint in the turn of its tenant; errors as GrammarCompiler.begin.

        The compiler is created at its first use, because most models need none.
        """
        with self._grammars_lock:
            if self._grammars is None:
                self._grammars = GrammarCompiler.of(self.tokenizer, self.vocab_size)
        return self._grammars.begin(constraint, tenant)

    def _compiled(self, request_id: int, future: Future[Grammar]) -> None:
        if future.cancelled():
            return
        try:
            self.dispatcher.constrain(request_id, future.result())
        except WherryError as e:
            self.dispatcher.fail(request_id, e)

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


def _context(core: Core, requested: int | None) -> int:
    """Return the maximum tokens of one request: no more than the KV cache, if there is one."""
    context = requested or int(core.metadata["context"])
    if core.metadata.get("groups") == []:
        return context
    stats = core.stats()
    return min(context, stats.pages_total * stats.page_size)
