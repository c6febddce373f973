"""A note on stderr where something takes more than a second."""

import sys
import threading
import time

SECONDS_OF_SILENCE = 1.0


class Note:
    """Says after a second that `what` is being made, and in the end how long that took."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()
        self._timer = threading.Timer(SECONDS_OF_SILENCE, self._say)
        self._timer.daemon = True
        self._timer.start()
        self._said = False

    def _say(self) -> None:
        self._said = True
        print(f"napkin: planning and compiling {self._what} …", end="", file=sys.stderr, flush=True)

    def stop(self) -> None:
        """Ends the note."""
        self._timer.cancel()
        if self._said:
            print(f" {time.monotonic() - self._start:.1f} s", file=sys.stderr, flush=True)
