"""``python -m diskperf``: the command line."""

import signal
import sys

from diskperf import _native


def main() -> int:
    """Does what the command line says, and gives the exit code."""
    if sys.argv[1:2] == ["sweep"]:
        from diskperf._study.command import main as sweep

        return sweep(sys.argv[2:])
    # The command line has handlers of its own where a run must end in order;
    # elsewhere Ctrl-C ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(["diskperf", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
