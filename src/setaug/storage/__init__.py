"""Files by path or URL: compression by suffix, ``-`` for the standard streams, atomic output, locks."""

from setaug.storage.addresses import as_file_errors, filesystem, is_address, local_path
from setaug.storage.names import (
    COMPRESSED,
    KINDS,
    check_jsonl,
    check_outputs,
    descriptor_of,
    display_name,
    has_kind,
    kind_of,
)
from setaug.storage.reading import BROKEN_ARCHIVE, open_again, open_input, open_stored
from setaug.storage.writing import appending_lines, locked, open_output, sync_folder, sync_tree, write_rows

__all__ = [
    "BROKEN_ARCHIVE",
    "COMPRESSED",
    "KINDS",
    "appending_lines",
    "as_file_errors",
    "check_jsonl",
    "check_outputs",
    "descriptor_of",
    "display_name",
    "filesystem",
    "has_kind",
    "is_address",
    "kind_of",
    "local_path",
    "locked",
    "open_again",
    "open_input",
    "open_output",
    "open_stored",
    "sync_folder",
    "sync_tree",
    "write_rows",
]
