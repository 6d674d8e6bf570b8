"""Draws the test sets of Kool et al. (2019) with NumPy itself and compares them, digit for digit, with what `haul gen kool:N` writes.

  python scripts/kool_numpy.py [--haul bin/haul]        # needs numpy

Kool's generate_data.py seeds NumPy anew for each file: 1234 for the test sets and 4321 for the validation sets, 10,000 instances each.
"""

import pickle
import subprocess
import sys
import tempfile

import needs

ap = needs.flags(__doc__)
ap.add_argument("--haul", default="haul", help="the program")
FLAGS = ap.parse_args()
needs.packages("numpy")

import numpy as np

CAPACITY = {10: 20, 20: 30, 50: 40, 100: 50, 200: 80, 500: 100}
SEED = {"test": 1234, "validation": 4321}
COUNT = 10_000


def draw(customers, seed):
    np.random.seed(seed)
    depot = np.random.uniform(size=(COUNT, 2))
    locs = np.random.uniform(size=(COUNT, customers, 2))
    demand = np.random.randint(1, 10, size=(COUNT, customers))
    return {"depot": depot, "locs": locs, "demand": demand, "capacity": np.full(COUNT, CAPACITY[customers])}


def main():
    haul = needs.program(FLAGS.haul)
    bad = 0
    for split, seed in SEED.items():
        for customers in CAPACITY:
            want = draw(customers, seed)
            with tempfile.TemporaryDirectory() as folder:
                for ending in ("npz", "pkl"):
                    subprocess.run([haul, "gen", f"kool:{customers}/{split}", "--out", f"{folder}/set.{ending}"],
                                   check=True, stdout=subprocess.DEVNULL)
                got = dict(np.load(f"{folder}/set.npz"))
                with open(f"{folder}/set.pkl", "rb") as f:
                    pickled = dict(zip(("depot", "locs", "demand", "capacity"), map(np.array, zip(*pickle.load(f)))))
            same = all(np.array_equal(want[k], g[k]) for g in (got, pickled) for k in want)
            bad += not same
            print(f"{customers:3d} customers, {split}: depot 0 {want['depot'][0]}, customer 1 {want['locs'][0, 0]}, demands {want['demand'][0, :10]}, "
                  f"in all {want['demand'].sum()}: {'equal' if same else 'DIFFERENT'}")
    if bad:
        sys.exit(f"{bad} sets differ")


if __name__ == "__main__":
    needs.run(main)
