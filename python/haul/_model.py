"""Routing problems in PyVRP's words.

What a reader could break: `Model.data` is Haul's own JSON (docs/formats.md); whether a problem makes sense is for the program
to say, so that every surface says it in the same words. What has no word in that JSON is refused here by its name.
"""

from __future__ import annotations

import json
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Sequence, SupportsFloat, SupportsIndex, Union

from ._binary import HaulError, call
from ._plan import Plan, Route, plan_of
from ._values import encoded, listed, named, number, whole
from .stop import MaxIterations, MaxRuntime

Amount = Union[SupportsIndex, SupportsFloat, Iterable[Any]]
Stopping = Union[MaxRuntime, MaxIterations, float, int]
ENDLESS = 1 << 62  # PyVRP's largest numbers, and what is past them, limit nothing


@dataclass(eq=False)
class Location:
    """A point that depots, clients and the edges between them refer to."""

    x: float
    y: float
    name: str = ""


@dataclass(eq=False)
class Depot:
    location: Location
    tw_early: float = 0
    tw_late: float = ENDLESS
    service_duration: float = 0
    name: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class ClientGroup:
    required: bool = True
    name: str = ""


@dataclass(eq=False)
class Client:
    location: Location
    delivery: list[int] = field(default_factory=list)
    pickup: list[int] = field(default_factory=list)
    service_duration: float = 0
    tw_early: float = 0
    tw_late: float = ENDLESS
    release_time: float = 0
    prize: float = 0
    required: bool = True
    group: ClientGroup | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class Shipment:
    """A pickup and a delivery that one vehicle makes, in this order."""

    pickup: Client
    delivery: Client
    amount: list[int]


@dataclass(eq=False)
class Edge:
    frm: Location
    to: Location
    distance: float
    duration: float


@dataclass(eq=False)
class Profile:
    name: str = ""
    edges: list[Edge] = field(default_factory=list)


@dataclass(eq=False)
class VehicleType:
    fields: dict[str, Any]
    profile: Profile | None
    name: str = ""


@dataclass(frozen=True)
class Result:
    """What a search found."""

    best: Plan
    num_iterations: int
    runtime: float
    method: str

    def cost(self) -> float:
        """The cost of the best routes; infinite if a required client is unserved."""
        return self.best.cost if self.best.is_feasible() else math.inf

    def is_feasible(self) -> bool:
        """Whether all required clients are served."""
        return self.best.is_feasible()

    def summary(self) -> str:
        """One line: cost, routes, clients, iterations, seconds."""
        served = f"{self.best.num_clients()} clients" + (f", {len(self.best.unserved)} not served" if self.best.unserved else "")
        return f"cost {self.best.cost:g}, {self.best.num_routes()} routes, {served}, {self.num_iterations} iterations in {self.runtime:.2f} s"

    def __str__(self) -> str:
        return "\n".join([self.summary(), *(f"Route #{i + 1}: {r}" for i, r in enumerate(self.best.routes()))])

    def _repr_html_(self) -> str:
        return self.best._repr_html_()


