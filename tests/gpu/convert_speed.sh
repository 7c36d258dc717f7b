#!/bin/bash
# Measure `generate` and `convert` on a machine with many cores: seconds per stage, edges/s, peak memory, one line each.
#
#     bash tests/gpu/on_device.sh bash tests/gpu/convert_speed.sh [FOLDER [SCALE [PYTHON]]]
#
# R-MAT of SCALE (25) and of one less, edge factor 16, as binary32 pairs, raw CSR and text (the smaller). FOLDER (a new one)
# needs about 16 GB at scale 25. Inputs lie in the page cache, kernels are compiled by a small graph first.
set -e
folder=$(mktemp -d -p "${1:-/tmp}" convert.XXXXXX)
scale=${2:-25}
python=${3:-python3}
less=$((scale - 1))
trap 'rm -rf "$folder"' EXIT

measure='
import json, resource, subprocess, sys

name, *command = sys.argv[1:]
done = subprocess.run(command, stdout=subprocess.PIPE)
if done.returncode:
    sys.exit(f"{name}: exit code {done.returncode}")
facts, used = json.loads(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN)
took, edges = facts["seconds"], facts.get("input_edges", facts["edges"])
stages = " ".join(f"{stage} {part:.2f}" for stage, part in facts.get("stage_seconds", {}).items())
peak, scratch = facts["peak_memory_bytes"] / 2**30, facts.get("scratch_bytes", 0) / 2**30
print(
    f"{name:<27} {took:6.2f} s {edges / took / 1e6:6.1f} M edges/s  user {used.ru_utime:5.1f} sys {used.ru_stime:5.1f}"
    f"  faults {used.ru_minflt / 1e6:4.1f} M  peak {peak:4.1f} scratch {scratch:.1f} GiB  {stages}",
    flush=True,
)
'
penstock() {
    local name=$1
    shift
    "$python" -c "$measure" "$name" "$python" -m penstock.tools.cli "$@" --json --force
    rm -f "$folder/out.h5"
}

echo "$(nproc) cores, $(free -g | awk '/Mem/ {print $2 " GiB, " $7 " free"}'), huge pages $(cat /sys/kernel/mm/transparent_hugepage/enabled), $(lscpu | grep -E 'Model name|Thread|L3' | tr -s ' ' | tr '\n' ';')"
dd if=/dev/zero of="$folder/zeros" bs=8M count=256 conv=fsync 2>&1 | tail -1
rm -f "$folder/zeros"
penstock "generate rmat 16 (compiles)" generate rmat --scale 16 --output "$folder/16.bin"
penstock "binary32 16 (compiles)" convert --format binary32 "$folder/16.bin" "$folder/out.h5"
penstock "generate rmat $less .bin" generate rmat --scale $less --output "$folder/$less.bin"
penstock "generate rmat $scale .bin" generate rmat --scale $scale --output "$folder/$scale.bin"
penstock "generate rmat $scale .h5" generate rmat --scale $scale --output "$folder/out.h5"
penstock "binary32 $less" convert --format binary32 "$folder/$less.bin" "$folder/out.h5"
penstock "binary32 $less again" convert --format binary32 "$folder/$less.bin" "$folder/out.h5"
penstock "binary32 $scale" convert --format binary32 "$folder/$scale.bin" "$folder/$scale.h5"
penstock "binary32 $scale again" convert --format binary32 "$folder/$scale.bin" "$folder/out.h5"
penstock "binary32 $scale, 8 threads" convert --format binary32 "$folder/$scale.bin" "$folder/out.h5" --threads 8
penstock "binary32 $scale, 4 threads" convert --format binary32 "$folder/$scale.bin" "$folder/out.h5" --threads 4
penstock "binary32 $scale, 16 GiB" convert --format binary32 "$folder/$scale.bin" "$folder/out.h5" --host-memory 16GiB
penstock "binary32 $scale undirected" convert --format binary32 "$folder/$scale.bin" "$folder/out.h5" --undirected
rm -f "$folder/$scale.bin" "$folder/$less.bin"

"$python" - "$folder/$scale.h5" "$folder" <<'PYTHON'
import sys
from pathlib import Path

import numpy as np
from penstock.storage.format.graph import Graph

adjacency = Graph.open(sys.argv[1]).out
with Path(sys.argv[2], "neighbors.bin").open("wb") as file:
    for neighbors in adjacency.neighbors.load():
        neighbors.tofile(file)
degrees = np.concatenate([d.astype(np.uint64) for d in adjacency.degrees.load()])
np.concatenate([np.zeros(1, np.uint64), np.cumsum(degrees, dtype=np.uint64)]).tofile(Path(sys.argv[2], "offsets.bin"))
PYTHON
csr=(--format csr "$folder/offsets.bin" "$folder/neighbors.bin")
penstock "csr $scale (compiles)" convert "${csr[@]}" "$folder/out.h5"
penstock "csr $scale" convert "${csr[@]}" "$folder/out.h5"
penstock "csr $scale, 8 threads" convert "${csr[@]}" "$folder/out.h5" --threads 8
penstock "csr $scale both" convert "${csr[@]}" "$folder/out.h5" --direction both
rm -f "$folder"/*.h5 "$folder"/neighbors.bin "$folder"/offsets.bin
penstock "generate rmat $less .txt" generate rmat --scale $less --output "$folder/$less.txt"
penstock "text $less" convert "$folder/$less.txt" "$folder/out.h5"
penstock "text $less again" convert "$folder/$less.txt" "$folder/out.h5"
