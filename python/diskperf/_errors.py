"""What can go wrong, as exceptions that say what is wrong, where, and what to do."""


class Error(Exception):
    """Whatever diskperf raises, but `KeyboardInterrupt` and wrong types.

    ``point`` is the number of the point that it came up at, where several were
    run; otherwise it is ``None``.
    """

    point: "int | None" = None


class RequestError(Error, ValueError):
    """What was asked for cannot be done as it was asked: a name, a size, a target."""


class SettingError(RequestError):
    """A key or a value of a setting, or an entry or a file of the catalogue, is wrong.

    The message has the key, what is allowed there, and the nearest keys.
    """


class RunError(Error):
    """Something failed while it ran: a program, a folder, a file system, a device."""


class BudgetError(RunError):
    """A modelled computer took more events, virtual time or memory than it may, or would:
    the message says what of it, and what it hangs on. ``no_budget=True`` lets it."""


class StoreError(Error):
    """A result store cannot be used, or has no such run."""


class FileError(Error):
    """A file cannot be read or written, or is none of diskperf's."""


class TooManyPoints(RequestError):
    """A study is larger than anybody would begin by mistake: ``points`` of them, which
    take as long as ``estimate`` says in words."""

    points: int = 0
    estimate: str = ""


class SweepWarning(UserWarning):
    """Some points of a study could not be run."""


class StoreWarning(UserWarning):
    """A measurement was made, and its store could not keep it."""


class RecordWarning(UserWarning):
    """A run was made, and not all that was to be recorded of it is."""


for _class in (
    Error, RequestError, SettingError, RunError, BudgetError, StoreError, FileError, TooManyPoints,
    RecordWarning, StoreWarning, SweepWarning,
):  # fmt: skip
    _class.__module__ = "diskperf"
del _class