class Model:
    """A routing problem, part by part, as PyVRP's Model has it.

    >>> from haul import Model
    >>> from haul.stop import MaxIterations
    >>> m = Model()
    >>> depot = m.add_depot(m.add_location(0, 0))
    >>> _ = m.add_vehicle_type(num_available=2, capacity=10, start_depot=depot, end_depot=depot)
    >>> clients = [m.add_client(m.add_location(x, y), delivery=5) for x, y in [(3, 4), (6, 8), (-3, 4), (-6, 8)]]
    >>> for a in m.locations:
    ...     for b in m.locations:
    ...         _ = m.add_edge(a, b, distance=round(10 * ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5))
    >>> r = m.solve(stop=MaxIterations(500), display=False)
    >>> r.cost(), r.is_feasible(), sorted(sorted(route.visits()) for route in r.best.routes())
    (400.0, True, [[1, 2], [3, 4]])
    >>> print(", ".join(str(stop) for stop in r.best.routes()[0] if stop.is_depot()))
    D0, D0
    >>> m.add_vehicle_type(max_overtime=5)
    Traceback (most recent call last):
        ...
    ValueError: max_overtime and unit_overtime_cost are not honoured: leave them out
    """

    def __init__(self) -> None:
        self._locations: list[Location] = []
        self._depots: list[Depot] = []
        self._clients: list[Client] = []
        self._shipments: list[Shipment] = []
        self._groups: list[ClientGroup] = []
        self._profiles: list[Profile] = []
        self._edges: list[Edge] = []
        self._vehicles: list[VehicleType] = []

    @property
    def locations(self) -> list[Location]:
        """Every location, in the order in which they were added."""
        return list(self._locations)

    @property
    def depots(self) -> list[Depot]:
        """Every depot; their order gives their places, from 0 on."""
        return list(self._depots)

    @property
    def clients(self) -> list[Client]:
        """Every client; their places follow the depots'."""
        return list(self._clients)

    @property
    def shipments(self) -> list[Shipment]:
        """Every shipment; their places follow the clients', pickup and delivery in turn."""
        return list(self._shipments)

    @property
    def groups(self) -> list[ClientGroup]:
        """Every group of clients."""
        return list(self._groups)

    @property
    def profiles(self) -> list[Profile]:
        """Every profile."""
        return list(self._profiles)

    @property
    def vehicle_types(self) -> list[VehicleType]:
        """Every vehicle type."""
        return list(self._vehicles)

    def add_location(self, x: float, y: float, *, name: str = "") -> Location:
        """A point of the plane. Depots, clients and edges refer to it; several may stand at one."""
        at = Location(float(number(x, "x")), float(number(y, "y")), text(name, "name"))
        self._locations.append(at)
        return at

    def _at(self, location: Location | None, x: float | None, y: float | None, what: str) -> Location:
        if location is None:
            if x is None or y is None:
                raise ValueError(f"a {what} needs a location, or x and y")
            return self.add_location(x, y)
        if not any(location is known for known in self._locations):
            raise ValueError("The given location is not in this model instance.")
        return location

    @staticmethod
    def _times(early: float, late: float, service: float, of: str = "") -> tuple[float, float, float]:
        return number(early, of + "tw_early"), number(late, of + "tw_late", endless=True), number(service, of + "service_duration")

    def add_depot(
        self, location: Location | None = None, tw_early: float = 0, tw_late: float = ENDLESS, service_duration: float = 0, *, x: float | None = None, y: float | None = None, name: str = ""
    ) -> Depot:
        """A depot at a location, or at x and y. tw_early and tw_late say when it is open; service_duration is what a vehicle spends
        there before it leaves."""
        depot = Depot(self._at(location, x, y, "depot"), *self._times(tw_early, tw_late, service_duration), text(name, "name"))
        self._depots.append(depot)
        return depot

    def add_client(
        self,
        location: Location | None = None,
        delivery: Amount = (),
        pickup: Amount = (),
        service_duration: float = 0,
        tw_early: float = 0,
        tw_late: float = ENDLESS,
        release_time: float = 0,
        prize: float = 0,
        required: bool = True,
        group: ClientGroup | None = None,
        *,
        x: float | None = None,
        y: float | None = None,
        name: str = "",
    ) -> Client:
        """A client at a location, or at x and y, with what is delivered to it and picked up there: an amount, or one per dimension.

        Its service begins within tw_early and tw_late and takes service_duration; its goods leave the depot from release_time on.
        With required=False it is left out where its prize is worth less than the way, or where its group is served by another."""
        if group is not None and not any(group is known for known in self._groups):
            raise ValueError("The given group is not in this model instance.")
        if group is not None and required:
            raise ValueError("Required client in mutually exclusive group.")
        early, late, service = self._times(tw_early, tw_late, service_duration)
        client = Client(
            self._at(location, x, y, "client"), amounts(delivery), amounts(pickup), service, early, late, number(release_time, "release_time"), number(prize, "prize"), bool(required), group, text(name, "name")
        )
        self._clients.append(client)
        return client

    def add_shipment(
        self,
        pickup_location: Location,
        delivery_location: Location,
        pickup_tw_early: float = 0,
        pickup_tw_late: float = ENDLESS,
        pickup_service_duration: float = 0,
        delivery_tw_early: float = 0,
        delivery_tw_late: float = ENDLESS,
        delivery_service_duration: float = 0,
        amount: Amount = (),
        prize: float = 0,
        required: bool = True,
        *,
        name: str = "",
    ) -> Shipment:
        """A pickup and a delivery of amount by one vehicle, in this order, each with its own window and service."""
        early, late, service = self._times(pickup_tw_early, pickup_tw_late, pickup_service_duration, "pickup_")
        pickup = Client(self._at(pickup_location, None, None, "pickup"), [], [], service, early, late, 0, number(prize, "prize"), bool(required), None, f"{name} pickup".strip())
        early, late, service = self._times(delivery_tw_early, delivery_tw_late, delivery_service_duration, "delivery_")
        delivery = Client(self._at(delivery_location, None, None, "delivery"), [], [], service, early, late, 0, 0, bool(required), None, f"{name} delivery".strip())
        shipment = Shipment(pickup, delivery, amounts(amount))
        self._shipments.append(shipment)
        return shipment

    def add_client_group(self, required: bool = True, *, name: str = "") -> ClientGroup:
        """A group of clients of which one is served, or at most one where it is not required."""
        group = ClientGroup(required, name)
        self._groups.append(group)
        return group

    def add_profile(self, *, name: str = "") -> Profile:
        """A profile of vehicles: edges that are added with it are those of its vehicle types alone."""
        profile = Profile(name)
        self._profiles.append(profile)
        return profile

    def add_edge(self, frm: Location | Depot | Client, to: Location | Depot | Client, distance: float, duration: float = 0, profile: Profile | None = None) -> Edge:
        """The way from one place to another, and only in this direction; of two for one pair the last counts. As soon as a model has an
        edge, those that it lacks are missing_value long (see solve)."""
        for end in (frm, to):
            if not isinstance(end, (Location, Depot, Client)):
                raise ValueError(f"an edge leads between locations, depots and clients of this model, not to {end!r}")
        a = frm if isinstance(frm, Location) else frm.location
        b = to if isinstance(to, Location) else to.location
        distance, duration = number(distance, "distance"), number(duration, "duration")
        if distance < 0 or duration < 0:
            raise ValueError("Cannot have negative edge distance or duration.")
        edge = Edge(a, b, distance, duration)
        (self._edges if profile is None else profile.edges).append(edge)
        return edge

    def add_vehicle_type(
        self,
        num_available: int = 1,
        capacity: Amount = (),
        start_depot: Depot | None = None,
        end_depot: Depot | None = None,
        fixed_cost: float = 0,
        tw_early: float = 0,
        tw_late: float = ENDLESS,
        shift_duration: float = ENDLESS,
        max_distance: float = ENDLESS,
        unit_distance_cost: float = 1,
        unit_duration_cost: float = 0,
        profile: Profile | None = None,
        start_late: float | None = None,
        initial_load: Amount = (),
        reload_depots: Sequence[Depot] = (),
        max_reloads: int = ENDLESS,
        max_overtime: float = 0,
        unit_overtime_cost: float = 0,
        *,
        max_duration: float | None = None,
        name: str = "",
    ) -> VehicleType:
        """One vehicle type; max_duration is what PyVRP calls shift_duration since its version 0.12."""
        if max_duration is not None:
            shift_duration = min(number(shift_duration, "shift_duration", endless=True), number(max_duration, "max_duration", endless=True))
        if max_overtime or unit_overtime_cost:
            raise ValueError("max_overtime and unit_overtime_cost are not honoured: leave them out")
        if not num_available >= 1:
            raise ValueError("num_available must be positive.")
        if profile is not None and not any(profile is known for known in self._profiles):
            raise ValueError("The given profile is not in this model.")
        fields: dict[str, Any] = {
            "count": whole(num_available, "num_available"),
            "start": self._depot(start_depot, "start depot"),
            "end": self._depot(end_depot, "end depot"),
            "distance_cost": number(unit_distance_cost, "unit_distance_cost"),
        }
        optional = {
            "capacity": amounts(capacity),
            "fixed_cost": number(fixed_cost, "fixed_cost"),
            "duration_cost": number(unit_duration_cost, "unit_duration_cost"),
            "initial_load": amounts(initial_load),
            "reloads": [self._depot(d, "reload depot") for d in reload_depots],
            "name": text(name, "name"),
        }
        fields.update({k: v for k, v in optional.items() if v})
        early, late, _ = self._times(tw_early, tw_late, 0)
        if early > 0 or late < ENDLESS:
            fields["shift"] = span(early, late)
        limits = {"max_duration": shift_duration, "max_distance": max_distance, "latest_start": ENDLESS if start_late is None else start_late}
        for key, limit in limits.items():
            limit = number(limit, key, endless=True)
            if limit < ENDLESS:
                fields[key] = limit
        if fields.get("reloads"):
            if max_reloads == 0:
                del fields["reloads"]
            elif max_reloads < ENDLESS:
                fields["max_reloads"] = whole(max_reloads, "max_reloads")
        vehicle = VehicleType(fields, profile, name)
        self._vehicles.append(vehicle)
        return vehicle

    def _depot(self, depot: Depot | None, what: str) -> int:
        if depot is None:
            return 0
        for i, known in enumerate(self._depots):
            if known is depot:
                return i
        raise ValueError(f"The given {what} is not in this model.")

    def data(self, missing_value: float = 1e9) -> dict[str, Any]:
        """The problem in Haul's own JSON. missing_value is the distance and duration of edges that were not added."""
        if not self._depots:
            raise ValueError("the model has no depot")
        places: list[Depot | Client] = [*self._depots, *self._clients]
        for s in self._shipments:
            places += [s.pickup, s.delivery]
        d: dict[str, Any] = {
            "haul": 1,
            "name": "model",
            "coords": [[p.location.x, p.location.y] for p in places],
            "ids": [p.name or p.location.name or str(i) for i, p in enumerate(places)],
            "depots": len(self._depots),
        }
        tasks = [p if isinstance(p, Client) else None for p in places]
        dimensions = max([1, *(len(c.delivery) for c in tasks if c), *(len(c.pickup) for c in tasks if c), *(len(s.amount) for s in self._shipments)])
        d["demands"] = [c.delivery[0] if c and c.delivery else 0 for c in tasks]
        d["pickups"] = [c.pickup[0] if c and c.pickup else 0 for c in tasks]
        d["dimensions"] = [
            {"demands": [c.delivery[k] if c and len(c.delivery) > k else 0 for c in tasks], "pickups": [c.pickup[k] if c and len(c.pickup) > k else 0 for c in tasks]} for k in range(1, dimensions)
        ]
        d["windows"] = [[span(p.tw_early, p.tw_late)] if p.tw_early > 0 or p.tw_late < ENDLESS else [] for p in places]
        d["service"] = [p.service_duration for p in places]
        d["release"] = [c.release_time if c else 0 for c in tasks]
        d["optional"] = [bool(c and not c.required and c.group is None) for c in tasks]
        d["prizes"] = [c.prize if c else 0 for c in tasks]
        d["groups"] = [
            {"name": g.name, "required": g.required, "members": [i for i, c in enumerate(tasks) if c and c.group is g]} for g in self._groups
        ]
        first = len(self._depots) + len(self._clients)
        d["shipments"] = [{"pickup": first + 2 * i, "delivery": first + 2 * i + 1, "amount": s.amount or [0]} for i, s in enumerate(self._shipments)]
        # What nobody asked for is no part of the problem.
        for key in ("pickups", "service", "release", "optional", "prizes"):
            if not any(d[key]):
                del d[key]
        for key in ("dimensions", "groups", "shipments"):
            if not d[key]:
                del d[key]
        if not any(d["windows"]):
            del d["windows"]
        self._ways(d, places, missing_value)
        vehicles = self._vehicles or [VehicleType({}, None)]
        d["fleet"] = [{**v.fields, "profile": next((k for k, p in enumerate(self._profiles) if p is v.profile), 0)} for v in vehicles]
        for v in d["fleet"]:
            if "capacity" in v:
                v["capacity"] = (v["capacity"] + [0] * dimensions)[:dimensions]
            if "profiles" not in d:
                del v["profile"]
        return d

    def _ways(self, d: dict[str, Any], places: list[Depot | Client], missing_value: float) -> None:
        """Matrices between places, of the edges between their locations; without any edge, distances are Euclidean."""
        if not self._edges and not any(p.edges for p in self._profiles):
            return
        order = {id(at): i for i, at in enumerate(self._locations)}
        row = [order[id(p.location)] for p in places]
        n = len(self._locations)
        d["profiles"] = []
        for profile in self._profiles or [Profile()]:
            distance = [[0.0 if i == j else number(missing_value, "missing_value") for j in range(n)] for i in range(n)]
            duration = [list(r) for r in distance]
            for e in [*self._edges, *profile.edges]:
                i, j = order.get(id(e.frm)), order.get(id(e.to))
                if i is None or j is None:
                    raise ValueError("an edge leads to a location that is not in this model")
                if i == j and (e.distance or e.duration):
                    raise ValueError("Cannot have nonzero distance or duration from a location to itself.")
                distance[i][j], duration[i][j] = e.distance, e.duration
            d["profiles"].append(
                {"name": profile.name, "distances": [[distance[i][j] for j in row] for i in row], "durations": [[duration[i][j] for j in row] for i in row]}
            )

    def solve(
        self,
        stop: Stopping = 1.0,
        seed: int = 0,
        collect_stats: bool = True,
        display: bool = False,
        missing_value: float = 1e9,
        initial_solution: Result | Plan | Sequence[Sequence[int]] | None = None,
        workers: int = 1,
    ) -> Result:
        """Searches until `stop` says so: MaxRuntime(seconds), MaxIterations(n), or a number of seconds. initial_solution is what
        another search found, or lists of places."""
        return solve_data(self.data(missing_value), stop, seed, display, initial_solution, workers)


