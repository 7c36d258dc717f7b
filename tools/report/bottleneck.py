"""What limited a run, and what would help, in one sentence computed from its records and this machine's rates.

The busiest stage is the limit if it was at work at least half of the time; otherwise the stages took turns (waiting).
Before that, the limit is the fixed cost of an iteration (latency) where iterations are short and take much longer than
their edges would at this machine's rates, or where planning takes at least half of the time. On the host, kernels over
edges and work on vertices share the cores and count together. Where values of vertices come from a file, stages take
turns by design, and the busiest one is the limit. The view of a run as resources that work at the same
time, of which the busiest limits it, is the roofline's (Williams, Waterman and Patterson, CACM 2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import counted, seconds
from penstock.tools.run.account import Account

STAGES = {
    "plan": ("demand and plan", "planning"),
    "disk": ("reading from disk", "the disk"),
    "values": ("values in pages", "values of vertices"),
    "decode": ("decoding", "decoding"),
    "gather": ("gathering rows", "gathering"),
    "link": ("link to the device", "the link"),
    "unpack": ("unpacking edges", "unpacking"),
    "kernel": ("kernels over edges", "kernels"),
    "vertices": ("frontier, vertices", "vertices"),
    "exchange": ("exchange of ranks", "the exchange"),
}
"""What takes time in an iteration, in order: its name in a table, and in a sentence.

plan: demand, routes, tasks; values: of vertices, from and to their file; vertices: outside the walk over edges;
exchange: of several ranks, with what they wait for each other.
"""
BUSY = 0.5
"""Share of the time from which a resource limits a run."""
SMALL = 0.2
"""Where the edges would take less than this share of the time, and iterations are short, the limit is latency."""
SHORT = 2e-3
"""Seconds of an iteration, on average, below which iterations are short."""


@dataclass(frozen=True)
class Spent:
    """Sums over a run's iterations, in seconds and bytes.

    busy: how long each of STAGES was at work. ideal: how long it would have been at this machine's rates, for stages
    with a known rate. moved: bytes that a stage read, decoded, gathered, moved over the link or unpacked to.
    edges_bytes: of all edges that the run reads; host_bytes, device_bytes: of those that there is room to keep in host
    memory, and on the device. passes: how often the edges were read from disk. linked: whether a device has memory of
    its own. windows: of vertices, at most, 0 where memory has all their values.
    """

    seconds: float
    iterations: int
    edges: int
    busy: Mapping[str, float]
    ideal: Mapping[str, float]
    moved: Mapping[str, int] = field(default_factory=dict)
    edges_bytes: int = 0
    host_bytes: int = 0
    device_bytes: int = 0
    passes: float = 0.0
    threads: int = 1
    linked: bool = False
    windows: int = 0

    def share(self, stage: str) -> float:
        """Share of the time in which a stage was at work, 0 to 1."""
        return min(1.0, self.busy.get(stage, 0.0) / self.seconds) if self.seconds > 0 else 0.0

    def of_rate(self, stage: str) -> float | None:
        """Its rate while at work, as a share of this machine's; None where that is not known."""
        busy, ideal = self.busy.get(stage, 0.0), self.ideal.get(stage, 0.0)
        return ideal / busy if busy > 0 and ideal / busy > 1e-9 else None


@dataclass(frozen=True)
class Bottleneck:
    """limit: a stage, "waiting", "latency" or "nothing". sentence: for people.

    share: of the time, in which the stage was at work; for "waiting", in which the busiest stage was not; for
    "latency", beyond what the edges would take at this machine's rates.
    """

    limit: str
    share: float
    sentence: str


