"""Random routes with PyVRP's verdict on each, as a fixture for the validator's tests.

    pip install pyvrp==0.14.1
    python scripts/pyvrp_cases.py --count 250 > internal/vrp/testdata/pyvrp_cases.json

Each case is a small problem with a random mix of attributes and a random solution of it, feasible or
not: PyVRP's distance, duration, time warp, excess load and distance, start and end of each route,
its cost, and whether the whole is feasible. TestValidatorAgreesWithPyVRP compares each number.
"""
import json
import random

import needs

ap = needs.flags(__doc__)
ap.add_argument("--count", type=int, default=400, help="cases")
ap.add_argument("--seed", type=int, default=1)
FLAGS = ap.parse_args()
needs.packages("numpy", "pyvrp")

import numpy as np
from pyvrp import Activity, ActivityType, Client, ClientGroup, Depot, Location, ProblemData, Route, Shipment, Solution, VehicleType

BIG = 2**40


def case(rng):
    share = rng.choice([0.1, 0.3, 0.5])
    has = {a: rng.random() < share for a in ("windows", "service", "release", "pickup", "dims", "depots", "fleet", "reload", "prize", "groups", "shipments", "limits", "asymmetric", "durations", "initial", "depot_service", "depot_windows", "profiles", "shift")}
    depots = 2 if has["depots"] else 1
    customers, shipments = rng.randint(1, 6), rng.randint(1, 2) if has["shipments"] else 0
    n = depots + customers + 2 * shipments
    dims = 2 if has["dims"] else 1
    profiles = 2 if has["profiles"] else 1

    def matrix():
        m = [[0 if i == j else rng.randint(1, 30) for j in range(n)] for i in range(n)]
        if not has["asymmetric"]:
            m = [[m[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]
        return m

    dist = [matrix() for _ in range(profiles)]
    dur = [matrix() for _ in range(profiles)] if has["durations"] else dist
    window = lambda: (lambda a: [a, a + rng.randint(0, 60)])(rng.randint(0, 90)) if has["windows"] and rng.random() < 0.7 else None
    clients = []
    for i in range(customers):
        clients.append(dict(delivery=[rng.randint(0, 5) for _ in range(dims)], pickup=[rng.randint(0, 5) if has["pickup"] else 0 for _ in range(dims)],
                            service=rng.randint(0, 9) if has["service"] else 0, window=window(), release=rng.randint(0, 60) if has["release"] and rng.random() < 0.6 else 0,
                            prize=rng.randint(0, 40) if has["prize"] else 0, required=not (has["prize"] and rng.random() < 0.5)))
    ships = []
    for i in range(shipments):
        ships.append(dict(amount=[rng.randint(0, 5) for _ in range(dims)], windows=[window(), window()], service=[rng.randint(0, 5) if has["service"] else 0 for _ in range(2)]))
    groups = []
    if has["groups"] and customers >= 3:
        members = rng.sample(range(customers), rng.randint(2, 3))
        groups.append(dict(members=members, required=rng.random() < 0.6))
        for m in members:
            clients[m]["required"] = False
    types = []
    for i in range(2 if has["fleet"] else 1):
        reload = sorted(rng.sample(range(depots), rng.randint(1, depots))) if has["reload"] else []
        early = rng.randint(0, 20) if has["shift"] else 0
        late = early + rng.randint(20, 250) if has["shift"] else BIG
        types.append(dict(count=rng.randint(1, 3), capacity=[rng.randint(4, 16) for _ in range(dims)], start=rng.randrange(depots), end=rng.randrange(depots),
                          fixed=rng.randint(0, 50) if has["fleet"] else 0, shift=[early, late], latest=rng.randint(early, late) if has["shift"] and rng.random() < 0.5 else late,
                          max_duration=rng.randint(20, 150) if has["limits"] else BIG, max_distance=rng.randint(20, 150) if has["limits"] else BIG,
                          unit_distance=rng.randint(0, 3) if has["fleet"] else 1, unit_duration=rng.randint(0, 3) if has["fleet"] else 0, profile=rng.randrange(profiles),
                          reloads=reload, max_reloads=rng.randint(1, 2) if reload else 0, initial=[rng.randint(0, 3) if has["initial"] else 0 for _ in range(dims)]))
    dep = [dict(service=rng.randint(0, 6) if has["depot_service"] else 0, window=window() if has["depot_windows"] else None) for _ in range(depots)]

    for t in types:  # a depot that is closed when its vehicles may leave or return: PyVRP refuses some of these
        for d, last in ((t["start"], t["latest"]), (t["end"], t["shift"][1])):
            w = dep[d]["window"]
            if w and (w[1] < t["shift"][0] or w[0] > last):
                raise ValueError("closed")
    tw = lambda w: (w[0], w[1]) if w else (0, BIG)
    data = ProblemData(
        [Location(0, 0) for _ in range(n)],
        [Client(depots + i, c["delivery"], c["pickup"], c["service"], *tw(c["window"]), c["release"], c["prize"], c["required"],
                next((g for g, x in enumerate(groups) if i in x["members"]), None)) for i, c in enumerate(clients)],
        [Depot(i, *tw(d["window"]), d["service"]) for i, d in enumerate(dep)],
        [VehicleType(t["count"], t["capacity"], t["start"], t["end"], t["fixed"], *t["shift"], t["max_duration"], t["max_distance"], t["unit_distance"], t["unit_duration"], t["profile"], t["latest"],
                     t["initial"], t["reloads"], *([t["max_reloads"]] if t["reloads"] else [])) for t in types],
        [np.array(m) for m in dist], [np.array(m) for m in dur], [ClientGroup(g["members"], g["required"]) for g in groups],
        [Shipment(depots + customers + 2 * i, depots + customers + 2 * i + 1, *tw(s["windows"][0]), s["service"][0], *tw(s["windows"][1]), s["service"][1], s["amount"]) for i, s in enumerate(ships)])

    order = [("c", i) for i in range(customers) if rng.random() < (0.9 if not has["prize"] and not has["groups"] else 0.7)] + [("s", i) for i in range(shipments)]
    rng.shuffle(order)
    routes, want = [], []
    cuts = sorted(rng.sample(range(len(order) + 1), min(rng.randint(0, 2), len(order) + 1)))
    used = [0] * len(types)
    for part in (order[a:b] for a, b in zip([0] + cuts, cuts + [len(order)])):
        kind = rng.randrange(len(types))
        if not part or used[kind] == types[kind]["count"]:
            continue
        t = types[kind]
        acts, places, reloads = [], [], 0
        open_ = []
        for what, i in part:
            if what == "c":
                acts.append(Activity(ActivityType.CLIENT, i)); places.append(depots + i)
            else:
                acts.append(Activity(ActivityType.PICKUP, i)); places.append(depots + customers + 2 * i); open_.append(i)
            while open_ and rng.random() < 0.6:
                k = open_.pop(rng.randrange(len(open_)))
                acts.append(Activity(ActivityType.DELIVERY, k)); places.append(depots + customers + 2 * k + 1)
            if t["reloads"] and not open_ and reloads < t["max_reloads"] and rng.random() < 0.3 and (what, i) != part[-1]:
                d = rng.choice(t["reloads"])
                acts.append(Activity(ActivityType.DEPOT, d)); places.append(d); reloads += 1
        for k in open_:
            acts.append(Activity(ActivityType.DELIVERY, k)); places.append(depots + customers + 2 * k + 1)
        r = Route(data, acts, kind)
        used[kind] += 1
        routes.append(r)
        want.append(dict(type=kind, places=places, distance=r.distance(), duration=r.duration(), time_warp=r.time_warp(), excess_load=r.excess_load(), excess_distance=r.excess_distance(),
                         start=r.start_time(), begins=[a.start_time for a in r], feasible=r.is_feasible()))
    s = Solution(data, routes)
    cost = s.fixed_vehicle_cost() + s.distance_cost() + s.duration_cost() + s.uncollected_prizes()
    return dict(depots=dep, clients=clients, shipments=ships, groups=groups, types=types, distance=dist, duration=dur if has["durations"] else None, routes=want, cost=cost,
                feasible=s.is_feasible(), complete=s.is_complete())


if __name__ == "__main__":
    rng = random.Random(FLAGS.seed)
    cases = []
    while len(cases) < FLAGS.count:
        try:
            cases.append(json.dumps(case(rng), separators=(",", ":")))
        except (RuntimeError, ValueError):  # a group visited twice, a depot never open: PyVRP refuses them
            pass
    print("[" + ",\n".join(cases) + "]")
