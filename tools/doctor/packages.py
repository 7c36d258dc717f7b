"""Which packages are installed, in which versions, and whether those that are needed can be imported."""

from __future__ import annotations

import re
from importlib import metadata

from penstock.storage.base.errors import installing
from penstock.tools.doctor.finding import Finding, Section

MODULES = {"numba-cuda": "numba_cuda", "cupy-cuda13x": "cupy", "nvidia-nccl-cu13": "nvidia.nccl"}
"""Modules that are not called as their packages."""
PURPOSE = {
    "cuda": "runs on an NVIDIA GPU",
    "ranks": "several processes share a graph (--devices, mpiexec)",
    "plot": "pictures of penstock report and bench routes",
}
"""Of the extras that people install, what they are for."""
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)(?:;(.*))?$")
_EXTRA = re.compile(r"""extra == ["']([\w-]+)["']""")


def module_of(package: str) -> str:
    """What is imported of a package."""
    return MODULES.get(package, package.replace("-", "_"))


def version_of(package: str) -> str | None:
    """Return the version of an installed package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed() -> bool:
    """Whether Penstock itself is an installed package. Its sources alone on Python's path name no requirements."""
    return version_of("penstock") is not None


def requirements(extra: str = "", lines: list[str] | None = None) -> dict[str, str]:
    """Return the packages that the installation names for an extra, "": that are needed, and the versions it takes.

    lines: its metadata, as `importlib.metadata.requires` gives them.
    """
    if lines is None:
        lines = (metadata.requires("penstock") or []) if installed() else []
    matches = (match for line in lines if (match := _REQUIREMENT.match(line)) is not None)
    found = ((match[1], match[2].strip(), _EXTRA.search(match[3] or "")) for match in matches)
    return {package: versions for package, versions, of in found if (of[1] if of else "") == extra}


def allows(versions: str, version: str) -> bool:
    """Whether a version is one of these, ``>=2.0,<2.5``; what is written otherwise allows everything."""
    have = _numbers(version)
    for rule in versions.split(","):
        match = re.match(r"\s*(>=|<)\s*([0-9.]+)", rule)
        if match is not None and (have >= _numbers(match[2])) != (match[1] == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
    return found + (0,) * (3 - len(found))


def needed(failed: dict[str, str], trouble: str) -> Section:
    """Return what is found of the packages without which nothing works; failed: errors by module, of their import."""
    findings: list[Finding] = []
    values: dict[str, str | None] = {}
    if not installed():
        told = "not an installed package: its sources are on Python's path, so that its requirements are unknown"
        findings.append(Finding("penstock", told, "missing", "pip install . in its sources"))
    for package, versions in requirements().items():
        version, error = version_of(package), failed.get(module_of(package), trouble)
        values[package] = version
        told, way_out = version or "not installed", ""
        if version is None or not allows(versions, version):
            told += "" if version is None else f", and {versions} is needed"
            way_out = f"pip install '{package}{versions}'"
        elif error:
            told += f" cannot be imported: {error}"
            way_out = f"pip install --force-reinstall {package}"
        findings.append(Finding(package, told, "broken" if way_out else "ok", way_out))
    return Section("Packages", findings, values)


def optional(*, has_gpu: bool) -> Section:
    """Return what is found of the extras that a user may install; has_gpu: whether one of them would be of use."""
    findings, values = [], {}
    for extra, purpose in PURPOSE.items() if installed() else ():
        there = {package: version_of(package) for package in requirements(extra) if package != "numpy"}
        values[extra] = there
        lacking = [name for name, version in there.items() if version is None]
        told = f"{', '.join(lacking)} not installed: {purpose}"
        if not lacking:
            findings.append(Finding(extra, ", ".join(f"{name} {version}" for name, version in there.items())))
        elif extra == "cuda" and not has_gpu:
            findings.append(Finding(extra, f"{told}, and there is none here"))
        else:
            findings.append(Finding(extra, told, "missing", installing(extra)))
    return Section("Extras", findings, values)
