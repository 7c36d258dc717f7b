"""Compiled kernels, kept from one process to the next in the folders that `user_cache.kernel_places` names.

The name of an entry is a digest of all that its content depends on, so that installations of any version share the
folder, and stale code is not found: sources, argument types, options, processor, versions of Numba, LLVM, NumPy and
Python. Another folder than the user's is said once, and that there is none; each process then compiles for itself.

What was compiled elsewhere is looked for in read-only folders too (`user_cache.shipped_places`), and for processors of
this one's level (`LEVELS`) where nothing is kept for this processor.
"""

import functools
import gc
import hashlib
import itertools
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import zstandard
from numba.core import event as events
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.sigutils import normalize_signature
from penstock.storage.base.atomic import partial_name
from penstock.storage.base.freed_memory import give_back_library_pages
from penstock.storage.base.function_digest import file_digest, function_digest
from penstock.storage.base.kernel_loading import FORM, load, stored
from penstock.storage.base.missing_code import Origin, tell_asked, tell_missing
from penstock.storage.base.stage_clock import begin_compiling, count_loaded, end_compiling, loading
from penstock.storage.base.user_cache import (
    LEVELS,
    kernel_folder,
    kernel_places,
    level_environment,
    make_place,
    read_own,
    shipped_places,
    way_out,
)

MOST_ENTRIES = 4096
"""Of each kind: some 50 MiB of the host's."""
_DIGEST_BYTES = 32

_log = logging.getLogger("penstock.storage.base.kernel_cache")


def number_apart() -> None:
    """Number the functions that this process compiles from a random number on; Numba counts them from 1.

    Machine code is named by function, number and types, so that closures would get equal names in two processes. Where
    the entries of both are loaded into one, the linker takes the first of two weak functions of a name for both.
    """
    FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(8), "little"))


class KernelStore:
    """Entries `<key><suffix>`; key: letters and digits. Those used least recently make room, above `MOST_ENTRIES`.

    An entry appears whole (written beside its name, then renamed) and is a digest and compressed content: one that is
    torn, damaged, or that others can have written counts as absent.
    """

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix

    def take(self, *keys: str) -> bytes | None:
        """Return what was kept under the first of `keys` that is found whole; None where there is none."""
        folders, trouble = kernel_places()
        if trouble is not None:
            _say(trouble, str(folders[0]) if folders else None)
        places = *folders, *shipped_places()
        for key in keys:
            for folder in places:
                path = folder / f"{key}{self.suffix}"
                content = _content(read_own(path))
                if content is not None:
                    if folder in folders:
                        with suppress(OSError):  # a folder that may only be read
                            os.utime(path)
                    return content
        return None

    def keep(self, key: str, content: bytes) -> None:
        """Keep `content` under `key`, in place of what was there; logs once where it cannot."""
        folders, _ = kernel_places()
        if not folders:
            return  # `take` has said so
        target = folders[0] / f"{key}{self.suffix}"
        partial = partial_name(target)
        try:
            make_place(folders[0])
            partial.touch(0o644, exist_ok=False)  # whatever the umask: what others can write is not read
            packed = zstandard.compress(content)
            partial.write_bytes(hashlib.sha256(packed).digest() + packed)
            os.replace(partial, target)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            _say(f"{folders[0]} cannot be written: {error.strerror}; {way_out()}", None)
            return
        _make_room(folders[0], self.suffix)


def _content(entry: bytes | None) -> bytes | None:
    """What was kept as this entry; None where it is not whole, or of another form."""
    if entry is None or hashlib.sha256(entry[_DIGEST_BYTES:]).digest() != entry[:_DIGEST_BYTES]:
        return None
    try:
        return zstandard.decompress(entry[_DIGEST_BYTES:])
    except zstandard.ZstdError:
        return None


def _make_room(folder: Path, suffix: str) -> None:
    """Remove entries above the most; another process may do the same at the same time."""
    entries = [path for path in folder.glob(f"*{suffix}") if not path.name.startswith(".")]
    if len(entries) > MOST_ENTRIES:
        with suppress(OSError):
            entries.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in entries[: len(entries) - MOST_ENTRIES]:
            with suppress(OSError):
                path.unlink()


@functools.cache
def _say(trouble: str, folder: str | None) -> None:
    """Say once where compiled kernels are kept instead, or that they are not (None), and why."""
    if folder is None:
        _log.warning("compiled kernels are not kept, each process compiles its own: %s", trouble)
    else:
        _log.warning("compiled kernels are kept in %s: %s", folder, trouble)


_STORE = KernelStore(".kernel")


def kept(
    compiled: Any, key: Callable[[], str] | None = None, origin: Origin | None = None, *, linked: bool = True
) -> Any:
    """Let a function that Numba compiles be loaded where an earlier process compiled it; return the function.

    Parameters
    ----------
    compiled : Dispatcher
        What `numba.njit` returned, for arguments of Numba's own types.
    key : callable, optional
        Digest of the function's sources, asked for when it is first needed; by default `function_digest`.
    origin : callable, optional
        Describes the function to another process, which may then compile it for this one (`missing_code.py`).
    linked : bool
        Whether other kernels call it: its intermediate code is then kept too, two thirds of an entry.
    """
    install()
    compiled._cache = _KernelCache(compiled, key or functools.partial(function_digest, compiled), origin, linked)
    compiled._compilation_chain_init_hook = _nothing  # loads Numba's extensions, as does whatever compiles
    return compiled


