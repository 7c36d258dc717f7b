"""Where the user's cache folder is, and which of its files can be trusted: what Penstock may make again at any time.

$XDG_CACHE_HOME/penstock, or ~/.cache/penstock. Compiled kernels are in its folder `kernels`, or below $NUMBA_CACHE_DIR
where that is set. Nothing is ever kept beside the sources: what an installation does not list is left behind when it is
removed, and Python then takes those folders for packages. This file reads the environment (of the files below `tools`
only `engine/kernels/host/threads/openmp.py` does so too), because a kernel that is called from Python is kept in the
same place as that of a command.

Kernels that were compiled elsewhere are in further folders, which are only read: those of $PENSTOCK_KERNELS, and
`kernels` in the installed package.

Whoever can write a kernel decides what a run executes. So a file is read only if this user or root owns it and nobody
else can write it, and kernels only from folders of which the same is true (`own_place`). Where the user's folder is
not such a one, or cannot be written, kernels are kept in a private folder below the system's for temporary files.
"""

import errno
import functools
import logging
import os
import stat
import sys
from pathlib import Path

from penstock.storage.base.errors import InputError

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_V3 = "+avx2,+bmi,+bmi2,+crc32,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sahf,+sse4.2,+xsave"
LEVELS = {"x86-64-v4": f"{_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl", "x86-64-v3": _V3}
"""LLVM's names of kinds of processors that one kernel is compiled for, best first, and what features these have."""
_log = logging.getLogger("penstock.storage.base.user_cache")


KernelPlaces = tuple[tuple[Path, ...], str | None]
"""Folders of compiled kernels, which are looked for in all, in this order, and kept in the first; and why that is not
the user's folder: None where it is, and where that is an administrator's, only to be read."""


def user_cache() -> Path:
    """Return the cache folder, which need not exist. Raises InputError where the user has no home folder."""
    return _below(os.environ.get("XDG_CACHE_HOME", ""))


def kernel_folder() -> Path:
    """Return the folder of compiled kernels, which need not exist. Raises InputError as `user_cache`."""
    return _below(os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", "")) / "kernels"


def _below(given: str) -> Path:
    if os.path.isabs(given):  # the XDG specification: others are to be ignored
        return Path(given) / "penstock"
    try:
        return Path.home() / ".cache" / "penstock"
    except RuntimeError as error:
        raise InputError(f"there is no home folder to keep anything in ({error}); set XDG_CACHE_HOME") from error


def kernel_places() -> KernelPlaces:
    """Return where compiled kernels are looked for and kept; no folder need exist, and there may be none."""
    shared: tuple[Path, ...] = ()
    try:
        folder = own_place(kernel_folder())
        if is_writable(folder):
            return (folder,), None
        shared = (folder,) if folder.is_dir() else ()
        trouble = None if shared else f"{folder} cannot be made; {way_out()}"
    except InputError as error:
        trouble = str(error)
    try:
        private = own_place(Path(os.environ.get("TMPDIR") or "/tmp") / f"penstock-{os.geteuid()}" / "kernels")
    except InputError as error:
        return shared, f"{trouble}; {error}" if trouble else str(error)
    return (private, *shared), trouble


def shipped_places() -> tuple[Path, ...]:
    """Return the folders of kernels that are only read, after those of `kernel_places`, in the order of looking.

    They are looked at once in a process: one that is made later is not found. A folder that is missing, or that others
    can write, is left out; a log warning names it if the user has named it.
    """
    package = Path(str(sys.modules["penstock"].__file__)).parent
    return _shipped_places(os.environ.get("PENSTOCK_KERNELS", ""), package / "kernels")


@functools.cache
def _shipped_places(named: str, own: Path) -> tuple[Path, ...]:
    places, folders = [], [Path(one) for one in named.split(os.pathsep) if one]
    for folder in [*folders, own] if own.is_dir() else folders:
        instead = "take it out of PENSTOCK_KERNELS" if folder != own else "install Penstock as this user, or as root"
        try:
            place = own_place(folder, instead)
            if not place.is_dir():
                raise InputError(f"it is missing; {instead}")
            places.append(place)
        except InputError as error:
            _log.log(
                logging.INFO if folder == own else logging.WARNING, "no kernels are read from %s: %s", folder, error
            )
    return tuple(places)


def level_environment(level: str) -> dict[str, str]:
    """Return what Numba finds in the environment of a process that compiles for one of `LEVELS`."""
    return {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_INTEL_SVML": "1"}


def own_place(folder: Path, instead: str | None = None) -> Path:
    """Return a folder, or where one would be made, without links; only this user and root can change what is in it.

    Looks from the root down, so that nobody else can replace what has been looked at: each folder above belongs to
    this user, to root or to the owner of `/`, and others cannot write it, unless its sticky bit is set (as that of
    `/tmp`) and what is looked for in it, a link too, belongs to this user or to root. Raises InputError, which ends in
    `instead`: what else the user can do.
    """
    instead = instead or way_out()
    mine = {os.geteuid(), 0}
    place, waiting, links, writable = Path("/"), [*reversed(folder.absolute().parts[1:])], 0, []
    try:
        owners = mine | {os.lstat("/").st_uid}  # who is not root in a container without root's number
        while waiting:
            name, above = waiting.pop(), os.lstat(place)
            entry = place.parent if name == ".." else place / name
            facts = os.lstat(entry)
            if facts.st_uid not in (mine if above.st_mode & _OTHERS or not waiting else owners):
                raise InputError(f"{entry} belongs to user {facts.st_uid}; {instead}")
            if stat.S_ISLNK(facts.st_mode):
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = entry.readlink()
                place = Path("/") if target.is_absolute() else place
                waiting += reversed(target.parts[target.is_absolute() :])
                continue
            if not stat.S_ISDIR(facts.st_mode):
                raise InputError(f"{entry} is no folder; {instead}")
            if facts.st_mode & _OTHERS and not (waiting and facts.st_mode & stat.S_ISVTX):
                writable.append(str(entry))
            place = entry
    except FileNotFoundError:
        place = entry.joinpath(*reversed(waiting))
    except OSError as error:
        raise InputError(f"{folder} cannot be used: {error.strerror}; {instead}") from error
    if writable:
        names = " ".join(writable)
        raise InputError(f"others than you can write {names}; `chmod go-w {names}` ends that, or {instead}")
    return place


def way_out() -> str:
    """Return what changes where compiled kernels are kept."""
    return f"set {'NUMBA_CACHE_DIR' if os.environ.get('NUMBA_CACHE_DIR') else 'XDG_CACHE_HOME'} to a folder of yours"


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or it itself in the first one above that exists."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def make_place(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone. Raises OSError."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)


def read_own(path: Path) -> bytes | None:
    """Return the content of a file that only this user and root can write; None where there is none.

    What is looked at is what has been opened: whoever can rename files in its folder cannot exchange them in between.
    """
    try:
        with open(path, "rb", opener=_opened) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_mode & _OTHERS or facts.st_uid not in (os.geteuid(), 0):
                return None
            return file.read()
    except OSError:
        return None


def append_own(path: Path, content: bytes) -> int:
    """Append to a file of this user, which is made if there is none; return its size.

    Raises OSError, InputError for a file of someone else.
    """
    with open(path, "ab", buffering=0, opener=_opened) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            raise InputError(f"{path} is no file of this user; remove it")
        file.write(content)
        return os.fstat(file.fileno()).st_size


def _opened(path: str, flags: int) -> int:
    """Open no link, and wait for no other end of a pipe; what is made is this user's alone."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
