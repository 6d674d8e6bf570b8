"""Where the program is, and how it is called.

What a reader could break: nothing here goes through a shell, and a failure carries the program's own one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any, Generator, Sequence


class HaulError(RuntimeError):
    """What the program said when it could not do what was asked; `code` is its exit code.

    >>> import haul
    >>> try:
    ...     haul.solve([(0, 0), (1, 1)], [0, 7], capacity=3)
    ... except haul.HaulError as e:
    ...     print("capacity" in str(e))
    True
    """

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class HaulWarning(UserWarning):
    """What the program said beside a result: a column that it did not read, customers whom it could not serve."""


def binary() -> str:
    """The path of the program: the one of this package, else HAUL_BINARY, else `haul` on the PATH."""
    named = os.environ.get("HAUL_BINARY")
    if named:
        if not Path(named).is_file():
            raise HaulError(f"HAUL_BINARY names {named}, which is no file")
        return named
    name = "haul.exe" if os.name == "nt" else "haul"
    places = [sysconfig.get_path("scripts"), str(Path(sys.prefix) / ("Scripts" if os.name == "nt" else "bin"))]
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        places.append(sysconfig.get_path("scripts", scheme=user))
    places.append(str(Path(__file__).resolve().parent.parent / "bin"))  # pip install --target
    for place in places:
        path = Path(place) / name
        if path.is_file():
            return str(path)
    found = shutil.which("haul")
    if found:
        return found
    raise HaulError("the program haul is not installed beside this package: install the wheel again, or name it in HAUL_BINARY")


def version() -> str:
    """What the program says it is.

    >>> import haul
    >>> haul.__version__ in (haul.version(), "@" "VERSION@")  # which a copy of the sources has
    True
    """
    return str(call(["version", "--json"])["version"])


def run(*arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Runs `haul` with these arguments and returns what it printed; raises HaulError where it fails, unless check is False.

    >>> import haul
    >>> print(haul.run("config", "show", "--config", "quick").stdout.splitlines()[0][:1] != "")
    True
    """
    done = subprocess.run([binary(), *texts(arguments)], capture_output=True, text=True, encoding="utf-8", errors="replace")
    if check and done.returncode not in (0, UNSERVED):
        raise failure(done.stderr, done.returncode)
    return done


def texts(arguments: Sequence[Any]) -> list[str]:
    """Arguments as the program takes them: text, and paths as text."""
    for a in arguments:
        if not isinstance(a, (str, os.PathLike)):
            raise ValueError(f"haul {arguments[0]} was given {a!r}: text is needed")
    return [os.fsdecode(a) for a in arguments]


UNSERVED = 3  # exit code of haul solve: routes were found, and some required customers are on none


def failure(words: str, code: int) -> HaulError:
    """The last line that the program said, without its own name before it."""
    lines = [line for line in words.strip().splitlines() if line.strip()]
    text = lines[-1] if lines else f"haul ended with code {code} and said nothing"
    return HaulError(text.removeprefix("haul: "), code)


def remark(words: str, file: str = "", name: str = "") -> None:
    """Warns of every line that the program said beside its result, at the caller's line outside of this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == __name__.split(".")[0]:
        frame, level = frame.f_back, level + 1
    for line in words.splitlines():
        if line.strip():
            warnings.warn((line.replace(file, name) if file else line).removeprefix("haul: "), HaulWarning, stacklevel=level)


def call(arguments: Sequence[str], file: str = "", name: str = "") -> dict[str, Any]:
    """The object that a verb prints with --json; of several, the last. What it says beside it is a warning, in which `name` stands
    for a file that the caller does not know.

    >>> import haul, warnings
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     s = haul.solve([(0, 0), (1, 1), (2, 2)], [0, 5, 5], capacity=5, vehicles=1, iterations=10)
    >>> [str(w.message) for w in told][-1], all(w.category is haul.HaulWarning for w in told)
    ('1 required customer is on no route', True)
    """
    try:
        done = run(*arguments)
    except HaulError as e:
        if not file:
            raise
        raise HaulError(str(e).replace(file, name), e.code) from None
    out = done.stdout.strip().splitlines()
    if not out:
        raise HaulError(f"haul {arguments[0]} printed nothing")
    remark(done.stderr, file, name)
    result = json.loads(out[-1])
    assert isinstance(result, dict)
    return result


def _heed(words: list[str], heard: int) -> int:
    """Warns of settings without effect among the words that were not heard yet; returns how many are."""
    said = len(words)
    for line in words[heard:said]:
        if " has no effect: " in line:
            remark(line)
    return said


def stream(arguments: Sequence[str]) -> Generator[dict[str, Any], None, None]:
    """The objects that a verb prints with --json, as they come. The program ends when the reader stops reading. What it says of
    settings without effect is a warning."""
    with subprocess.Popen([binary(), *texts(arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace") as process:
        assert process.stdout is not None and process.stderr is not None
        words: list[str] = []
        import threading

        # Both pipes are read at the same time: a full one would stop the program.
        reader = threading.Thread(target=lambda: words.extend(process.stderr or []), daemon=True)
        reader.start()
        ended, heard = False, 0
        try:
            for line in process.stdout:
                heard = _heed(words, heard)
                if line.strip():
                    yield json.loads(line)
            ended = True
        finally:
            if not ended:
                process.terminate()  # as Ctrl-C does: what was reached is saved
            process.wait()
            reader.join()
        _heed(words, heard)
        if process.returncode not in (0, UNSERVED):
            raise failure("".join(words), process.returncode)
