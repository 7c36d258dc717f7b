"""The vertex state on a device that has memory of its own.

Owns the arrays (of the device's kind) and how they come and go: filled in place, or copied from and to the host.
Shape and meaning are those of `state.State`, but for bitmaps, which have one level of 32-bit words here: a GPU reads
all words of a bitmap sooner than it would follow a second level.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import Program, fields_of, resolve_dtype, value_of
from penstock.engine.state.oriented_rows import DeviceOrientedRows
from penstock.engine.state.state import SPAN, State, fields_for, has_frontier, is_sweep, list_capacity
from penstock.engine.state.state_arrays import SENT, StateArrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from penstock.engine.program.bindings import Author
    from penstock.engine.state.device_pages import DevicePages
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.devices.device import Device

TALLIES = 8
"""Tasks of an iteration whose lines are counted one by one; further ones count together with the last."""
LIST_SHARE = 2  # the frontier is listed while it has at most half of the vertices


class DeviceBitmap:
    """uint32 words of the device, one bit a vertex, padded to whole spans: the words of a `state.Bitmap`."""

    def __init__(self, device: Device, vertices: int) -> None:
        self.words = device.array(max(1, -(-vertices // SPAN)) * (SPAN // 32), np.uint32)
        self.clear()

    def spans_with_some(self, rows: int) -> list[bool]:
        """Of each range of so many positions, whole spans, whether some bit is set."""
        each = rows // 32
        whole = len(self.words) // each * each
        parts = (self.words[:whole], each), (self.words[whole:], len(self.words) - whole)
        return [
            found
            for words, each in parts
            if each and len(words)
            for found in words.reshape(-1, each).any(axis=1).tolist()
        ]

    def clear(self) -> None:
        """Unset every bit."""
        self.words[...] = 0

    def part(self, first: int, last: int) -> DeviceBitmap:
        """The bits of positions first..last-1, whole spans but for the last, in the same memory."""
        found, each = copy(self), SPAN // 32
        found.words = self.words[first // SPAN * each : -(-last // SPAN) * each]
        return found

    def summarize(self) -> None:
        """Do nothing, where `state.Bitmap` sets its second level."""


class DeviceState(StateArrays):
    """The state of the vertices [first, last) on a device; see `state.State`.

    host_readback, host_readback_rest, host_readback_lines: what the host reads after `select`; device_readback…: the
    same memory as kernels write it. partial_here float64[1, globals]: where kernels put the Globals' sums; adding:
    whether some are on the way. sent_ahead: where `sent` already holds what every vertex sends next, the numbers that
    the author's `send` read; else None. arrays: the fields' arrays in declared order, as kernels take them (the same
    tuple until fields are swapped). pages: what holds the arrays of values where the device has no room for all; then
    `given` are fields that are there already.
    """

    lines: int
    pages: DevicePages | None

    def __init__(
        self, program: Program, author: Author, span: tuple[int, int], vertex_dtype: Any, device: Any,
        pages: DevicePages | None = None, given: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.device, self.pages = device, pages
        self.first, self.last = span
        count = self.last - self.first
        self._paged = {} if pages is None else fields_for(program, count, vertex_dtype, given, pages=pages)
        self.fields = {} if pages is None else {name: pages.values(name) for name in self._paged}
        for name, spec in fields_of(program).items() if pages is None else ():
            dtype = resolve_dtype(spec.dtype, vertex_dtype)
            array = device.array(count * int(np.prod(spec.shape, dtype=np.int64)), dtype)
            array[...] = value_of(spec.fill, dtype)
            self.fields[name] = array.reshape((count, *spec.shape)) if spec.shape else array
        self.arrays = tuple(self.fields.values())
        self.identity = author.identity
        self.message_shape = program.message_shape
        self._accumulator = program.accumulator
        if pages is not None and author.has_send:
            self.sent = pages.add(SENT, author.message, 0)
        else:
            self.sent = device.array(count if author.has_send else 1, author.message)
        self.pending = DeviceBitmap(device, count)
        alike = pages is not None and is_sweep(program)  # sweeps ask none of them
        self.active = self.pending if alike else DeviceBitmap(device, count)
        self.touched = self.pending
        capacity = SPAN if pages is not None else list_capacity(program, count, LIST_SHARE)
        self.vertices = device.array(capacity, vertex_dtype)
        self.work = device.array(capacity + 1, np.int64)
        self.walked = count
        self.block_rows = max(1, count)  # any number: an edge travels once for every block
        self.lines = 0
        self.totals = device.array(3, np.int64)
        self.host_readback, self.device_readback = device.shared_array(4, np.int64)
        floats, floats_here = device.shared_array(1 + max(1, len(author.totals)), np.float64)
        self.host_readback_rest, self.device_readback_rest = floats[:1], floats_here[:1]
        self._partial: NDArray[np.float64] = floats[1:].reshape(1, -1)
        self.partial_here = floats_here[1:].reshape(1, -1)
        self.host_readback_lines, self.device_readback_lines = device.shared_array(TALLIES, np.int64)
        self.adding = False

    def _new_marks(self) -> DeviceBitmap:
        return DeviceBitmap(self.device, self.last - self.first)

    def _new_messages(self) -> Any:
        shape = (self.last - self.first, *self.message_shape)
        messages = self.device.array(int(np.prod(shape, dtype=np.int64)), self.sent.dtype).reshape(shape)
        messages[...] = self.identity
        return messages

    @property
    def partial(self) -> NDArray[np.float64]:
        """The Globals' sums, float64 (1, globals), in host memory, after the kernels that sum them."""
        if self.adding or self.pages is not None:
            self.device.finish()
            self.adding = False
        return self._partial

    def listed_along(self, frontier: Frontier, index: Index) -> Frontier:
        """The frontier without its list, which is on the device and is along another adjacency's rows."""
        return replace(frontier, listed=False)

    def host_fields(self) -> dict[str, Any]:
        """Every field's values, copied to the host; or what reads them there (`PagedValues`)."""
        return {name: self.host_field(name) for name in self.fields}

    def host_field(self, name: str) -> Any:
        """One of `host_fields`."""
        if self.pages is None:
            return self.to_host(self.fields[name])
        self.pages.flush()
        return self._paged[name]

    def room_for(self, name: str) -> Any:
        """As `State.room_for`; of values on the device, not filled."""
        here = self.fields[name]
        return self.host_field(name) if self.pages is not None else np.empty(here.shape, here.dtype)

    def values_at(self, name: str, places: NDArray[np.int64]) -> NDArray[Any]:
        """As `State.values_at`."""
        if self.pages is not None:
            found: NDArray[Any] = self.host_field(name)[places]
            return found
        return self.to_host(self.fields[name][places])

    def has_nan(self, name: str) -> bool:
        """As `State.has_nan`, found out on the device."""
        step = max(1, self.last - self.first) if self.pages is None else self.pages.rows
        for v0 in range(self.first, self.last, step):
            v1 = min(v0 + step, self.last)
            with self.held((name,), v0, v1, until=v1 + step):
                values = self.fields[name][v0 - self.first : v1 - self.first]
                if values.size and bool(np.isnan(float(values.min()))):
                    return True
        return False

    def oriented_rows(self, rows: int, edges: int) -> DeviceOrientedRows:
        """As `State.oriented_rows`."""
        return DeviceOrientedRows(self.empty, rows, edges, self.vertices.dtype)

    def empty(self, count: int, dtype: Any) -> Any:
        """An array of `count` items of the device, not filled."""
        return self.device.array(count, dtype)

    def to_host(self, array: Any) -> NDArray[Any]:
        """A copy of an array of the device in host memory."""
        copied: NDArray[Any] = self.device.to_host(array)
        return copied

    def from_host(self, array: Any, values: NDArray[Any]) -> None:
        """Copy values of host memory into an array of the device."""
        self.sent_ahead = None
        self.device.copy_in(array, values, None)

    def pending_bits(self) -> NDArray[np.uint8]:
        """Who is pending, copied to the host once all kernels are done; as `State.pending_bits`."""
        self.device.finish()
        words: NDArray[np.uint32] = self.device.to_host(self.pending.words)
        return words.view(np.uint8)[: -(-(self.last - self.first) // 8)]

    def take(self, fields: dict[str, Any]) -> None:
        """Adopt values from the host."""
        self.sent_ahead = None
        for name, values in fields.items():
            if self.pages is None:
                self.device.copy_in(self.fields[name], values, None)
            elif values is not self._paged[name]:
                self.host_field(name)[:] = values


VertexState = State | DeviceState
"""What kernels work on: arrays of the host, or of a device with memory of its own."""


def device_state_bytes(program: Program, vertices: int, vertex_dtype: Any) -> int:
    """Bytes that a DeviceState's longer lists take beyond what `state.state_bytes` counts."""
    if not has_frontier(program):
        return 0
    listed = (vertices // LIST_SHARE) * (int(np.dtype(vertex_dtype).itemsize) + 8)
    return listed + vertices // 8  # the bitmap of fused iterations
