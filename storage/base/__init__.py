"""What every part of storage stands on: errors, budgets, atomic files, threads, the timeline, caches of compiled code."""
