"""Two hosts on one machine: a network, a host name, file systems and shared memory of their own for each.

They are Linux namespaces, so only root can make them. MPICH's mpiexec starts the processes of a host by a command that
stands for ssh.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.tools.run.launch_ranks import find_mpiexec
from support.launched_ranks import PATIENCE_SECONDS

HOSTS = ("a", "b")
_REMOTE = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
exec {folder}/enter "$1" bash -c "${{*:2}}"
"""
_ENTER = """#!/bin/bash
host=$1; shift
exec ip netns exec {net}$host unshare --mount --uts --ipc bash -c '
    hostname penstock-'$host' &&
    mount -t tmpfs tmpfs /dev/shm &&
    mount --bind {folder}/'$host' {folder}/disk &&
    exec "$@"' enter "$@"
"""


@dataclass(frozen=True)
class Hosts:
    """Both hosts; each sees a disk of its own as `folder`/disk, which is `folder`/a or `folder`/b from outside."""

    folder: Path
    net: str

    def run(self, host: str, *command: object) -> subprocess.CompletedProcess[str]:
        """Run a command on a host, in `folder`."""
        return subprocess.run(
            [self.folder / "enter", host, *map(str, command)],
            capture_output=True, text=True, cwd=self.folder, timeout=PATIENCE_SECONDS, check=False,
        )  # fmt: skip

    def ranks(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run the command line with one rank on each host; mpiexec is on the first."""
        launch = [
            find_mpiexec(),
            "-launcher",
            "ssh",
            "-launcher-exec",
            self.folder / "remote",
            "-iface",
            f"{self.net}-a",
        ]
        both = ["-n", 2, "-ppn", 1, "-hosts", ",".join(HOSTS)]
        return self.run(HOSTS[0], *launch, *both, sys.executable, "-m", "penstock.tools.main", *arguments)


def possible() -> bool:
    """Whether this process may make hosts."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in ("ip", "unshare", "mount")):
        return False
    trial = ["unshare", "--mount", "--uts", "--ipc", "--net", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    return subprocess.run(trial, capture_output=True, check=False).returncode == 0


@contextmanager
def two_hosts(folder: Path) -> Iterator[Hosts]:
    """Two hosts that are joined by a network, for as long as this lasts."""
    net = f"pen{os.getpid()}"
    for name, text in (("remote", _REMOTE), ("enter", _ENTER)):
        (folder / name).write_text(text.format(folder=shlex.quote(str(folder)), net=net))
        (folder / name).chmod(0o755)
    for name in (*HOSTS, "disk"):
        (folder / name).mkdir()
    ends = [f"{net}-{host}" for host in HOSTS]
    try:
        for host in HOSTS:
            _ip("netns", "add", f"{net}{host}")
        _ip("link", "add", ends[0], "netns", f"{net}a", "type", "veth", "peer", "name", ends[1], "netns", f"{net}b")
        for number, (host, end) in enumerate(zip(HOSTS, ends, strict=True), 1):
            _ip("-n", f"{net}{host}", "addr", "add", f"10.99.0.{number}/24", "dev", end)
            _ip("-n", f"{net}{host}", "link", "set", end, "up")
            _ip("-n", f"{net}{host}", "link", "set", "lo", "up")
        yield Hosts(folder, net)
    finally:
        for host in HOSTS:
            subprocess.run(["ip", "netns", "del", f"{net}{host}"], capture_output=True, check=False)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
