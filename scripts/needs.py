"""What every script begins with: its flags, then the packages that it needs.

What a reader could break: the order. Flags are read before anything but Python's own library is imported, so that --help works on a bare
Python, and a package, a program or a file that is missing is one line and no traceback.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap

WIDTH = 100
NAME = os.path.basename(sys.argv[0])


def flags(doc):
    """A parser whose help is the script's own description, in lines that fit; what is indented stays as it is written."""
    parts = []
    for part in doc.strip().split("\n\n"):
        if not part.startswith(" "):
            part = textwrap.fill(" ".join(part.split()), WIDTH, break_long_words=False, break_on_hyphens=False)
        parts.append(part)
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    layout = lambda prog: argparse.RawDescriptionHelpFormatter(prog, width=width)
    return argparse.ArgumentParser(description="\n\n".join(parts), formatter_class=layout)


def packages(*names):
    """Ends the script with a line where one of them is not installed."""
    missing = [n for n in names if importlib.util.find_spec(n) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        sys.exit(f"{NAME}: {', '.join(missing)} {are} not installed for {sys.executable}: pip install {' '.join(missing)}")


def program(path):
    """The path of a program to be run, or a line that it is not there."""
    found = shutil.which(path)
    if not found:
        sys.exit(f"{NAME}: there is no program {path}: name it with --haul, bin/haul for one")
    return found


def run(main):
    """Runs a script's main function; what is missing, what a program refuses and a reader who has seen enough are no bugs."""
    try:
        sys.exit(main())
    except FileNotFoundError as e:
        sys.exit(f"{NAME}: {e.filename}: no such file")
    except subprocess.CalledProcessError as e:
        said = (e.stderr or b"") if isinstance(e.stderr or b"", str) else (e.stderr or b"").decode(errors="replace")
        last = said.strip().splitlines()[-1:] or [f"exit status {e.returncode}"]
        sys.exit(f"{NAME}: {' '.join(map(str, e.cmd[:3]))}: {last[0]}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to flush into
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
