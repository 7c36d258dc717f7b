"""`python tests/benchmarks SUITE...`: see README.md."""

import importlib
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])
sys.exit(importlib.import_module("benchmarks.command").main())
