"""The command line: python -m napkin COMMAND …"""

import sys

from . import _native


def main() -> int:
    """Runs the command that the process was started with; the exit code."""
    return _native.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
