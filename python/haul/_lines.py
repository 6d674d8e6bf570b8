"""The program as a partner in a conversation: lines of JSON, one object each.

What a reader could break: the pipe of the program's words is read beside the conversation, since a full one would stop the program.
"""

from __future__ import annotations

import json
import subprocess
import threading
from typing import Any

from ._binary import HaulError, binary, failure, texts


class Program:
    """A verb that answers line by line. first is the line that it begins with."""

    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen([binary(), *texts(arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace")
        self._words: list[str] = []
        self._reader = threading.Thread(target=lambda: self._words.extend(self._process.stderr or []), daemon=True)
        self._reader.start()
        self.first = self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._reader.join()
            raise failure("".join(self._words), code)
        out: dict[str, Any] = json.loads(line)
        return out

    def ask(self, told: dict[str, Any]) -> dict[str, Any]:
        """The answer to a line."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._read()  # says why
            raise
        out = self._read()
        if "error" in out:
            raise HaulError(out["error"])
        return out

    @property
    def closed(self) -> bool:
        return self._process.stdin is None or self._process.stdin.closed

    def close(self) -> None:
        """Ends the program."""
        assert self._process.stdin is not None and self._process.stdout is not None and self._process.stderr is not None
        if self._process.stdin.closed:
            return
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended by itself
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        self._process.stderr.close()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_reader"):
            self.close()
