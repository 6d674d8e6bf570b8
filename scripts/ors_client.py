"""openrouteservice's own client against haul serve, unchanged: jobs, shipments, a matrix, and a token as its key.

  haul serve --addr 127.0.0.1:8420 &
  python scripts/ors_client.py http://127.0.0.1:8420 [--key TOKEN]
  # needs pip install openrouteservice

Exit code 1 where an answer is not what the client's own documentation promises.
"""

import sys

import needs

ap = needs.flags(__doc__)
ap.add_argument("url", help="of the server, without a slash at its end")
ap.add_argument("--key", help="its token, where it has one")
FLAGS = ap.parse_args()
needs.packages("openrouteservice")

from openrouteservice import Client, exceptions
from openrouteservice.optimization import Job, Shipment, ShipmentStep, Vehicle

SPOTS = [[8.688641, 49.420577], [8.680916, 49.415776], [8.6717, 49.4011], [8.7032, 49.4104]]


def main():
    client = Client(key=FLAGS.key, base_url=FLAGS.url, retry_timeout=20)
    jobs = [Job(id=i, location=at, service=300, amount=[1], time_windows=[[0, 36000]], skills=[1], priority=5) for i, at in enumerate(SPOTS)]
    vehicles = [Vehicle(id=k, profile="driving-car", start=SPOTS[0], end=SPOTS[0], capacity=[3], skills=[1], time_window=[0, 36000]) for k in (0, 1)]
    answers = [("jobs", client.optimization(jobs=jobs, vehicles=vehicles, geometry=True), 4)]
    step = lambda i, at: ShipmentStep(id=i, location=at, service=60)
    goods = [Shipment(pickup=step(1, SPOTS[1]), delivery=step(2, SPOTS[2]), amount=[1], skills=[1], priority=1)]
    answers.append(("shipments", client.optimization(shipments=goods, vehicles=vehicles[:1]), 2))
    grid = [[0, 2104, 197, 1299], [2103, 0, 2255, 3152], [197, 2256, 0, 1102], [1299, 3153, 1102, 0]]
    placed = [Job(id=1414, location_index=1), Job(id=1515, location_index=2)]
    answers.append(("matrix", client.optimization(jobs=placed, vehicles=[Vehicle(id=0, start_index=0, end_index=3)], matrix=grid), 2))
    for name, got, tasks in answers:
        served = sum(s["type"] in ("job", "pickup", "delivery") for r in got["routes"] for s in r["steps"])
        if got["code"] != 0 or served != tasks or got["unassigned"]:
            sys.exit(f"{name}: {got}")
    if answers[-1][1]["summary"]["cost"] != 5461:
        sys.exit(f"matrix: the only good order costs 5461, {answers[-1][1]['summary']}")
    try:
        client.optimization(jobs=[Job(id=1)], vehicles=vehicles)
        sys.exit("a job without a place was taken")
    except exceptions.ApiError as e:
        if e.status != 400 or e.message["code"] != 2 or "job 1" not in e.message["error"]:
            sys.exit(f"a job without a place: {e}")
    print(f"{len(answers)} answers and a refusal are as openrouteservice's client takes them")


if __name__ == "__main__":
    needs.run(main)
