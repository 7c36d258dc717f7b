"""The lines of `--metrics`, declared once: a run makes and writes them, `penstock report` reads and checks them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypedDict

from penstock.storage.base import hardware_info
from penstock.tools.base.json_record import Rate, of_json, shown
from penstock.tools.run.account import Account

if TYPE_CHECKING:
    from penstock.engine.session import Session

FORMAT = 2
"""1: without stages, and without the last line."""
DEEPEST = 100
"""Lists and objects inside each other in a job's line, at most: what says a value in full goes down all of them."""


class GraphFacts(TypedDict, total=False):
    """What was walked; path: null in memory. bytes: of the file."""

    path: str | None
    vertices: int
    edges: int
    directed: bool
    bytes: int


class DeviceFacts(TypedDict):
    """Where it ran, among what else a device says of itself."""

    kind: str
    name: str


class MachineFacts(TypedDict, total=False):
    """What this machine is, as `hardware_info.facts` says."""

    processor: str


class RatesFacts(TypedDict, total=False):
    """Of `Rates`, those that say how long a stage would have been at work."""

    disk_bytes: Rate
    decode_bytes: Rate
    gather_bytes: Rate
    copy_bytes: Rate
    line_rate: Rate
    kernel_edges: Rate


@dataclass(frozen=True, kw_only=True)
class JobLine:
    """The first line of a program: what runs where, with which options, rates and budgets in bytes."""

    format: int
    program: str | None = None
    parameters: dict[str, Any] | None = None
    graph: GraphFacts
    options: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    device: DeviceFacts
    budget: dict[str, int] = field(default_factory=dict)
    machine: MachineFacts = field(default_factory=MachineFacts)
    rates: RatesFacts = field(default_factory=RatesFacts)
    started: str | None = None

    @classmethod
    def of(cls, session: Session, facts: Mapping[str, Any]) -> JobLine:
        """What a session says about what it runs on; facts: the program's name and parameters."""
        config, graph, device = session.config, session.graph, session.device
        known: dict[str, Any] = {
            "graph": {
                "path": graph.path,
                "vertices": graph.vertices,
                "edges": graph.edges,
                "directed": graph.directed,
                "bytes": graph.file_bytes,
            },
            "options": config.facts(changed=True),
            "threads": config.thread_count,
            "device": {"name": device.name, **device.facts()},
            "budget": {
                "host": config.memory_bytes,
                "device": device.own_bytes,
                "device_edges": config.device_edge_memory,
            },
            "machine": hardware_info.facts(),
            "rates": asdict(session.rates),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return cls(format=FORMAT, **facts, **known)


@dataclass(frozen=True, kw_only=True)
class MemoryReading:
    """Bytes held now, of the process and of the device; of edges those that a run reads, and room in either memory."""

    process: int | None = None
    device: int | None = None
    edges: int | None = None
    edges_host: int | None = None
    edges_device: int | None = None
    chunk: int | None = None

    def __post_init__(self) -> None:
        room = {name: getattr(self, name) for name in ("edges", "edges_host", "edges_device")}
        lacking = [name for name, size in room.items() if size is None]
        if 0 < len(lacking) < len(room):
            raise ValueError(f"memory.{lacking[0]} is missing")


@dataclass(frozen=True, kw_only=True)
class IterationLine:
    """An iteration that is over, by the names of `IterationRecord.summary`.

    frontier_edges: 0, not counted, where a search by windows goes along rows that it kept. routes: what came by each.
    busy_seconds: of each resource. compile_seconds: of its own, spent on compiling and loading kernels. What is None
    there was none of, or an earlier version did not tell.
    """

    iteration: int = 0
    phase: int | None = None
    phase_name: str | None = None
    direction: str | None = None
    frontier_vertices: int
    frontier_edges: int
    seconds: float
    walk_seconds: float | None = None
    checkpoint_bytes: int | None = None
    checkpoint_seconds: float | None = None
    plan_seconds: float | None = None
    exchange_seconds: float | None = None
    rank_seconds: list[float] | None = None
    moved: list[int] | None = None
    move_seconds: float | None = None
    windows: int | None = None
    value_bytes: int | None = None
    value_wait_seconds: float | None = None
    bytes_disk: int | None = None
    bytes_link: int | None = None
    tasks: int | None = None
    routes: dict[str, dict[str, float]]
    busy_seconds: dict[str, float]
    disk_seconds: float | None = None
    decode_seconds: float | None = None
    gather_seconds: float | None = None
    link_seconds: float | None = None
    unpack_seconds: float | None = None
    kernel_seconds: float | None = None
    wait_seconds: float | None = None
    chunks_read: int | None = None
    bytes_unpacked: int | None = None
    chunks_cached: int | None = None
    cache_hit_rate: float | None
    prediction_errors: dict[str, Any] = field(default_factory=dict)
    elapsed: float | None = None
    memory: MemoryReading | None = None
    compile_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class RankLine:
    """What one rank did, by the names of `RankReport.facts`; by_iteration: the same of every iteration."""

    rank: int
    host: str
    device: str
    bytes_disk: int
    bytes_link: int
    value_bytes: int | None = None
    tasks: int
    seconds: float
    exchange_seconds: float
    value_seconds: float | None = None
    busy_seconds: dict[str, float] | None = None
    peak_memory_bytes: int
    by_iteration: dict[str, list[float]] | None = None


@dataclass(frozen=True, kw_only=True)
class ResultLine:
    """The last line of a program whose answer is written, among what else is said of the result."""

    total_seconds: float | None = None
    converged: object = None
    ranks: list[RankLine] | None = None


@dataclass(frozen=True, kw_only=True)
class FailedLine:
    """The last line of a program that did not reach its end."""

    error: object


Line = JobLine | IterationLine | ResultLine | FailedLine | Account
KINDS: dict[str, type[Line]] = {
    "job": JobLine, "iteration": IterationLine, "result": ResultLine, "failed": FailedLine, "end": Account,
}  # fmt: skip


def line_of(facts: object) -> tuple[Line, Account | None]:
    """Return the line that a JSON value is, and what it accounts for. Raises ValueError for what no run writes."""
    if not isinstance(facts, dict):
        raise ValueError(f"it is {shown(facts)}, not an object")
    try:
        json.dumps(facts, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it is not Unicode: it holds half of a surrogate pair") from None
    kind, newest = facts.get("kind"), facts.get("format")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind is {shown(kind)}, which is not known")
    if kind == "job" and isinstance(newest, int) and newest > FORMAT:  # its fields may be others
        raise ValueError(f"format {shown(newest)} is newer than this Penstock's {FORMAT}; update it")
    if kind == "job" and _is_deep(facts):
        raise ValueError("it is nested too deeply")
    accounts = any(facts.get(name) is not None for name in ("wall_seconds", "stages"))
    return of_json(KINDS[kind], facts), of_json(Account, facts) if accounts else None


def _is_deep(facts: dict[str, Any]) -> bool:
    level: list[Any] = [facts]
    for _ in range(DEEPEST):
        parts = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [item for part in parts for item in part]
    return bool(level)
