"""What every part of storage stands on: errors, budgets, atomic files, threads, timeline, caches of compiled code."""
