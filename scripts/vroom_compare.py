"""Twenty problems of every feature, solved by the real VROOM and by Haul from the same JSON, and judged by one judge.

  python scripts/vroom_compare.py --haul ./haul [--vroom vroom] [--time 2]
  python scripts/vroom_compare.py --haul ./haul example_2.json ...  # VROOM's files with matrices
  # vroom: pip install pyvroom

The judge below shares nothing with either program: it drives each route leg by leg and checks windows, loads, skills, pairs, breaks,
limits and the stated cost. A program is better where it leaves out fewer tasks (by priority), then where it costs less. Exit code 1
where an answer is invalid, or Haul is worse on more than two.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import needs

ap = needs.flags(__doc__)
ap.add_argument("--haul", required=True, help="the program haul")
ap.add_argument("--vroom", default="vroom", help="the program vroom")
ap.add_argument("--time", type=float, default=2.0, help="seconds of each")
ap.add_argument("files", nargs="*", help="problems with matrices to compare instead of the twenty")
FLAGS = ap.parse_args()

FEATURES = ["plain", "capacity", "windows", "service and setup", "skills", "breaks", "several windows", "shipments", "shipments and windows", "mixed jobs and shipments",
            "pickups", "two dimensions", "priorities", "open ends", "several depots", "profiles", "costs", "max_tasks", "max_travel_time", "everything"]


def problem(seed, feature):
    """A town of places with asymmetric durations; what a feature adds is told by its name."""
    r = random.Random(seed)
    n = 30
    at = [(r.randrange(3600), r.randrange(3600)) for _ in range(n + 3)]
    ride = lambda f: [[0 if a == b else int(f * (abs(a[0] - b[0]) + abs(a[1] - b[1])) / 4 + (hash((a, b)) % 30 if f > 0 else 0)) for b in at] for a in at]
    car = ride(1.0)
    km = [[0 if a == b else abs(a[0] - b[0]) + abs(a[1] - b[1]) for b in at] for a in at]
    p = {"vehicles": [], "jobs": [], "shipments": [], "matrices": {"car": {"durations": car, "distances": km}}}
    every = feature == "everything"
    on = lambda *names: every or feature in names
    for v in range(5):
        c = {"id": v + 1, "start_index": 0, "end_index": 0, "capacity": [14, 9] if on("two dimensions") else [14], "time_window": [0, 28800]}
        if on("several depots"):
            c["start_index"] = c["end_index"] = v % 3
        if on("open ends"):
            del c["end_index" if v % 2 else "start_index"]
        if on("skills"):
            c["skills"] = [1 + v % 3, 7]
        if on("breaks"):
            c["breaks"] = [{"id": 1, "service": 600, "time_windows": [[7200, 14400]]}]
        if feature == "profiles":
            c["profile"] = ["car", "bike"][v % 2]
        if on("costs"):
            c["costs"] = {"fixed": 200 * v, "per_hour": 3600 + 400 * v}
        if on("max_tasks"):
            c["max_tasks"] = 8
        if feature == "max_travel_time":
            c["max_travel_time"] = 3600
        p["vehicles"].append(c)
    if feature == "profiles":
        p["matrices"]["bike"] = {"durations": ride(1.5), "distances": km}
    ids = list(range(3, n + 3))
    shipped = on("shipments", "shipments and windows") or feature == "mixed jobs and shipments"
    window = lambda: (lambda s: [[s, s + r.randint(2400, 6000)]])(r.randint(0, 16000))
    if shipped:
        half = ids[: 20 if feature != "mixed jobs and shipments" and not every else 10]
        ids = ids[len(half):] if feature == "mixed jobs and shipments" or every else []
        for k in range(0, len(half), 2):
            s = {"amount": [r.randint(1, 4), 1] if on("two dimensions") else [r.randint(1, 4)], "pickup": {"id": k + 1, "location_index": half[k], "service": 60}, "delivery": {"id": k + 1, "location_index": half[k + 1], "service": 60}}
            if on("shipments and windows"):
                s["pickup"]["time_windows"] = window()
            if on("skills") and r.random() < 0.3:
                s["skills"] = [r.randint(1, 3)]
            p["shipments"].append(s)
    for i in ids:
        j = {"id": 100 + i, "location_index": i, "service": 120}
        if feature != "plain":
            j["delivery"] = [r.randint(1, 3), r.randint(0, 2)] if on("two dimensions") else [r.randint(1, 3)]
        if on("pickups") and r.random() < 0.5:
            j["pickup"] = j.pop("delivery")
        if on("windows", "several windows"):
            j["time_windows"] = window()
            if on("several windows"):
                end = j["time_windows"][0][1]
                j["time_windows"].append([end + 3000, end + 5000])
        if on("service and setup"):
            j["setup"], j["service"] = r.randint(0, 300), r.randint(60, 600)
        if on("skills") and r.random() < 0.4:
            j["skills"] = [r.randint(1, 3)]
        if on("priorities"):
            j["priority"] = r.choice([0, 0, 10, 50])
            j["service"] = 3000
        p["jobs"].append(j)
    if on("priorities") and not every:
        p["vehicles"] = p["vehicles"][:2]
    return {k: v for k, v in p.items() if v}


def judge(p, out):
    """What an answer is worth: (priority left out, tasks left out, cost); an AssertionError where a rule is broken."""
    assert out["code"] == 0, out
    tasks = {("job", j["id"]): dict(j, kind="job") for j in p.get("jobs", [])}
    for number, s in enumerate(p.get("shipments", [])):
        for half in ("pickup", "delivery"):
            tasks[half, s[half]["id"]] = dict(s[half], kind=half, shipment=number, amount=s.get("amount", []), skills=s.get("skills", []), priority=s.get("priority", 0))
    vehicles = {v["id"]: v for v in p["vehicles"]}
    seen, total, cars = set(), 0.0, set()
    for route in out["routes"]:
        v = vehicles[route["vehicle"]]
        assert v["id"] not in cars, "a vehicle drives twice"
        cars.add(v["id"])
        m = p["matrices"][v.get("profile", "car")]
        costs = v.get("costs", {})
        dims = len(v.get("capacity", []))
        stops = [tasks[s["type"], s["id"]] for s in route["steps"] if s["type"] in ("job", "pickup", "delivery")]
        load = [sum((t.get("delivery") or [0] * dims)[d] for t in stops if t["kind"] == "job") for d in range(dims)]
        on_board, here, free, travel, count, rests = set(), None, None, 0, 0, set()
        window = v.get("time_window", [0, 1 << 60])
        full = lambda: all(0 <= load[d] <= v["capacity"][d] for d in range(dims))
        assert full(), "overloaded at the start"
        for s in route["steps"]:
            kind = s["type"]
            if kind == "break":
                b = next(b for b in v["breaks"] if b["id"] == s["id"])
                begin = s["arrival"] + s["waiting_time"]
                assert free is None or s["arrival"] >= free, "a break begins before the stop has ended"
                assert any(a <= begin <= z for a, z in b["time_windows"]), "a break out of its window"
                rests.add(s["id"])
                free = begin + b.get("service", 0)
                continue
            if kind in ("start", "end"):  # of an open end VROOM's Python package tells too, and counts the way
                place = v.get(kind + "_index", s["location_index"])
            else:
                place = tasks[kind, s["id"]]["location_index"]
            leg = 0 if here is None else m["durations"][here][place]
            travel += leg
            # A break may be taken under way: then the leg is parted around it, so that arrival is bounded by the sum.
            assert free is None or s["arrival"] >= free - (leg if rests and route["steps"][route["steps"].index(s) - 1]["type"] == "break" else -leg) - 1e-6, "faster than the road"
            begin = s["arrival"] + s["waiting_time"]
            assert window[0] <= begin and begin <= window[1], "out of the shift"
            spent = 0
            if kind in ("job", "pickup", "delivery"):
                t = tasks[kind, s["id"]]
                assert (kind, s["id"]) not in seen, "twice"
                seen.add((kind, s["id"]))
                count += 1
                assert set(t.get("skills") or []) <= set(v.get("skills") or []), "skills"
                assert not t.get("time_windows") or any(a <= begin <= z for a, z in t["time_windows"]), "out of a window"
                spent = t.get("service", 0) + (0 if here == place else t.get("setup", 0))
                if kind == "job":
                    for d in range(dims):
                        load[d] += (t.get("pickup") or [0] * dims)[d] - (t.get("delivery") or [0] * dims)[d]
                else:
                    sign = 1 if kind == "pickup" else -1
                    assert (t["shipment"] in on_board) == (kind == "delivery"), "delivered before it is picked up"
                    (on_board.add if sign > 0 else on_board.remove)(t["shipment"])
                    for d in range(dims):
                        load[d] += sign * (t["amount"] or [0] * dims)[d]
                assert full(), "overloaded"
            here, free = place, begin + spent
        assert not on_board, "never delivered"
        assert free <= window[1] + 1e-6, "late home"
        assert len(rests) == len(v.get("breaks", [])), "a break is missing"
        assert count <= v.get("max_tasks", 1 << 60), "too many tasks"
        assert travel <= v.get("max_travel_time", 1 << 60), "too long on the road"
        cost = costs.get("fixed", 0) + costs.get("per_hour", 3600) * travel / 3600
        assert abs(cost - route["cost"]) <= 1.001, f"it states {route['cost']}, its way costs {cost}"
        total += cost
    left = [t for k, t in tasks.items() if k not in seen]
    assert len(left) == out["summary"]["unassigned"] == len(out["unassigned"]), "who is left out"
    return sum(1 + t.get("priority", 0) for t in left), len(left), total


def main():
    worse = invalid = 0
    print(f"{'feature':<26} {'VROOM':>22} {'Haul':>22}")
    with tempfile.TemporaryDirectory() as folder:
        names = FLAGS.files or FEATURES
        for k, feature in enumerate(names):
            if FLAGS.files:
                file = Path(feature)
                p, feature = json.loads(file.read_text()), file.name
            else:
                file = Path(folder) / "p.json"
                p = problem(100 + k, feature)
                file.write_text(json.dumps(p))
            marks = []
            for name, command in (("VROOM", [FLAGS.vroom, "-i", str(file), "-t", "1", "-l", str(FLAGS.time), "-x", "5"]), ("Haul", [FLAGS.haul, "solve", str(file), "--json", "--workers", "1", "--time", f"{FLAGS.time}s"])):
                done = subprocess.run(command, capture_output=True, text=True)
                try:
                    marks.append(judge(p, json.loads(done.stdout)))
                except (AssertionError, ValueError) as e:
                    marks.append((10**9, 0, 0.0))
                    invalid += name == "Haul"
                    print(f"{feature}: {name}: {e} {done.stderr.strip()}")
            text = [f"{left} left out, {cost:.0f}" for _, left, cost in marks]
            bad = marks[1][0] > marks[0][0] or marks[1][0] == marks[0][0] and marks[1][2] > marks[0][2] + 0.5
            worse += bad
            print(f"{feature:<26} {text[0]:>22} {text[1]:>22}{'  worse' if bad else ''}", flush=True)
    print(f"Haul is at least as good on {len(names) - worse} of {len(names)}")
    sys.exit(1 if invalid or worse > 2 else 0)


if __name__ == "__main__":
    needs.run(main)
