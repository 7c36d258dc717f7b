"""One record of CSV in plain Python: why it is no edge, and the option that would help."""

import re
from dataclasses import dataclass

import numpy as np
from penstock.storage.ingest.core.source import DELIMITERS
from penstock.storage.ingest.tables.records import scan_records
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.diagnose import SHOWN_FIELD, shown
from penstock.storage.ingest.text.edge_list import TextFile
from penstock.storage.ingest.text.strings import bad_name


@dataclass(slots=True)
class TableFile(TextFile):
    """One CSV file while it is read."""

    delimiter: str = ","
    width: int = 2
    named: bool = False


def what_is_wrong(file: TableFile, record: str, columns: Columns) -> str:
    """Why a record is no edge, and the option that would help."""
    text = np.frombuffer((record + "\n").encode(), np.uint8)
    whole, bad = scan_records(text, ord(file.delimiter), 0)
    if bad >= 0 and "\r" in record.rstrip("\r") and '"' not in record:
        return "a carriage return alone stands in it, as if it ended a line; convert the file (tr '\\r' '\\n' < FILE)"
    if bad >= 0:
        return (
            "text stands behind a closing quote; in CSV quotes enclose a whole field and a quote in it is written "
            "twice (--format text takes quotes as part of ids)"
        )
    if whole < len(text):
        return "a quote is opened and not closed; --format text takes quotes as part of ids"
    fields = [cell.strip(" \t") for cell in _cells(record, file.delimiter)]
    if record.lstrip()[:1] in ("#", "%") and (not file.named or len(fields) != file.width):
        return "a comment stands between the records, and in CSV it can be a record; take it out, or see --format text"
    if len(fields) != file.width:
        return _about_width(fields, file)
    return _about_cells(fields, columns, file) or "it cannot be read; --columns names the columns to take"


def _cells(record: str, delimiter: str) -> list[str]:
    """The fields of a record that is one, of any length."""
    mark = re.escape(delimiter)
    found = re.findall(rf'(?:^|{mark})("[^"]*(?:""[^"]*)*"|[^{mark}]*)', record.rstrip("\r"))
    return [cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell for cell in found]


def _about_width(fields: list[str], file: TableFile) -> str:
    return (
        f"it has {len(fields)} column{'s' * (len(fields) != 1)}, and the first line {file.width}, divided by "
        f"{file.delimiter!r}; put the field that holds {file.delimiter!r} into quotes, or mend the line "
        "(--delimiter names another; --format text --columns 0,1 takes these columns of every line)"
    )


def _about_cells(fields: list[str], columns: Columns, file: TableFile) -> str:
    roles = ((columns.source, "source"), (columns.target, "target"), (columns.weight, "weight"))
    for column, role in roles:
        if column < 0:
            continue
        cell = fields[column]
        if role == "weight":
            reason = diagnose.bad_weight(cell)
        elif file.named:
            reason = "has quotes behind a blank; take the blank out" if cell[:1] == '"' else bad_name(cell)
        else:
            reason = diagnose.bad_id(cell, choose=True)
            reason += _another_delimiter(cell, file.delimiter) if reason else ""
        if reason:
            return f"{role} {shown(cell, SHOWN_FIELD)!r} {reason}"
    return ""


def _another_delimiter(cell: str, delimiter: str) -> str:
    marks = [mark for mark in DELIMITERS if mark in cell and mark != delimiter]
    return f" (or --delimiter {marks[0]!r})" if marks else ""
