"""Owns addresses of object stores: `s3://bucket/key`, `gs://bucket/key`.

pyarrow's file systems do the work: credentials, regions and retries are theirs. Credentials come from where the stores'
own tools look for them (`AWS_ACCESS_KEY_ID`, `~/.aws`, `GOOGLE_APPLICATION_CREDENTIALS`); `AWS_ENDPOINT_URL` names
another server that speaks S3 (MinIO, Ceph), which pyarrow does not look at itself (its issue 49643).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.storage.base.errors import InputError, RunError, brief, refusal

STORES = ("s3", "gs")
_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)", re.DOTALL)


class Address(PurePosixPath):
    """A file or a folder of an object store: a name with parts, as a path has them, that no call of this machine's
    file system takes."""

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)

    def absolute(self) -> Address:
        """Return the same: an address is whole."""
        return self

    def __fspath__(self) -> str:
        raise InputError(f"{brief(str(self))} is no file of this machine, which is wanted here; copy it first")


FilePlace = Path | Address
"""A file of this machine, or of a store."""
Place = str | FilePlace
"""A file as it is named: text of a path, "-" among them, a path or an address."""


def place_of(given: str | os.PathLike[str]) -> FilePlace:
    """Return what a name means: an address, or a path (of `file://` too).

    Raises
    ------
    InputError
        It is an address of another kind, or has no bucket.
    """
    if isinstance(given, Address):
        return given
    text = os.fspath(given)
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return Path(text)
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file" and rest.startswith("/"):
        return Path(rest)
    if scheme not in STORES or not re.match(r"[^/@?]+(/|$)", rest):
        raise InputError(f"{brief(text)!r} is no address that can be read; there are s3://, gs:// and file:///")
    return Address(f"{scheme}://{rest}")


def beside(folder: Path, place: FilePlace) -> FilePlace:
    """Return what a name in a folder means: a relative path is of a file there."""
    return place if isinstance(place, Address) else folder / place


def local(place: Place) -> Path:
    """Return a place as a path of this machine. Raises InputError for an address."""
    return Path(os.fspath(place))


def exists(place: Place) -> bool:
    """Return whether there is something of that name, but a folder of a store. Raises as `asking`."""
    return file_size(place) is not None if isinstance(place, Address) else os.path.exists(place)


@contextmanager
def asking(place: Place) -> Iterator[None]:
    """Make an error that names the place of what its file system says.

    Raises
    ------
    InputError
        There is no such file, or no access to it.
    RunError
        The store failed, or is not reached.
    """
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{place} does not exist; check the name") from None
    except OSError as error:
        reason = brief(str(error).partition("\n")[0])
        if not isinstance(place, Address):
            raise refusal(error, f"{place} cannot be read whole: {reason}; name the files in it") from error
        if "NO_SUCH_BUCKET" in reason:
            raise InputError(f"{place} does not exist: there is no such bucket; check the name") from None
        if "ACCESS_DENIED" in reason or "PermissionDenied" in reason or isinstance(error, PermissionError):
            raise InputError(f"{place}: access is refused ({reason}); check the credentials") from error
        raise RunError(f"{place}: the store failed: {reason}") from error


def s3_server() -> str | None:
    """Return the server that `AWS_ENDPOINT_URL` names, where S3 is not Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


@cache
def _store(scheme: str, bucket: str) -> Any:
    from pyarrow import fs

    if scheme == "s3" and s3_server():
        return fs.S3FileSystem(endpoint_override=s3_server())
    return fs.FileSystem.from_uri(f"{scheme}://{bucket}")[0]


def store_of(place: Place) -> tuple[Any, str]:
    """Return the pyarrow.fs.FileSystem of a place, and its name there. Raises as `asking`."""
    if isinstance(place, Address):
        scheme, _, rest = str(place).partition("://")
        with asking(place):
            return _store(scheme, rest.partition("/")[0]), rest
    from pyarrow import fs

    return fs.LocalFileSystem(), str(place)


def open_stored(address: Address, *, ordered: bool) -> tuple[Any, int]:
    """Open a file of a store, and return its size in bytes, too. ordered: it is read from its beginning to its end.

    Raises as `asking`.
    """
    from pyarrow import BufferedInputStream

    store, name = store_of(address)
    with asking(address):
        file = store.open_input_file(name)
        return BufferedInputStream(file, ORDERED_BYTES) if ordered else file, file.size()


ORDERED_BYTES = 8 << 20
"""Asked of a store at once: a request takes tens of milliseconds, whatever it brings."""


def file_size(place: Place) -> int | None:
    """Return the bytes of a file; None where there is none, or a pipe. Raises as `asking`."""
    if not isinstance(place, Address):
        return os.path.getsize(place) if os.path.isfile(place) else None
    store, name = store_of(place)
    with asking(place):
        found = store.get_file_info(name)
    return int(found.size) if found.is_file else None


def check_bucket(address: Address) -> None:
    """Refuse an address without a file in a bucket, or with a bucket that is not there, as far as one may ask.

    Raises
    ------
    InputError
        It is such an address.
    """
    _, bucket, *names = address.parts
    if not names:
        raise InputError(f"{address} is a bucket; name a file in it")
    from pyarrow import fs

    with suppress(OSError):  # who may write a file need not have the right to see the bucket
        if store_of(address)[0].get_file_info(bucket).type == fs.FileType.NotFound:
            raise InputError(f"{address} does not exist: there is no such bucket; check the name")


def names_below(folder: FilePlace) -> list[str]:
    """Return the names of all files below a folder, from it on, in order; of links that lead nowhere, too.

    Raises as `asking`, and InputError for a link to a folder that it lies in, which would have files many times.
    """
    if not isinstance(folder, Address):
        with asking(folder):
            return sorted(_names_here(os.fspath(folder), "", ()))
    from pyarrow import fs

    store, base = store_of(folder)
    with asking(folder):
        found = store.get_file_info(fs.FileSelector(base, recursive=True))
    return sorted(os.path.relpath(one.path, base) for one in found if one.is_file)


def _names_here(folder: str, before: str, above: tuple[os.stat_result, ...]) -> Iterator[str]:
    own = os.stat(folder)
    if any(os.path.samestat(own, one) for one in above):
        raise InputError(f"{folder} is a link to a folder that it lies in; name the files, or remove the link")
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _names_here(entry.path, f"{before}{entry.name}/", (*above, own))
            elif entry.is_file() or not os.path.exists(entry.path):
                yield before + entry.name


def send(partial: Path, address: Address) -> None:
    """Copy a file to a store, where it appears whole or not at all. Raises as `asking`."""
    from pyarrow import fs

    store, name = store_of(address)
    with asking(address):
        fs.copy_files(str(partial), name, source_filesystem=fs.LocalFileSystem(), destination_filesystem=store)
