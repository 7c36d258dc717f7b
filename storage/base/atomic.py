"""How files appear: whole or not at all, and never over another one unless asked.

A file is written beside its final name, flushed, then renamed, and its folder is flushed; an error after the renaming
is an `UnsyncedError`. What a command leaves on disk until then is *debris*: registered before it is made, removed by
the block that made it, or by `sweep_debris` at the end of the command if a signal came between the two.
"""

import errno
import os
import re
import shutil
import stat
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.storage.base.budget import format_bytes, is_running, process_space
from penstock.storage.base.errors import InputError, RunError, UnsyncedError, brief, refusal
from penstock.storage.base.places import Address, FilePlace, Place, check_bucket, exists, send
from penstock.storage.base.threads import ThreadPool

NAME_BYTES = 255
"""Of the longest name of a file on Linux."""
_PARTIAL = re.compile(r"\.(.*)\.partial-([0-9]+)-([0-9a-f]{8})[0-9a-f]{8}(.*)")
"""The name of an unfinished file, process, process space, suffixes: see `partial_name`."""
_debris: dict[Path, int] = {}
_named: deque[tuple[int, Path, int]] = deque(maxlen=4)


def check_target(path: Path | str, *, force: bool, follow: bool = True) -> Path:
    """Refuse, before any work, a target that could not be written; return the file it names.

    A symbolic link is followed, so that the file it points at is replaced and the link stays; without ``follow`` the
    link is replaced.

    Raises:
        InputError: the folder is missing or not writable, the name is too long or a link to itself, or the target
            exists (without ``force``) or is a folder, a pipe or a device.
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = None
    except OSError as error:
        raise refusal(error, f"{brief(str(target))} cannot be written: {error.strerror}; name another output") from None
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"{target} is not a regular file; name another output")
    if follow and target.is_symlink():
        target = target.resolve()
    folder = target.parent
    if not folder.is_dir():
        raise InputError(f"{target}: the folder {folder} does not exist; create it or name another")
    if mode is not None and not force:
        raise InputError(f"{target} exists already; --force replaces it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{target}: the folder {folder} is not writable; name another output")
    return target


def check_place(place: FilePlace, *, force: bool) -> FilePlace:
    """Refuse, before any work, a target as `check_target` does, of a store too. Raises as it, and as `asking`."""
    if not isinstance(place, Address):
        return check_target(place, force=force)
    check_bucket(place)
    if not force and exists(place):
        raise InputError(f"{place} exists already; --force replaces it")
    return place


def written_at(place: FilePlace) -> Path:
    """Return where a file is written: itself, or one in the system's folder for temporary files that a store gets."""
    return temporary_place() / place.name if isinstance(place, Address) else place


def check_room(needed: Mapping[Path, int]) -> None:
    """Refuse, before any work, files that their disks have no room for.

    Parameters
    ----------
    needed : mapping of Path to int
        Files to write, in folders that exist, and how many bytes each takes at least. A file that is replaced stays
        until the new one is whole.

    Raises
    ------
    InputError
        They do not fit, with both numbers.
    """
    disks: dict[int, list[Path]] = {}
    for path in needed:
        disks.setdefault(path.parent.stat().st_dev, []).append(path)
    for paths in disks.values():
        wanted, free = sum(needed[path] for path in paths), free_bytes(paths[0])
        if wanted > free:
            raise InputError(
                f"{' and '.join(map(str, paths))} will take {format_bytes(wanted)} at least, and the disk of "
                f"{paths[0].parent} has {format_bytes(free)} free; free space, or name a file on another disk"
            )


def free_bytes(path: Path) -> int:
    """Bytes that a file may still take on the disk of its folder."""
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize


def keep_inputs(output: FilePlace, inputs: Iterable[Place]) -> None:
    """Refuse an output that is one of the files to be read, under whatever name; `-` among the inputs is passed over.

    Raises:
        InputError: it is.
    """
    for path in inputs:
        if str(path) != "-" and _is_same(path, output):
            raise InputError(f"{output} is an input too, and would be replaced; name another output")


def _is_same(one: Place, other: FilePlace) -> bool:
    if isinstance(one, Address) or isinstance(other, Address):
        return str(one) == str(other)
    # os.path: names that cannot be are refused where they are opened
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