def judge(spent: Spent) -> Bottleneck:
    """Return what limited a run, and what would help."""
    if spent.seconds <= 0 or not spent.iterations:
        return Bottleneck("nothing", 0.0, "nothing ran: there was no edge to walk.")
    ideal = max(spent.ideal.values(), default=0.0)
    if ideal < SMALL * spent.seconds and spent.seconds / spent.iterations < SHORT:
        return Bottleneck("latency", 1 - ideal / spent.seconds, _latency(spent, ideal))
    shares = {stage: spent.share(stage) for stage in STAGES}
    if shares["plan"] >= BUSY:
        return Bottleneck("latency", 1 - ideal / spent.seconds, _latency(spent, ideal))
    shares["kernel"] = min(1.0, shares["kernel"] + shares.pop("vertices"))
    limit = max((stage for stage in shares if stage != "plan"), key=lambda stage: shares[stage])
    if shares[limit] < BUSY and not spent.windows:
        return Bottleneck("waiting", 1 - shares[limit], _waiting(shares))
    sentences = {
        "disk": _disk, "values": _values, "decode": _decode, "gather": _gather, "link": _link, "unpack": _unpack,
        "kernel": _kernel, "exchange": _exchange,
    }  # fmt: skip
    return Bottleneck(limit, shares[limit], sentences[limit](spent, shares[limit]))


def _disk(spent: Spent, share: float) -> str:
    what = f"disk-bound: the disk was at work {percent(share)} of the time{_at_rate(spent, 'disk')}"
    if spent.passes <= 1.05:
        return f"{what}, to read everything once; more disks (convert --stripe) or fewer bytes an edge would help."
    return f"{what}, and read the edges {spent.passes:.1f} times; {_more_host(spent)}."


def _values(spent: Spent, share: float) -> str:
    moved, took = spent.moved.get("values", 0), spent.busy.get("values", 0.0)
    rate = f" ({format_bytes(moved)} at {per_second(moved / took)})" if moved and took > 0 else ""
    if spent.linked:
        return (
            f"values-bound: values of vertices were on their way over the link {percent(share)} of the time{rate}; "
            "more --device-memory would keep more of them there."
        )
    return (
        f"values-bound: the file of values of vertices was read or written {percent(share)} of the time{rate}; "
        "more --host-memory would keep more of them in memory, and a faster disk would help."
    )


def _decode(spent: Spent, share: float) -> str:
    threads = counted(spent.threads, "thread")
    what = f"decode-bound: {threads} decoded {percent(share)} of the time{_at_rate(spent, 'decode')}"
    if spent.passes <= 1.05:
        return f"{what}; more cores (--threads) would help, or convert --encoding packed, which decodes fastest."
    return f"{what}, the same edges {spent.passes:.1f} times; {_more_host(spent)}."


def _gather(spent: Spent, share: float) -> str:
    return (
        f"gather-bound: threads gathered rows for the link {percent(share)} of the time{_at_rate(spent, 'gather')}; "
        "more cores (--threads) would help, or --route zero-copy, which gathers nothing."
    )


def _link(spent: Spent, share: float) -> str:
    what = f"link-bound: the link was at work {percent(share)} of the time{_at_rate(spent, 'link')}"
    if plain := spent.moved.get("unpack", 0):
        what += f", with {format_bytes(spent.moved['link'])}, unpacked to {format_bytes(plain)} of edges"
    lacking = spent.edges_bytes - spent.device_bytes
    if lacking > 0:
        return f"{what}; {format_bytes(lacking)} more device memory for edges would keep them all there."
    return f"{what}; all edges have room on the device: a second run in the same session would not move them again."


def _unpack(spent: Spent, share: float) -> str:
    return (
        f"unpack-bound: the device unpacked edges {percent(share)} of the time; more device memory would hold them "
        "plain, or --packed never would move more bytes and unpack none."
    )


