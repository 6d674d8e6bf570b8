"""Routes with their times, as the program tells them.

What a reader could break: every number here was computed by the program; nothing is computed twice.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping


@dataclass(frozen=True)
class Stop:
    """One visit of a route. kind is start, customer, reload, break or end; slack is None where nothing limits it.

    It is also what PyVRP calls a scheduled activity: `activity.idx` counts depots, clients or shipments, each from 0.
    """

    kind: str
    place: int
    id: str
    arrival: float
    wait: float
    begin: float
    service: float
    depart: float
    distance: float
    slack: float | None
    late: float
    load: tuple[float, ...]
    name: str = ""
    at: tuple[float, ...] = field(default=(), repr=False)  # its coordinates, where places have them
    idx: int = 0
    trip: int = 0  # how often the vehicle has reloaded before
    part: str = "client"  # depot, client, pickup, delivery or break

    def is_depot(self) -> bool:
        """Whether it is at a depot: a start, an end or a reload."""
        return self.part == "depot"

    def is_client(self) -> bool:
        """Whether a client is visited."""
        return self.part == "client"

    def is_pickup(self) -> bool:
        """Whether a shipment is loaded."""
        return self.part == "pickup"

    def is_delivery(self) -> bool:
        """Whether a shipment is unloaded."""
        return self.part == "delivery"

    def is_shipment(self) -> bool:
        """Whether it is either end of a shipment."""
        return self.part in ("pickup", "delivery")

    @property
    def activity(self) -> Stop:
        """Itself, as PyVRP names what a stop does."""
        return self

    @property
    def start_time(self) -> float:
        """When service begins."""
        return self.begin

    @property
    def start_service(self) -> float:
        """When service begins."""
        return self.begin

    @property
    def end_time(self) -> float:
        """When the vehicle leaves."""
        return self.depart

    @property
    def duration(self) -> float:
        """How long service takes."""
        return self.service

    @property
    def wait_duration(self) -> float:
        """How long the vehicle waits before service."""
        return self.wait

    @property
    def time_warp(self) -> float:
        """How much too late it is."""
        return self.late

    def __str__(self) -> str:
        """As PyVRP writes it: D a depot, C a client, L where a shipment is loaded and U where it is unloaded."""
        return {"depot": "D", "client": "C", "pickup": "L", "delivery": "U"}.get(self.part, "B") + str(self.idx)


@dataclass(frozen=True)
class Route:
    """What one vehicle does. It counts and iterates over its stops, depots included; `visits` are the places between."""

    vehicle: str
    type: int
    load: tuple[int, ...]
    cost: float
    stops: tuple[Stop, ...]
    figures: Mapping[str, float] = field(repr=False)

    def visits(self) -> list[int]:
        """The places between the route's ends, in order; a depot among them is a reload."""
        return [s.place for s in self.stops if s.kind in ("customer", "reload")]

    def __iter__(self) -> Iterator[Stop]:
        return iter(self.stops)

    def __len__(self) -> int:
        return len(self.stops)

    def __getitem__(self, i: int) -> Stop:
        return self.stops[i]

    def __str__(self) -> str:
        return " ".join("|" if s.kind == "reload" else str(s) for s in self.stops if s.kind in ("customer", "reload"))

    def num_clients(self) -> int:
        """Clients that it visits; both ends of a shipment count as none."""
        return sum(s.kind == "customer" and s.part == "client" for s in self.stops)

    def num_shipments(self) -> int:
        """Shipments that it carries."""
        return sum(s.is_pickup() for s in self.stops)

    def num_trips(self) -> int:
        """How often the vehicle leaves a depot loaded: one more than its reloads."""
        return 1 + sum(s.kind == "reload" for s in self.stops)

    def is_feasible(self) -> bool:
        """Every route that the program reports keeps every rule."""
        return True

    def schedule(self) -> list[Stop]:
        """Its stops, depots included, as PyVRP names them."""
        return list(self.stops)

    def vehicle_type(self) -> int:
        """The number of its vehicle type, from 0 on."""
        return self.type

    def distance(self) -> float:
        """Its length."""
        return self.figures["distance"]

    def duration(self) -> float:
        """From its start to its end, waiting and service included."""
        return self.figures["duration"]

    def wait_duration(self) -> float:
        """How long the vehicle waits in all."""
        return self.figures["wait"]

    def start_time(self) -> float:
        """When the vehicle leaves its first depot."""
        return self.figures["start"]

    def end_time(self) -> float:
        """When it is at its last."""
        return self.figures["end"]


