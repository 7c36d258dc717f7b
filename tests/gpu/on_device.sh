#!/bin/bash
# Run on a lent machine that starts bare: make the package importable, then run the rest of the line.
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl || exit 1
mkdir -p /tmp/site/penstock
ln -sfn "$PWD/tools/package/__init__.py" /tmp/site/penstock/__init__.py
for floor in engine storage transfer tools; do ln -sfn "$PWD/$floor" /tmp/site/penstock/$floor; done
export PYTHONPATH=/tmp/site PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
exec "$@"
