"""The same models in PyVRP and in Haul: six kinds of problems are written once, in PyVRP's words, and solved by both.

  HAUL_BINARY=./haul PYTHONPATH=python python scripts/pyvrp_models.py [--time 2]   # needs pyvrp

PyVRP judges nothing of Haul's here but the cost: each is what its own program says of routes that its own validator has judged, and
the two definitions of cost are held equal by internal/vrp's tests. Exit code 1 where Haul costs more than PyVRP.
"""

import random
import sys

import needs

ap = needs.flags(__doc__)
ap.add_argument("--time", type=float, default=2.0, help="seconds of each search")
FLAGS = ap.parse_args()
needs.packages("pyvrp", "haul")

import haul
import haul.stop
import pyvrp
import pyvrp.stop


def places(m, n, seed):
    r = random.Random(seed)
    at = [m.add_location(500, 500)] + [m.add_location(r.randrange(1000), r.randrange(1000)) for _ in range(n)]
    return r, at


def edges(m, at, profile=None, factor=1.0):
    for a in at:
        for b in at:
            d = 0 if a is b else int(((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5)
            m.add_edge(a, b, distance=int(d * factor), duration=int(d * factor), profile=profile)


def cvrp(m):
    r, at = places(m, 40, 1)
    m.add_vehicle_type(12, capacity=15, start_depot=m.add_depot(at[0]), end_depot=m.depots[0])
    for p in at[1:]:
        m.add_client(p, delivery=r.randint(1, 6))
    edges(m, at)


def vrptw(m):
    r, at = places(m, 40, 2)
    depot = m.add_depot(at[0], tw_late=6000)
    m.add_vehicle_type(15, capacity=20, start_depot=depot, end_depot=depot, tw_late=6000)
    for p in at[1:]:
        early = r.randint(0, 3500)
        m.add_client(p, delivery=r.randint(1, 6), service_duration=60, tw_early=early, tw_late=early + 1200)
    edges(m, at)


def depots(m):
    r, at = places(m, 40, 3)
    for p in at[:2]:
        depot = m.add_depot(p)
        m.add_vehicle_type(6, capacity=20, start_depot=depot, end_depot=depot, fixed_cost=100, name="van")
    for p in at[2:]:
        m.add_client(p, delivery=r.randint(1, 6))
    edges(m, at)


def prizes(m):
    r, at = places(m, 40, 4)
    depot = m.add_depot(at[0])
    m.add_vehicle_type(2, capacity=30, start_depot=depot, end_depot=depot, max_distance=4000)
    for p in at[1:]:
        m.add_client(p, delivery=r.randint(1, 6), prize=r.randint(50, 400), required=False)
    edges(m, at)


def reloads(m):
    r, at = places(m, 30, 5)
    depot = m.add_depot(at[0], tw_late=20000)
    m.add_vehicle_type(3, capacity=12, start_depot=depot, end_depot=depot, reload_depots=[depot], max_reloads=6, tw_late=20000)
    for p in at[1:]:
        m.add_client(p, delivery=r.randint(1, 6), service_duration=10, release_time=r.randint(0, 300))
    edges(m, at)


def shipments(m):
    r, at = places(m, 30, 6)
    depot = m.add_depot(at[0])
    m.add_vehicle_type(5, capacity=10, start_depot=depot, end_depot=depot, tw_late=9000)
    for a, b in zip(at[1::2], at[2::2]):
        early = r.randint(0, 3000)
        m.add_shipment(a, b, pickup_tw_early=early, pickup_tw_late=early + 2500, amount=r.randint(1, 5))
    edges(m, at)


def profiles(m):
    r, at = places(m, 30, 7)
    depot = m.add_depot(at[0])
    fast, slow = m.add_profile(name="car"), m.add_profile(name="bike")
    m.add_vehicle_type(2, capacity=25, start_depot=depot, end_depot=depot, profile=fast, fixed_cost=500)
    m.add_vehicle_type(8, capacity=12, start_depot=depot, end_depot=depot, profile=slow, unit_duration_cost=1, shift_duration=5000)
    for p in at[1:]:
        m.add_client(p, delivery=r.randint(1, 4))
    edges(m, at, fast)
    edges(m, at, slow, 1.4)


def groups(m):
    r, at = places(m, 36, 8)
    depot = m.add_depot(at[0])
    m.add_vehicle_type(6, capacity=12, start_depot=depot, end_depot=depot)
    for k in range(12):
        group = m.add_client_group(required=True)
        for p in at[1 + 3 * k : 4 + 3 * k]:
            m.add_client(p, delivery=r.randint(1, 4), required=False, group=group)
    edges(m, at)


def main():
    worse = 0
    print(f"{'model':<10} {'PyVRP':>10} {'Haul':>10}")
    for make in (cvrp, vrptw, depots, prizes, reloads, shipments, profiles, groups):
        theirs, ours = pyvrp.Model(), haul.Model()
        make(theirs)
        make(ours)
        a = theirs.solve(stop=pyvrp.stop.MaxRuntime(FLAGS.time), seed=1, display=False)
        b = ours.solve(stop=haul.stop.MaxRuntime(FLAGS.time), seed=1, display=False)
        print(f"{make.__name__:<10} {a.cost():>10} {b.cost():>10g}{'' if b.cost() <= a.cost() + 1e-6 else '  worse'}")
        worse += b.cost() > a.cost() + 1e-6
    if worse:
        sys.exit(f"Haul costs more on {worse}")


if __name__ == "__main__":
    needs.run(main)