def _nothing() -> None:
    """Do nothing."""


@functools.cache
def versions() -> tuple[str, ...]:
    """Return the versions that decide what a source is compiled to.

    Of NumPy's, the first two parts: Numba asks for no more where its functions follow NumPy's (`numpy_version` of
    `numba.np.numpy_support`), and compiled code calls no function of NumPy's and knows the fields of arrays by Numba's
    own adapter. Of Python, also whether it has a lock or checks itself (`abiflags`), on which its objects depend.
    """
    numpy = ".".join(np.__version__.split(".")[:2])
    python = f"{sys.implementation.cache_tag or sys.version}{sys.abiflags}"
    return (numba.__version__, llvmlite.__version__, numpy, python)


@functools.cache
def processors(triple: str, name: str, features: str) -> tuple[tuple[Any, ...], ...]:
    """Return the processors whose code this process can run, in the order of looking: this one, and levels that it has.

    Parameters
    ----------
    triple, name, features : str
        What Numba compiles for (`magic_tuple`). Only that counts where the user has chosen it.
    """
    own = triple, name, features, numba.config.USING_SVML  # the library of vector functions must then be here
    if numba.config.CPU_NAME is not None or numba.config.CPU_FEATURES is not None:
        return (own,)
    found = [level for level, needed in LEVELS.items() if {*needed.split(",")} <= {*features.split(",")}]
    return (own, *((triple, level, level_environment(level)["NUMBA_CPU_FEATURES"], False) for level in found))


class _CompilingListener(events.Listener):  # type: ignore[misc]
    """Counts what Numba compiles for the host: this process's, whether it is kept or not.

    Python collects no garbage meanwhile, a twelfth of the time: the compiler makes a hundred thousand objects, and most
    live until it ends. Only one thread compiles at a time, which Numba sees to.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._collects = False

    def on_start(self, event: Any) -> None:
        """Numba has begun to compile a function."""
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1
        begin_compiling(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        """It has ended, with or without success."""
        end_compiling()
        self._depth -= 1
        if self._depth == 0:
            give_back_library_pages()
            if self._collects:
                gc.enable()


@functools.cache
def install() -> None:
    """Number and count what this process compiles from now on; `kept` calls it."""
    number_apart()
    os.register_at_fork(after_in_child=number_apart)
    events.register("numba:compile", _CompilingListener())
    give_back_library_pages()  # LLVM's, 40 MiB of which are read while it is imported


class _KernelCache(_Cache):  # type: ignore[misc]
    """What Numba asks when a function is first called with arguments of some types."""

    def __init__(self, compiled: Any, key: Callable[[], str], origin: Origin | None, linked: bool) -> None:
        self._function = compiled.py_func
        self._options = sorted(getattr(compiled, "targetoptions", {}).items())
        self._key = key
        self._origin = origin
        self._linked = linked
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """Where entries are, for Numba's statistics."""
        return str(kernel_folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for arguments of these types; None where it is not kept, and no other process compiles it."""
        if not self._enabled:
            return None
        entries = self._entries(sig, target_context.codegen())
        tell_asked(entries[0], self._origin, sig)
        loaded = self._load(entries, sig, target_context)
        if loaded is None and tell_missing(self._function.__name__, entries[0], self._origin, sig):
            return self._load(entries, sig, target_context)
        return loaded

    def _load(self, entries: list[str], sig: Any, target_context: Any) -> Any:
        with loading():
            content = _STORE.take(*entries)
            if content is None:
                return None
            loaded = load(content, self._function, normalize_signature(sig)[0], target_context)
            if loaded is not None:
                count_loaded()
            give_back_library_pages()
            return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for arguments of these types, unless it holds addresses of this process."""
        if not self._enabled or data.library.has_dynamic_globals:
            return
        try:
            content = stored(data, normalize_signature(sig)[0], self._linked)
        except TypeError as error:
            _log.info("%s is compiled by each process: %s", self._function.__qualname__, error)
        else:
            _STORE.keep(self._entries(sig, data.codegen)[0], content)

    def _entries(self, sig: Any, codegen: Any) -> list[str]:
        """The names of what this process can run; it compiles the first."""
        parts_compiled = file_digest(str(Path(__file__).with_name("compiler.py"))).hex()
        parts = self._key(), parts_compiled, str(sig), self._options, versions(), number_apart.__name__, FORM
        common = hashlib.sha256(repr(parts).encode())
        names = []
        for processor in processors(*codegen.magic_tuple()):
            name = common.copy()
            name.update(repr(processor).encode())
            names.append(name.hexdigest())
        return names

    def enable(self) -> None:
        """Load and keep from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither load nor keep from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Do nothing: entries are shared, and their names tell what they are."""