def _kernel(spent: Spent, share: float) -> str:
    vertices = spent.share("vertices")
    what = f"kernel-bound: kernels were at work {percent(share)} of the time"
    if spent.windows > 1:
        what += f", on edges read in each of {spent.windows:,} windows of vertices"
    elif vertices >= share / 2:
        what += f", mostly on vertices rather than edges ({percent(vertices)})"
    elif (rate := spent.of_rate("kernel")) is not None:
        what += f", at {percent(rate)} of this machine's rate for a plain sweep over edges"
    others = {stage: spent.share(stage) for stage in ("disk", "values", "decode", "gather", "link", "unpack")}
    next_one = max(others, key=lambda stage: others[stage])
    arrived = "edges were there when they were wanted"
    if others[next_one] >= 0.1:
        arrived = f"next is {STAGES[next_one][1]}, {percent(others[next_one])}"
    if spent.windows > 1:
        memory = "--device-memory, and fewer --windows of the file," if spent.linked else "--host-memory"
        return f"{what}; {arrived}: more {memory} would make fewer windows."
    cure = "nothing but less work or a faster GPU would help" if spent.linked else "more cores or a GPU would help"
    return f"{what}; {arrived}: {cure}, more memory would not."


def _exchange(spent: Spent, share: float) -> str:
    return (
        f"exchange-bound: ranks exchanged, or waited for the slowest of them, {percent(share)} of the time; fewer "
        "ranks would help where all compute as long, and equal ones where they do not (the table of ranks says)."
    )


def _waiting(shares: Mapping[str, float]) -> str:
    busy = [f"{STAGES[stage][1]} {percent(share)}" for stage, share in shares.items() if share >= 0.05]
    told = ", ".join(busy) if busy else "nothing for as much as 5 %"
    return (
        f"waiting: the stages took turns instead of working at the same time ({told} of the time); more --host-memory, "
        "for buffers, or smaller partitions (--partition-bytes) would let them overlap."
    )


def _latency(spent: Spent, ideal: float) -> str:
    each = spent.seconds / spent.iterations
    times, edges = counted(spent.iterations, "iteration"), spent.edges / spent.iterations
    planned = spent.share("plan")
    told = f"; planning alone took {percent(planned)}" if planned >= 0.1 else ""
    return (
        f"latency-bound: {times} of {seconds(each)} walked {edges:,.0f} edges each, which would take "
        f"{percent(ideal / spent.seconds)} of the time at this machine's rates{told}; only fewer iterations would help "
        "(--mode async, a larger --delta), not faster hardware."
    )


def per_second(rate: float, what: str = "B") -> str:
    """Write a rate for people: `51.2 GB/s`, `9.94 MB/s`, `10.7 M edges/s`."""
    unit = next((unit for unit in ("G", "M") if rate >= 0.9995 * _SCALE[unit]), "k")
    gap = " " if len(what) > 1 else ""
    return f"{rate / _SCALE[unit]:,.3g} {unit}{gap}{what}/s"


_SCALE = {"G": 1e9, "M": 1e6, "k": 1e3}


def percent(share: float) -> str:
    """Write a share for people: `71 %`, `0.4 %`."""
    return f"{100 * share:.0f} %" if share >= 0.0095 or share == 0 else f"{100 * share:.1g} %"


def _more_host(spent: Spent) -> str:
    if spent.windows > 1 and not spent.linked:
        return f"{spent.windows:,} windows of vertices read them, and more --host-memory would make fewer"
    lacking = spent.edges_bytes - spent.host_bytes
    if lacking <= 0:
        return "all of them have room in host memory now: a second run in the same session would not read"
    return f"{format_bytes(lacking)} more --host-memory would keep them all after the first time"


def _at_rate(spent: Spent, stage: str) -> str:
    """`, at 94 % of this machine's rate (50.1 GB/s of 53.3 GB/s)`."""
    share = spent.of_rate(stage)
    if share is None:
        return ""
    moved, busy = spent.moved.get(stage, 0), spent.busy.get(stage, 0.0)
    rate = moved / busy if busy > 0 else 0.0
    told = f" ({per_second(rate)} of {per_second(rate / share)})" if rate > 0 else ""
    return f", at {percent(share)} of this machine's rate{told}"


