"""The grammars of one model: each is probed, compiled and cached."""

from __future__ import annotations

import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from wherry.errors import ToolchainError, UsageError

from ..core.library import find_core, open_core, open_runtime
from ..errors import BusyError, RequestError
from ..text.tokenizer import Tokenizer
from .constraint import Constraint
from .native import Grammar, Vocabulary
from .probe import STACK, WALL_SECONDS, Probe, Refused
from .vocabulary import grammar_tokens

KEPT = 64  # number of grammars and errors in the cache


def find_llguidance() -> Path:
    """Return the path of llguidance's shared library, without importing its Python package.

    The core calls the library's C functions.

    Raises:
        ToolchainError: it is not installed.
    """
    spec = importlib.util.find_spec("llguidance")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(p for p in folder.glob("_lib*") if p.suffix != ".pyi") if folder else []
    if not files:
        raise ToolchainError(
            "Structured output needs the Python package llguidance. Type: pip install llguidance"
        )
    return files[0]


class GrammarCompiler:
    """Compiles constraints, each at most once; usable from any thread.

    Args:
        vocabulary: makes the model's vocabulary at the first request.
        probe: tries each grammar first.
    """

    def __init__(self, vocabulary: Callable[[], Vocabulary], probe: Probe) -> None:
        self._make_vocabulary = vocabulary
        self._vocabulary: Vocabulary | None = None
        self._probe = probe
        self._kept: OrderedDict[tuple[str, str], Grammar | str] = OrderedDict()
        self._lock = threading.Lock()
        self._thread = _deep_thread()

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocab_size: int) -> GrammarCompiler:
        """Return the grammar compiler of a model.

        Raises:
            RequestError: the decoder of the tokenizer does not work token by token.
            ToolchainError: llguidance is not installed.
        """
        library = find_llguidance()
        tokens = grammar_tokens(tokenizer, vocab_size)
        open_runtime("cpu")  # libwherry depends on the TVM runtime, which must be loaded first
        return cls(lambda: Vocabulary(open_core(), library, tokens), Probe(find_core(), library))

    def compile(self, constraint: Constraint) -> Grammar:
        """Return the grammar of a constraint; blocks while it is compiled.

        Raises:
            BusyError: the compilation, or earlier ones, took too long, so that the server is busy.
            RequestError: the constraint cannot be enforced, or is too expensive; the message says
                which.
        """
        key = (constraint.kind, constraint.text)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = self._make(constraint)
            with self._lock:
                self._kept[key] = found
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        if isinstance(found, str):
            raise RequestError(
                f"{constraint.param} cannot be enforced: {found}",
                param=constraint.param,
                code="invalid_grammar",
            )
        return found

    def _make(self, constraint: Constraint) -> Grammar | str:
        """Compile a grammar and return it, or the error message if it cannot be compiled."""
        try:
            self._probe.check(constraint.kind, constraint.text)
        except Refused as e:
            return str(e)
        except TimeoutError as e:
            raise BusyError(
                f"No time to compile {constraint.param} in {WALL_SECONDS:g} s; ask again later"
            ) from e
        try:
            return self._thread.submit(self._compile, constraint).result()
        except UsageError as e:
            return str(e)

    def _compile(self, constraint: Constraint) -> Grammar:
        if self._vocabulary is None:
            self._vocabulary = self._make_vocabulary()
        return self._vocabulary.compile(constraint.kind, constraint.text)

    def close(self) -> None:
        """End the probe's process and the thread; idempotent."""
        self._probe.close()
        self._thread.shutdown(wait=False)


def _deep_thread() -> ThreadPoolExecutor:
    """Return an executor of one thread with more stack than the probe process has.

    A grammar that compiled in the probe therefore cannot overflow the stack here.
    """
    pool = ThreadPoolExecutor(1, "wherry-grammar")
    before = threading.stack_size(4 * STACK)
    try:
        # the first task starts the thread while the larger stack size is set
        pool.submit(lambda: None).result()
    finally:
        threading.stack_size(before)
    return pool