def solve_data(data: dict[str, Any], stop: Stopping, seed: int = 0, display: bool = False, initial_solution: Result | Plan | Sequence[Sequence[int]] | None = None, workers: int = 1) -> Result:
    """Solves a problem in Haul's own JSON."""
    with tempfile.TemporaryDirectory(prefix="haul") as folder:
        file = Path(folder) / "model.json"
        file.write_text(encoded(data), encoding="utf-8")
        arguments = ["--method", "search", "--seed", str(seed), "--workers", str(workers)]
        if isinstance(stop, MaxIterations):
            arguments += ["--iterations", str(stop.max_iterations)]
        else:
            seconds = number(stop.max_runtime if isinstance(stop, MaxRuntime) else stop, "stop")
            seconds = MaxRuntime(seconds).max_runtime
            arguments += ["--time", f"{seconds:.9f}s"]
        if isinstance(initial_solution, Result):
            initial_solution = initial_solution.best
        if initial_solution is not None:
            start = Path(folder) / "start.json"
            routes = initial_solution.routes() if isinstance(initial_solution, Plan) else initial_solution
            types = [r.type for r in initial_solution.routes()] if isinstance(initial_solution, Plan) else None
            lists = [r.visits() if isinstance(r, Route) else visits(r, i) for i, r in enumerate(listed(routes, "initial_solution"))]
            start.write_text(json.dumps({"routes": lists, **({"types": types} if types else {})}), encoding="utf-8")
            arguments += ["--start", str(start)]
        coords = tuple((float(x), float(y)) for x, y in data.get("coords", ()))
        try:
            result = solve_file(file, arguments, "the model", coords, int(data.get("depots") or 1), first_shipment(data))
        except HaulError as e:  # a caller knows no file
            raise HaulError(str(e).replace(str(Path(folder) / "start.json"), "initial_solution"), e.code) from None
    if display:
        print(result.summary())
    return result


