"""What every part of storage stands on: errors, budgets, atomic files, threads, clocks, caches of compiled code."""
