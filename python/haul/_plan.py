"""Routes with their times, as the program tells them.

What a reader could break: every number here was computed by the program; nothing is computed twice.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping


@dataclass(frozen=True)
class Stop:
    """One visit of a route. kind is start, customer, reload, break or end; slack is None where nothing limits it."""

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
    load: tuple[int, ...]


@dataclass(frozen=True)
class Route:
    """What one vehicle does. It counts and iterates over the places that it visits, without its depots."""

    vehicle: str
    type: int
    load: tuple[int, ...]
    cost: float
    stops: tuple[Stop, ...]
    figures: Mapping[str, float] = field(repr=False)

    def visits(self) -> list[int]:
        """The places between the route's ends, in order; a depot among them is a reload."""
        return [s.place for s in self.stops if s.kind in ("customer", "reload")]

    def __iter__(self) -> Iterator[int]:
        return iter(self.visits())

    def __len__(self) -> int:
        return len(self.visits())

    def __str__(self) -> str:
        return " ".join(s.id for s in self.stops if s.kind in ("customer", "reload"))

    def schedule(self) -> list[Stop]:
        return list(self.stops)

    def vehicle_type(self) -> int:
        return self.type

    def distance(self) -> float:
        return self.figures["distance"]

    def duration(self) -> float:
        return self.figures["duration"]

    def wait_duration(self) -> float:
        return self.figures["wait"]

    def start_time(self) -> float:
        return self.figures["start"]

    def end_time(self) -> float:
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
    missing: int  # of the unserved: how many had to be served
    coords: tuple[tuple[float, float], ...] = field(repr=False, default=())

    def routes(self) -> list[Route]:
        return list(self.all)

    def num_routes(self) -> int:
        return len(self.all)

    def num_clients(self) -> int:
        return sum(s.kind == "customer" for r in self.all for s in r.stops)

    def is_feasible(self) -> bool:
        """Everybody who had to be served is: what is served keeps every rule, or the program would have refused it."""
        return self.missing == 0

    def rows(self) -> list[dict[str, Any]]:
        """A row per stop, as a table has it."""
        return [
            {"route": i + 1, "vehicle": r.vehicle, "stop": k, **{n: getattr(s, n) for n in ("kind", "place", "id", "arrival", "wait", "begin", "service", "depart", "slack", "late", "distance")}, "load": s.load[0] if s.load else 0}
            for i, r in enumerate(self.all)
            for k, s in enumerate(r.stops)
        ]

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per stop; needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draws the routes on matplotlib's axes, which it returns; needs matplotlib, and coordinates."""
        if not self.coords:
            raise ValueError("these places have no coordinates: there is nothing to draw")
        import matplotlib.pyplot as plt  # type: ignore[import-untyped,import-not-found,unused-ignore]

        if ax is None:
            _, ax = plt.subplots()
        for i, r in enumerate(self.all):
            at = [self.coords[s.place] for s in r.stops]
            ax.plot([x for x, _ in at], [y for _, y in at], marker="o", markersize=3, linewidth=1, label=f"route {i + 1}")
        if self.unserved:
            at = [self.coords[u.customer] for u in self.unserved]
            ax.scatter([x for x, _ in at], [y for _, y in at], marker="x", color="black", label="not served")
        ax.set_aspect("equal", "datalim")
        return ax

    def _repr_html_(self) -> str:
        cells = ["route", "vehicle", "stops", "distance", "duration", "start", "end", "cost"]
        rows = [[str(i + 1), r.vehicle, str(len(r)), *(f"{x:g}" for x in (r.distance(), r.duration(), r.start_time(), r.end_time(), r.cost))] for i, r in enumerate(self.all)]
        table = "".join("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        left = "".join(f"<li>{html.escape(u.id)}: {html.escape(u.reason)}</li>" for u in self.unserved)
        return (
            f"<p>cost {self.cost:g}, {len(self.all)} routes</p><table><thead><tr>{''.join(f'<th>{c}</th>' for c in cells)}</tr></thead><tbody>{table}</tbody></table>"
            + (f"<p>not served:</p><ul>{left}</ul>" if left else "")
        )


def plan_of(cost: float, missing: int, plan: Mapping[str, Any], coords: tuple[tuple[float, float], ...] = ()) -> Plan:
    """What the program printed, with types."""
    routes = []
    for r in plan["routes"]:
        stops = tuple(
            Stop(
                **{n: s[n] for n in ("kind", "place", "id", "arrival", "wait", "begin", "service", "depart", "distance")},
                slack=s.get("slack"),
                late=s.get("late", 0.0),
                load=tuple(s.get("load", ())),
            )
            for s in r["stops"]
        )
        figures = {n: float(r[n]) for n in ("distance", "duration", "wait", "start", "end")}
        routes.append(Route(vehicle=r["vehicle"], type=r["type"], load=tuple(r.get("load", ())), cost=float(r["cost"]), stops=stops, figures=figures))
    unserved = tuple(Unserved(u["customer"], u["id"], u["reason"]) for u in plan["unserved"])
    return Plan(cost=cost, distance=float(plan["distance"]), duration=float(plan["duration"]), all=tuple(routes), unserved=unserved, missing=missing, coords=coords)
