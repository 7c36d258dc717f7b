#!/bin/bash
# Run on a lent machine that starts bare: make the package importable, and MPI if its wheel is there; then run the rest
# of the line.
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/site/penstock
ln -sfn "$PWD/tools/package/__init__.py" /tmp/site/penstock/__init__.py
for floor in engine storage transfer tools; do ln -sfn "$PWD/$floor" /tmp/site/penstock/$floor; done
export PYTHONPATH=/tmp/site PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
for wheel in .whl/mpich-*.whl; do  # pip --target leaves out its lib/
    [ -e "$wheel" ] || continue
    python3 -m zipfile -e "$wheel" /tmp/mpich && chmod +x /tmp/mpich/*.data/data/bin/* || exit 1
    mpi=$(echo /tmp/mpich/*.data/data)
    export PATH="$mpi/bin:$PATH" LD_LIBRARY_PATH="$mpi/lib:$LD_LIBRARY_PATH" MPI4PY_LIBMPI="$mpi/lib/libmpi.so.12"
    # ranks are processes that mpiexec starts: each makes numba load beside a NumPy that is newer than it
    echo 'import numpy; numpy.row_stack = getattr(numpy, "row_stack", numpy.vstack)' >/tmp/site/sitecustomize.py
done
exec "$@"