START_UP = {"imports": "imports", "opening": "opening graph and device", "kernels": "loading kernels"}
"""Stages that a job has whatever its graph."""
MENTIONED = 0.1
"""Share of the wall time from which compiling is told beside another limit."""
MOSTLY = 0.75
"""Share of the wall time from which iterations are the job, as far as its limit goes."""
_CURES = {
    "calibrating": "rates are kept, and a second run finds them",
    "index": "programs of one job file, or of one session, make it once",
    "page_locking": "a smaller --host-memory locks less; programs of one job file share what is locked",
    "loading": "more disks (convert --stripe) would help; programs of one job file load once",
    "writing": "a faster disk for --output, or .npy and .parquet in the place of text, would help",
}
"""What would help against stages, if anything would."""
_TOLD = {
    "calibrating": "measuring this machine",
    "index": "making the row index",
    "page_locking": "page-locking memory for the device",
    "loading": "loading edges before the first iteration",
    "state": "planning memory and giving every vertex its first values",
    "summary": "checking and summing up the answer",
    "writing": "writing the answer",
    "closing": "giving memory back",
    "other": "what belongs to no stage",
}
_LOADS = "a second run loads the kernels"


def judge_job(spent: Spent, account: Account | None) -> Bottleneck:
    """Return what limited a program and what would help.

    Parameters
    ----------
    spent : Spent
        Its iterations.
    account : Account, optional
        Its wall time; None where the metrics tell of no stages.

    Returns
    -------
    Bottleneck
        limit: as of `judge`, or "compiling", "start-up", or a stage of the job. share: of the wall time, if the limit
        is one of these.
    """
    inner = judge(spent)
    if account is None or account.wall_seconds <= 0 or not account.stages:
        return inner
    shares = {stage: account.share(stage) for stage in account.stages if stage not in START_UP}
    shares["start-up"] = sum(account.share(stage) for stage in START_UP)
    limit = max(shares, key=shares.__getitem__)
    share = shares[limit]
    if limit == "iterations":
        return Bottleneck(inner.limit, inner.share, _iterations(inner, account, share))
    wall = account.wall_seconds
    took = f"{percent(share)} of the wall time ({seconds(share * wall)} of {seconds(wall)})"
    rest = f"iterations took {percent(shares.get('iterations', 0.0))}"
    if limit == "compiling":
        kernels = f", for {counted(account.kernels_compiled, 'kernel')}" if account.kernels_compiled else ""
        return Bottleneck(limit, share, f"compiling took {took}{kernels}; {rest}: {_LOADS}.")
    if limit == "start-up":
        parts = ", ".join(f"{name} {percent(account.share(stage))}" for stage, name in START_UP.items())
        cure = "programs of one job file, or of one session in Python, start once"
        return Bottleneck(limit, share, f"start-up took {took}: {parts}; {rest}: {cure}.")
    cure = f": {_CURES[limit]}" if limit in _CURES else ""
    moved, busy = account.stage_bytes.get(limit, 0), account.stages.get(limit, 0.0)
    rate = f", {format_bytes(moved)} at {per_second(moved / busy)}" if moved and busy > 0 else ""
    name = limit.replace("_", "-")
    return Bottleneck(limit, share, f"{name}: {_TOLD.get(limit, limit)} took {took}{rate}; {rest}{cure}.")


def _iterations(inner: Bottleneck, account: Account, share: float) -> str:
    """The sentence on the iterations, with what else took long."""
    compiling = account.share("compiling")
    more = f"; iterations took {percent(share)} of the wall time" if share < MOSTLY else ""
    if compiling >= MENTIONED:
        more += f"; compiling took {percent(compiling)}{'' if more else ' of the wall time'}: {_LOADS}"
    return f"{inner.sentence.removesuffix('.')}{more}."