@contextmanager
def replacing(path: Path | str, *, force: bool, follow: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside ``path`` to write to; it becomes ``path`` when the block ends.

    On success the file is flushed to disk and renamed, and its folder flushed. On any exception before the renaming,
    KeyboardInterrupt included, it is removed and ``path`` is as it was. Without ``force`` a file
    that appeared under that name meanwhile is refused too. ``follow``: as for `check_target`.

    Raises:
        InputError: as `check_target`, or ``path`` appeared meanwhile (without ``force``).
        RunError: the file system failed while flushing or renaming; ``path`` is as it was.
        UnsyncedError: ``path`` is the new file, and its folder could not be flushed.
    """
    target = check_target(path, force=force, follow=follow)
    partial = partial_name(target)
    with debris(partial):
        yield partial
        give_name(partial, target, force=force)
        sync_folder(target)


def give_name(partial: Path, target: Path, *, force: bool) -> None:
    """Make a finished file durable and rename it to ``target``; to be followed by `sync_folder`.

    Raises:
        InputError: ``target`` exists (without ``force``).
        RunError: the file system failed; ``target`` is as it was.
    """
    try:
        with writing(target):
            flush(partial)
            _named.append((os.getpid(), target, partial.stat().st_ino))
            _rename(partial, target, force=force)
    except FileExistsError:
        raise InputError(f"{target} appeared while it was being written; --force replaces it") from None


def in_place() -> list[Path]:
    """Return the last files to which this process has given their names, and which have them."""
    found = []
    for process, path, inode in _named:
        with suppress(OSError):
            if process == os.getpid() and path.stat().st_ino == inode:
                found.append(path)
    return found


def sync_folder(target: Path) -> None:
    """Make a file's new name durable. Raises UnsyncedError."""
    try:
        flush(target.parent)
    except OSError as error:
        raise UnsyncedError(
            f"{target} is written and in its place, but the folder {target.parent} could not be synced "
            f"({error.strerror or error}): a power failure may undo that; check the disk"
        ) from error


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Make one RunError, which names ``path``, of what the disk or the HDF5 library refuses in a block."""
    try:
        yield
    except FileExistsError:
        raise
    except (OSError, RuntimeError) as error:
        found = _disk_error(error)
        raise RunError(f"{path} could not be written: {found.strerror or found}; free space and retry") from error


def _disk_error(error: Exception) -> OSError:
    """What the disk said, in a library's complaint about a write."""
    number = getattr(error, "errno", None)
    found = re.search(r"errno(?: =)? (\d+)", str(error))
    if number is None and found is not None:
        number = int(found.group(1))
    return OSError(number, os.strerror(number)) if number else OSError(str(error).partition("\n")[0])


@contextmanager
def whole_file(path: Place, *, force: bool) -> Iterator[Path]:
    """As `replacing`, for a block that does nothing but write the file: what fails in it is a RunError too.

    A file of a store is written on this machine, and sent when the block ends.
    """
    if isinstance(path, Address):
        check_place(path, force=force)
        with debris(partial_name(written_at(path))) as partial, writing(partial):
            yield partial
            send(partial, path)
        return
    with replacing(path, force=force) as partial, writing(path):
        yield partial


def write_text(path: Path | str, text: str, *, force: bool) -> None:
    """Write a text in UTF-8, whole or not at all. Raises as `replacing`."""
    with whole_file(path, force=force) as partial:
        partial.write_text(text, encoding="utf-8")


def partial_name(target: Path) -> Path:
    """A hidden, unused name beside ``target`` with its suffixes, for a file not finished yet; a long one is cut."""
    suffix = "".join(target.suffixes[-2:])
    stem, unique = target.name.removesuffix(suffix), f"{os.getpid()}-{process_space()}{os.urandom(4).hex()}"
    ending = f".partial-{unique}{suffix}"
    room = max(0, NAME_BYTES - 1 - len(os.fsencode(ending)))
    return target.with_name(f".{os.fsencode(stem)[:room].decode(errors='ignore')}{ending}")


def remove_left(folder: Path, names: re.Pattern[str]) -> None:
    """Remove unfinished files whose names would match ``names``, and whose processes were killed; none of other hosts.

    One that may not be removed stays, and so do all in a folder that cannot be listed.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            found = _PARTIAL.fullmatch(path.name)
            if found is None or found[3] != process_space() or not names.fullmatch(found[1] + found[4]):
                continue
            if not is_running(int(found[2])):
                with suppress(OSError):
                    path.unlink()


def flush(path: Path) -> None:
    """Make a file's bytes, or a folder's names, durable (fsync). Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (path.is_dir() and error.errno == errno.EINVAL):
            raise
    finally:
        os.close(handle)


@contextmanager
def debris(path: Path) -> Iterator[Path]:
    """Yield ``path``; whatever file or folder has that name when the block ends is removed."""
    register_debris(path)
    try:
        yield path
    finally:
        remove_debris(path)


def temporary_place() -> Path:
    """The system's folder for temporary files.

    Python tries it with a file, on the first call; a signal would leave that file there if the main thread asked.
    """
    with ThreadPool(1, "temporary folder") as thread:
        return Path(thread.submit(tempfile.gettempdir).result())


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new, private, empty folder (inside ``parent`` or the system's place); removed after.

    Raises:
        InputError: ``parent`` is missing or not writable.
    """
    place = temporary_place() if parent is None else parent
    folder = place / f".penstock-scratch-{os.getpid()}-{os.urandom(4).hex()}"
    with debris(folder):
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise InputError(
                f"scratch folder {place} cannot be used: {error.strerror}; --scratch names another"
            ) from error
        yield folder


def register_debris(path: Path) -> None:
    """Register ``path``, which must not outlive this process; call this before making it."""
    _debris[path.absolute()] = os.getpid()


def remove_debris(path: Path) -> None:
    """Remove ``path`` if it exists, and unregister it; `sweep_debris` tries again with a folder that stays."""
    with suppress(FileNotFoundError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():  # it takes descriptors, of which there may be none
                return
        else:
            path.unlink()
    _debris.pop(path.absolute(), None)


def keep_debris(path: Path) -> None:
    """Unregister ``path``: it is finished, or has its final name now."""
    _debris.pop(path.absolute(), None)


def sweep_debris() -> None:
    """Remove everything that this process registered and that is still there; for the end of a command."""
    for path, owner in list(_debris.items()):
        if owner == os.getpid():
            with suppress(OSError):
                remove_debris(path)


def _rename(partial: Path, target: Path, *, force: bool) -> None:
    """Rename; without ``force`` only onto a free name, as far as the file system can."""
    if force:
        os.replace(partial, target)
        return
    try:
        os.link(partial, target)
    except FileExistsError:
        if not (target.exists() and target.samefile(partial)):  # else a signal came behind that call
            raise
    except OSError:
        if target.exists():
            raise FileExistsError(target) from None
        os.replace(partial, target)
        return
    with suppress(OSError):
        partial.unlink()  # it is debris: another attempt follows
