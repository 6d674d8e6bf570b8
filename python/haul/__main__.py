"""`python -m haul ...` is the program `haul ...`."""

import os
import subprocess
import sys

from ._binary import HaulError, binary


def main() -> int:
    try:
        path = binary()
    except HaulError as e:
        print(f"haul: {e}", file=sys.stderr)
        return 1
    command = [path, *sys.argv[1:]]
    if os.name == "posix":  # the program takes this process's place: its signals and its exit code are its own
        os.execv(path, command)
    try:
        return subprocess.run(command).returncode
    except KeyboardInterrupt:  # Windows sends Ctrl-C to both; the program has said what it saved
        return 130


if __name__ == "__main__":
    sys.exit(main())
