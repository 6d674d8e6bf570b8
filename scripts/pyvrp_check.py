"""Compares Haul's reading of problems and its judgement of solutions with PyVRP's, for every .vrp with a .sol beside it in folders of public sets.

  python scripts/pyvrp_check.py FOLDER... [--haul bin/haul]        # needs pyvrp

A folder's name tells how its distances are rounded (vrptw: dimacs, mdvrptw: exact, vrpb: round, ...); --round states it for others. Per file: the customers, PyVRP's cost of the
.sol in its integers, Haul's cost of the same file scaled to them, whether both call it feasible, and the best cost of best.csv where there is one. Exits with 1 where any differ.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile

import needs

ap = needs.flags(__doc__)
ap.add_argument("folders", nargs="+")
ap.add_argument("--haul", default="haul", help="the program")
ap.add_argument("--round", help="dimacs, exact or round, for folders of other names")
FLAGS = ap.parse_args()
needs.packages("pyvrp")

from pyvrp import read, read_solution

ROUND = dict(vrptw="dimacs", pcvrptw="dimacs", mtvrptwr="dimacs", mdvrptw="exact", sdvrptw="exact", hfvrp="exact", vrpb="round", gvrp="round", tsp="round", xxl="round", xml100="round")
FLAG = dict(dimacs="dimacs", exact="exact", round="rounded")
SCALE = dict(dimacs=10, exact=1000, round=1)

bad, tmp = 0, tempfile.mkdtemp()
for folder in FLAGS.folders:
    rule = FLAGS.round or ROUND.get(os.path.basename(os.path.normpath(folder)), "round")
    best, same, count = {}, 0, 0
    if os.path.exists(f"{folder}/best.csv"):
        for row in csv.DictReader(open(f"{folder}/best.csv")):
            values = list(row.values())
            best[values[0]] = float(values[2]) if len(values) > 2 and values[2] else None
    for name in sorted(os.listdir(folder)):
        stem, ext = os.path.splitext(name)
        path, sol = f"{folder}/{name}", f"{folder}/{stem}.sol"
        if ext != ".vrp" or not os.path.exists(sol):
            continue
        count += 1
        data = read(path, round_func=rule)
        s = read_solution(sol, data)
        cost = s.fixed_vehicle_cost() + s.distance_cost() + s.duration_cost() + s.uncollected_prizes()
        plain = f"{tmp}/{stem}.sol"  # without the cost that it states, which may be in other units
        with open(plain, "w") as f:
            f.writelines(l for l in open(sol) if l.startswith("Route"))
        run = subprocess.run([FLAGS.haul, "check", path, plain, "--set", f"distance={FLAG[rule]}", "--json"], capture_output=True, text=True)
        try:
            ours = json.loads(run.stdout)
        except ValueError:
            ours = {}
        scaled = ours.get("cost", float("nan")) * SCALE[rule]
        valid = run.returncode == 0 and ours.get("valid", True)
        # Exact costs of problems without times are not rounded by leg: half a thousandth each.
        near = abs(scaled - cost) <= (0.5 if rule != "exact" else 1e-6 * cost + 1)
        known = best.get(stem)
        ok = near and valid == s.is_feasible()
        same += ok
        bad += not ok
        if not ok or (known and abs(known - cost) > 0.5):
            print(f"{folder}/{stem}: PyVRP {cost} {'feasible' if s.is_feasible() else 'INFEASIBLE'}, Haul {scaled:.1f} {'valid' if valid else 'INVALID'}, best.csv {known}: {run.stderr.strip()[:200]}")
    print(f"{folder}: {same} of {count} agree ({rule})", flush=True)
sys.exit(bad > 0)
