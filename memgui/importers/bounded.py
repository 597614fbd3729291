"""The bounded readers, under the names importers know; they stand in :mod:`memgui.files.bounded`."""

from memgui.files.bounded import (
    BoundedFile,
    Cancelled,
    Progress,
    StrPath,
    display_name,
    list_folder,
    open_bounded,
    printable,
    read_whole,
    report,
    require_limit,
)
from memgui.files.bounded import FileFault as ImportFault

__all__ = [
    "BoundedFile",
    "Cancelled",
    "ImportFault",
    "Progress",
    "StrPath",
    "display_name",
    "list_folder",
    "open_bounded",
    "printable",
    "read_whole",
    "report",
    "require_limit",
]