def first_shipment(data: dict[str, Any]) -> int | None:
    """The first place of a model's shipments, which stand behind its clients, pickup and delivery in turn."""
    shipments = data.get("shipments")
    return int(shipments[0]["pickup"]) if shipments else None


def solve_file(file: Path, arguments: Sequence[str], name: str, coords: tuple[tuple[float, float], ...] = (), depots: int = 1, shipments: int | None = None) -> Result:
    """Has the program solve a file. Errors speak of `name` in place of it, since a caller may know no file."""
    with tempfile.TemporaryDirectory(prefix="haul") as folder:
        plan_file = Path(folder) / "a.plan.json"
        try:
            r = call(["solve", named(file), "--json", *arguments, "--out", str(plan_file)], str(file), name)
        except HaulError as e:
            raise HaulError(str(e).replace(str(file), name), e.code) from None
        plan = json.loads(plan_file.read_text(encoding="utf-8"))["plan"]
    if "summary" in r:  # VROOM's form, which has no required tasks
        r = {"cost": r["summary"]["cost"], "seconds": r["summary"]["computing_times"]["solving"] / 1000, "method": "search"}
    best = plan_of(float(r["cost"]), int(r.get("unserved_required", 0)), plan, coords, depots, shipments)
    return Result(best=best, num_iterations=int(r.get("iterations", 0)), runtime=float(r["seconds"]), method=str(r["method"]))


def amounts(x: Amount) -> list[int]:
    """One amount per dimension.

    >>> amounts(4.0), amounts([1, 2])
    ([4], [1, 2])
    >>> amounts(1.7)
    Traceback (most recent call last):
        ...
    ValueError: an amount is 1.7: a whole number is needed
    """
    several = hasattr(x, "__len__") and not isinstance(x, str) and getattr(x, "ndim", 1) > 0
    each: Iterable[Any] = listed(x, "an amount") if several else [x]
    return [whole(a, "an amount") for a in each]


def visits(route: Any, i: int) -> list[int]:
    """The places of a route that a caller lists."""
    try:
        return [whole(place, f"a place of route {i}") for place in route]
    except TypeError:
        raise ValueError(f"route {i} of initial_solution is {route!r}: a list of places is needed") from None


def text(value: Any, what: str) -> str:
    """A name, where none is no name."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{what} is {value!r}: text is needed")
    return value


def span(early: float, late: float) -> list[float]:
    return [early] if late >= ENDLESS else [early, late]
