"""Where the blocks of a zstd frame end, so that a decompressor can be fed a bounded number of them at a time.

RFC 8878, section 3.1.1: a block gives at most 128 KiB, however short it is (four bytes, where they are all alike).
Checks nothing: what is no frame is passed on whole, for the decompressor to refuse.
"""

from collections.abc import Callable, Iterator

BLOCK_BYTES = 128 << 10
_MAGIC = b"\x28\xb5\x2f\xfd"
_SINGLE, _CHECKSUM = 32, 4
_RUN, _RESERVED = 1, 3
_ALL = 1 << 62


class FrameBlocks:
    """One frame, or skippable frame. ``window``: how far it refers back, in bytes (0 until its header is read)."""

    def __init__(self) -> None:
        self.window = 0
        self._header, self._wanted = b"", 5
        self._body = 0
        self._checksum = 0
        self._read: Callable[[], None] | None = self._begin

    @property
    def complete(self) -> bool:
        """Whether the frame has ended."""
        return self._read is None and not self._body

    def cuts(self, piece: bytes, most: int) -> Iterator[int]:
        """Yield where to stop in the next piece: after at most ``most`` blocks, and at the end of piece or frame."""
        at = headers = 0
        while at < len(piece) and not self.complete:
            if self._body:
                step = min(self._body, len(piece) - at)
                self._body -= step
                at += step
                continue
            step = min(self._wanted - len(self._header), len(piece) - at)
            self._header += piece[at : at + step]
            at += step
            if len(self._header) == self._wanted and self._read is not None:
                self._read()
                headers += 1
                if headers % (most - 1) == 0:  # one more may be complete since the piece before
                    yield at
        yield at

    def _begin(self) -> None:
        """Read a magic number and what describes the rest of the header."""
        if self._header[1:4] == b"*M\x18" and self._header[0] >> 4 == 5:
            self._wanted, self._read = 8, self._skip
        elif self._header[:4] == _MAGIC:
            flags = self._header[4]
            content = (1 if flags & _SINGLE else 0, 2, 4, 8)[flags >> 6]
            self._wanted = 5 + (not flags & _SINGLE) + (0, 1, 2, 4)[flags & 3] + content
            self._read = self._describe
        else:
            self._body, self._read = _ALL, None

    def _skip(self) -> None:
        self._body, self._read = int.from_bytes(self._header[4:8], "little"), None

    def _describe(self) -> None:
        flags = self._header[4]
        self._checksum = 4 if flags & _CHECKSUM else 0
        if flags & _SINGLE:
            size = (1, 2, 4, 8)[flags >> 6]
            self.window = int.from_bytes(self._header[-size:], "little") + (256 if size == 2 else 0)
        else:
            base = 1 << (10 + (self._header[5] >> 3))
            self.window = base + base // 8 * (self._header[5] & 7)
        self._header, self._wanted, self._read = b"", 3, self._block

    def _block(self) -> None:
        header = int.from_bytes(self._header, "little")
        kind = header >> 1 & 3
        self._header = b""
        self._body = 1 if kind == _RUN else _ALL if kind == _RESERVED else header >> 3
        if header & 1:
            self._body += self._checksum
            self._read = None
