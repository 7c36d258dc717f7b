"""Owns the errors a user can meet. Refuses vagueness: a raiser names the thing, its value, the way out.

Two kinds, because a shell tells them apart: what the user gave was wrong (exit code 2), or a run that
was rightly asked for failed (exit code 1). Everything else is a bug and shows a traceback.
"""


class PenstockError(Exception):
    """Base of every error whose message is complete and meant for the user."""


class InputError(PenstockError):
    """What the user gave (a file, an option, a value) cannot be used; the command exits with 2."""


class BudgetError(InputError):
    """A memory budget below the least that works.

    option: the one that gives the budget. reason: the sum that shows it. least_mib: MiB that this sum needs.
    otherwise: what else would help, from a comma on.
    """

    def __init__(self, option: str, reason: str, least_mib: int, otherwise: str = "") -> None:
        super().__init__(f"{reason}: give {option} {least_mib}MiB or more{otherwise}")
        self.option, self.reason, self.least_mib, self.otherwise = option, reason, least_mib, otherwise

    def __reduce__(self) -> tuple[type["BudgetError"], tuple[str, str, int, str]]:
        return type(self), (self.option, self.reason, self.least_mib, self.otherwise)


class DamagedError(InputError):
    """A graph file that is one, but not as it was written: cut short, changed, or without some of its shards."""


class RunError(PenstockError):
    """A run failed underway (a read error, a checksum, a full disk); the command exits with 1."""


class UnsyncedError(RunError):
    """A file is whole and has its name, but its folder could not be synced: a power failure may undo that."""