@dataclass(frozen=True)
class Unserved:
    """A customer on no route, and why."""

    customer: int
    id: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Routes that were judged by the validator, their times, and who is not served."""

    cost: float
    distance: float
    duration: float
    all: tuple[Route, ...] = field(repr=False)
    unserved: tuple[Unserved, ...]
    missing: int  # how many of the unserved customers are required
    coords: tuple[tuple[float, float], ...] = field(repr=False, default=())

    def routes(self) -> list[Route]:
        """Every route that is used."""
        return list(self.all)

    def num_routes(self) -> int:
        """How many vehicles are used."""
        return len(self.all)

    def __str__(self) -> str:
        return "\n".join(f"Route #{i + 1}: {r}" for i, r in enumerate(self.all))

    def num_clients(self) -> int:
        """Clients that are served; both ends of a shipment count as none."""
        return sum(r.num_clients() for r in self.all)

    def num_shipments(self) -> int:
        """Shipments that are carried."""
        return sum(r.num_shipments() for r in self.all)

    def num_trips(self) -> int:
        """Trips of all vehicles."""
        return sum(r.num_trips() for r in self.all)

    def num_missing_clients(self) -> int:
        """Required customers that are on no route."""
        return self.missing

    def is_feasible(self) -> bool:
        """Whether all required customers are served. Routes always keep every rule, or the program would have refused them."""
        return self.missing == 0

    def rows(self) -> list[dict[str, Any]]:
        """A row per stop, as a table has it."""
        return [
            {"route": i + 1, "vehicle": r.vehicle, "stop": k, **{n: getattr(s, n) for n in ("kind", "place", "id", "name", "arrival", "wait", "begin", "service", "depart", "slack", "late", "distance")}, "load": s.load[0] if s.load else 0}
            for i, r in enumerate(self.all)
            for k, s in enumerate(r.stops)
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per stop; needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draws the routes on matplotlib's axes, which it returns; needs matplotlib, and coordinates."""
        from .plotting import draw_routes

        return draw_routes([[s.place for s in r.stops] for r in self.all], self.coords, [u.customer for u in self.unserved], ax)

    def _repr_html_(self) -> str:
        cells = ["route", "vehicle", "stops", "distance", "duration", "start", "end", "cost"]
        rows = [[str(i + 1), r.vehicle, str(sum(s.kind == "customer" for s in r)), *(f"{x:g}" for x in (r.distance(), r.duration(), r.start_time(), r.end_time(), r.cost))] for i, r in enumerate(self.all)]
        table = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        left = "".join(f"<li>{html.escape(u.id)}: {html.escape(u.reason)}</li>" for u in self.unserved)
        return (
            f"<p>cost {self.cost:g}, {len(self.all)} routes</p><table><thead><tr>{''.join(f'<th>{c}</th>' for c in cells)}</tr></thead><tbody>{table}</tbody></table>"
            + (f"<p>not served:</p><ul>{left}</ul>" if left else "")
        )


def plan_of(cost: float, missing: int, plan: Mapping[str, Any], coords: tuple[tuple[float, float], ...] = (), depots: int = 1, shipments: int | None = None) -> Plan:
    """What the program printed, with types. shipments is the first place of a model's shipments: pickup and delivery in turn."""
    routes = []
    for r in plan["routes"]:
        listed, trip = [], 0
        for s in r["stops"]:
            trip += s["kind"] == "reload"
            place = int(s["place"])
            if s["kind"] == "break":
                part, idx = "break", 0
            elif s["kind"] != "customer":
                part, idx = "depot", place
            elif shipments is not None and place >= shipments:
                part, idx = ("delivery" if (place - shipments) % 2 else "pickup"), (place - shipments) // 2
            else:
                part, idx = "client", place - depots
            listed.append(
                Stop(
                    **{n: s[n] for n in ("kind", "place", "id", "arrival", "wait", "begin", "service", "depart", "distance")},
                    slack=s.get("slack"),
                    late=s.get("late", 0.0),
                    load=tuple(s.get("load", ())),
                    name=s.get("name", ""),
                    at=tuple(s.get("at", ())),
                    idx=idx,
                    trip=trip,
                    part=part,
                )
            )
        stops = tuple(listed)
        figures = {n: float(r[n]) for n in ("distance", "duration", "wait", "start", "end")}
        routes.append(Route(vehicle=r["vehicle"], type=r["type"], load=tuple(r.get("load", ())), cost=float(r["cost"]), stops=stops, figures=figures))
    unserved = tuple(Unserved(u["customer"], u["id"], u["reason"]) for u in plan["unserved"])
    if not coords:  # of a file that only the program has read: where it went, and where it did not
        seen = {s.place: s.at for r in routes for s in r.stops} | {int(u["customer"]): tuple(u.get("at", ())) for u in plan["unserved"]}
        if seen and all(len(p) == 2 for p in seen.values()):
            nowhere = (float("nan"), float("nan"))
            coords = tuple((float(seen[i][0]), float(seen[i][1])) if i in seen else nowhere for i in range(max(seen) + 1))
    return Plan(cost=cost, distance=float(plan["distance"]), duration=float(plan["duration"]), all=tuple(routes), unserved=unserved, missing=missing, coords=coords)
