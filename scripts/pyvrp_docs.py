"""PyVRP's own example notebooks, run twice: as they are, and with `haul` in place of `pyvrp`.

  HAUL_BINARY=./haul PYTHONPATH=python python scripts/pyvrp_docs.py NOTEBOOK...

It needs pyvrp and matplotlib. Name notebooks of PyVRP's documentation (.ipynb, or .py with the same cells). Every cell of code is executed; the only change is the
package's name. After each `solve` both costs are known, and Haul's must be at most PyVRP's. What a notebook prints is not shown.
Exit code 1 where a cell fails or a cost is higher.
"""

import contextlib
import io
import json
import os
import re
import sys

import needs

ap = needs.flags(__doc__)
ap.add_argument("notebooks", nargs="+", metavar="NOTEBOOK")
FLAGS = ap.parse_args()
needs.packages("pyvrp", "haul", "matplotlib")

import matplotlib

matplotlib.use("Agg")

import logging

import haul
import pyvrp

logging.disable(logging.INFO)  # PyVRP's progress


def code(path):
    """The cells of a notebook that are code, as one text."""
    with open(path) as f:
        text = f.read()
    if path.endswith(".ipynb"):
        text = "\n\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code")
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("%", "!")))


def costs(text, module):
    """What every `solve` of a text cost, in order."""
    found, solve = [], module.Model.solve

    def noted(self, *args, **kwargs):
        result = solve(self, *args, **kwargs)
        found.append(result.cost())
        return result

    module.Model.solve = noted
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, module.__name__, "exec"), {"__name__": "notebook"})
    finally:
        module.Model.solve = solve
    return found


def main():
    worse = 0
    print(f"{'notebook':<28} {'PyVRP':>10} {'Haul':>10}")
    for path in FLAGS.notebooks:
        text = code(path)
        theirs = costs(text, pyvrp)
        ours = costs(re.sub(r"\bpyvrp\b", "haul", text), haul)
        if not theirs or len(theirs) != len(ours):
            sys.exit(f"{path}: {len(theirs)} solves by PyVRP, {len(ours)} by Haul")
        for i, (a, b) in enumerate(zip(theirs, ours)):
            name = f"{os.path.splitext(os.path.basename(path))[0]} {i + 1}"
            bad = b > a * (1 + 1e-9)
            worse += bad
            print(f"{name:<28} {a:>10g} {b:>10g}{'  worse' if bad else ''}", flush=True)
    if worse:
        sys.exit(f"Haul costs more on {worse}")


if __name__ == "__main__":
    needs.run(main)
