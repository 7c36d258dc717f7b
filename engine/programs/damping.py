"""Owns the damping of rankings: the share that follows edges, which some call alpha.

Refuses two values under its two names: nobody can know which one was meant.
"""

from __future__ import annotations

from penstock.storage.base.errors import InputError


def damping_of(damping: float, alpha: float | None, usual: float) -> float:
    """The damping that is meant; alpha: its other name, where that was used; usual: the default.

    Raises InputError for two that differ.
    """
    if alpha is not None and damping not in (usual, alpha):
        raise InputError(f"damping {damping} and alpha {alpha} are two names of one number; give one of them")
    return damping if alpha is None else alpha
