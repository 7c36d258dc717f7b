"""Owns one line of text in plain Python: the definition of right, and the words when it is wrong.

`lines` parses millions of lines a second and only says that one is bad; this file says why, and
what would help. It also tells a line of column names from a line of data.
"""

import math
import re

from penstock.storage.base.errors import InputError, brief, printable
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.text.columns import Columns

LARGEST_ID = (1 << 64) - 1
_DIGITS = 20
"""Of the largest id."""
SHOWN_LINE = 80
SHOWN_FIELD = 24
WHOLE_DIGITS = 19
"""Of a weight that is a whole number; more are not looked at."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_COMMENT = re.compile(r"(?<=[ \t\r,])[#%]")
_BLANKS = re.compile(r"[ \t\r]+")
_NAME = re.compile(r"[\"']?[A-Za-z_][\w .:/()-]*[\"']?")


def split_fields(line: str) -> list[str]:
    """The fields of a line: divided by blanks with at most one comma among them."""
    fields = []
    for part in line.strip(" \t\r\n").split(","):
        fields.extend(_BLANKS.split(part.strip(" \t\r")))
    return fields


def count_fields(line: str, wanted: int) -> tuple[int, int]:
    """How many fields a line has, without and with an empty one behind a last comma.

    Behind the ``wanted`` first ones a field that begins with # or % begins a comment.
    """
    for mark in _COMMENT.finditer(line):
        counts = _counts(line[: mark.start()])
        if counts[0] >= wanted:
            return counts
    return _counts(line)


def _counts(line: str) -> tuple[int, int]:
    fields = split_fields(line)
    return len(fields) - (fields[-1] == ""), len(fields)


def is_data(line: str) -> bool:
    """Whether a line holds something: not empty and no comment."""
    text = line.strip(" \t\r\n")
    return bool(text) and text[0] not in "#%"


def is_number(field: str) -> bool:
    """Whether a field is a decimal number."""
    return _NUMBER.fullmatch(field) is not None


def looks_like_header(line: str) -> bool:
    """Whether every field of a line is a name as columns have: a word, and no number."""
    fields = split_fields(line)
    return len(fields) > 1 and all(_NAME.fullmatch(field) for field in fields)


def what_is_wrong(line: str, columns: Columns) -> str:
    """Why a line of text cannot be read, and the option that would help; empty if each field that is taken is right."""
    fields = split_fields(line)
    wanted = [(columns.source, "source"), (columns.target, "target"), (columns.weight, "weight")]
    for column, role in sorted(wanted):
        if column < 0:
            continue
        if column >= len(fields):
            return (
                f"it has {len(fields)} column{'s' * (len(fields) != 1)}, and the {role} is column "
                f"{column} counted from 0; --columns names others"
                + (" (two: no weights)" if role == "weight" else ", --format adjacency reads lines of neighbors")
            )
        reason = bad_weight(fields[column]) if role == "weight" else bad_id(fields[column], choose=True)
        if reason:
            return f"{role} {shown(fields[column], SHOWN_FIELD)!r} {reason}"
    return ""


def what_is_wrong_with_names(line: str, columns: Columns) -> str:
    """As `what_is_wrong`, where ids are names."""
    found = split_fields(line)
    for column, role in ((columns.source, "source"), (columns.target, "target")):
        if column >= len(found):
            break
        word = found[column]
        reason = bad_name(word)
        if reason:
            return f"{role} {shown(word, SHOWN_FIELD)!r} {reason}"
    return _about_numbers(found, columns)


def bad_name(word: str) -> str:
    """Why a field is no id; empty if it is one."""
    return (
        "is an empty field; --columns names other columns"
        if word == ""
        else f"is longer than {LONGEST_NAME} bytes; --columns names other columns"
        if len(word.encode()) > LONGEST_NAME
        else "holds a zero byte; this is no text"
        if "\0" in word
        else "is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)"
        if "\ufffd" in word
        else ""
    )


def _about_numbers(found: list[str], columns: Columns) -> str:
    """What is wrong with the number of fields or the weight."""
    last = max(columns)
    if last >= len(found):
        return (
            f"it has {len(found)} column{'s' * (len(found) != 1)}, and column {last} counted from 0 is wanted; "
            "--columns names others"
        )
    reason = bad_weight(found[columns.weight]) if columns.weight >= 0 else ""
    return f"weight {shown(found[columns.weight], SHOWN_FIELD)!r} {reason}" if reason else ""


def other_width(line: str, columns: Columns, first: int) -> str:
    """Why a line is refused that does not have as many fields as the first one, and the ways out."""
    count = count_fields(line, max(columns) + 1)[1]
    taken = ",".join(str(column) for column in columns if column >= 0)
    return (
        f"it has {count} column{'s' * (count != 1)}, and the first line {first}; --columns {taken} reads these of all "
        "lines (with --header, if the first line is no edge), --format adjacency reads lines of neighbors, --comment C "
        "passes over lines that begin with the character C"
    )


def whole_number(field: str) -> int:
    """The number that a field of digits is, however many; one more than the largest id for all that are larger."""
    if len(field) < _DIGITS:
        return int(field)
    digits = field.strip().lstrip("0") or "0"
    return min(int(digits[: _DIGITS + 1]), LARGEST_ID + 1)


def bad_id(field: str, *, choose: bool = False) -> str:
    """Why a field is no vertex id; empty if it is one. choose: whether options could take it, or another column."""
    other = " (--columns names other columns)" if choose else ""
    if field.isascii() and field.isdigit():
        if whole_number(field) > LARGEST_ID:
            return "is larger than 2^64 - 1, the largest id there can be"
        return ""
    if field == "":
        return f"is an empty field{other}"
    if is_number(field):
        if field.startswith("-"):
            return f"is negative; ids are 0 or more{other}"
        return f"is not a whole number of digits only{other}"
    if not choose:
        return (
            "is not a number; ids of this format are whole numbers (a text with an edge a line may have names for ids)"
        )
    return (
        "is not a number; ids are whole numbers (--string-ids takes ids that are text, --columns "
        "names other columns, --header skips a first line of column names)"
    )


def bad_weight(field: str) -> str:
    """Why a field is no weight; empty if it is one."""
    if field.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return "is not finite; drop such lines, or leave weights out"
    if not is_number(field):
        if is_number(field.replace(",", ".", 1)):
            return "has a comma for a decimal point; write a decimal point (tr ',' '.' where ',' divides no columns)"
        return "is not a number; --columns names the weight's column"
    if not math.isfinite(float(field)):
        return "is too large for a 64-bit float"
    digits = field.lstrip("+-")
    if (
        digits.isascii()
        and digits.isdigit()
        and (len(digits.lstrip("0")) > WHOLE_DIGITS or int(float(digits)) != int(digits))
    ):
        return "is a whole number that no 64-bit float holds; scale the weights, or write it as a decimal to round it"
    return ""


def bad_line(file: str, number: int, line: str, reason: str) -> InputError:
    """The error for line ``number`` (from 1) of ``file``."""
    return InputError(f"{file}, line {number}: {reason}\n    {shown(line)}")


def shown(line: str, characters: int = SHOWN_LINE) -> str:
    """A line as messages show it: printable and short."""
    return printable(brief(line.rstrip("\r\n"), characters), keep="\t\ufffd")
