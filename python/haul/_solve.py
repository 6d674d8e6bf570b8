"""Routes for a problem given as numbers."""

from __future__ import annotations

import csv
import html
import math
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, SupportsIndex

from ._binary import HaulError, call
from ._plan import Unserved
from ._values import Point, Table, listed, number, pair, whole


@dataclass(frozen=True)
class Solution:
    """Routes that were judged valid. A route lists customers 1 to N; the depot at both ends is implied. Where the vehicles do not
    suffice for all customers, unserved says who is on no route, and why, and the cost is that of the others.

    >>> import haul, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     s = haul.solve([(0, 0), (1, 1), (2, 2)], [0, 5, 5], capacity=5, vehicles=1, iterations=10)
    >>> len(s.routes), len(s.unserved), "capacity" in s.unserved[0].reason
    (1, 1, True)
    """

    cost: float
    routes: list[list[int]]
    method: str
    seconds: float
    coords: tuple[tuple[float, float], ...] = field(repr=False, default=())
    demands: tuple[int, ...] = field(repr=False, default=())
    unserved: tuple[Unserved, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """A row per customer: its route, its place on it, and the load that the vehicle has delivered behind it."""
        out: list[dict[str, Any]] = []
        for i, route in enumerate(self.routes):
            load = 0
            for k, c in enumerate(route):
                load += self.demands[c]
                out.append({"route": i + 1, "stop": k + 1, "customer": c, "x": self.coords[c][0], "y": self.coords[c][1], "demand": self.demands[c], "load": load})
        return out

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row per customer; needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # pyright: ignore[reportMissingImports]

        return pandas.DataFrame(self.rows())

    def plot(self, ax: Any = None) -> Any:
        """Draws the routes on matplotlib's axes, which it returns; needs matplotlib."""
        from .plotting import draw_routes

        return draw_routes([[0, *r, 0] for r in self.routes], self.coords, ax=ax)

    def _repr_html_(self) -> str:
        lines = "".join(f"<tr><td>{i + 1}</td><td>{len(r)}</td><td>{sum(self.demands[c] for c in r)}</td><td>{' '.join(map(str, r))}</td></tr>" for i, r in enumerate(self.routes))
        return f"<p>cost {self.cost:g}, {len(self.routes)} routes by {html.escape(self.method)}</p><table><thead><tr><th>route</th><th>stops</th><th>load</th><th>customers</th></tr></thead><tbody>{lines}</tbody></table>"


def seconds(time: float | None) -> float | None:
    """A time above 0, or none."""
    if time is None:
        return None
    x = number(time, "time")
    if not x > 0:
        raise ValueError(f"time is {time}: seconds above 0 are needed")
    return x


def budget(time: float | None, iterations: int, method: str) -> None:
    """Refuses a budget that is given twice, or that a method has no use for."""
    if time is not None and iterations:
        raise ValueError("time and iterations both say how long: give one of them")
    if method != "search" and (time is not None or iterations):
        raise ValueError(f"{'time' if time is not None else 'iterations'} is about the search: leave method={method!r} out")


def solve(
    coords: Iterable[Point] | Table,
    demands: Iterable[SupportsIndex | float],
    capacity: SupportsIndex | float,
    time: float | None = None,
    *,
    method: str = "search",
    policy: str | None = None,
    checkpoint: str | Path | None = None,
    decode: str | None = None,
    vehicles: int = 0,
    open_routes: bool = False,
    iterations: int = 0,
    seed: int | None = None,
    workers: int = 0,
) -> Solution:
    """Finds routes for customers in the plane; node 0 is the depot and has demand 0.

    method is "search" (as good as `time` seconds allow, 1 where none is given, or `iterations`, which give the same routes every
    time), "exact" (the optimum, up to 22 customers) or "savings". With policy="cvrp100", or checkpoint="runs/mine", a trained policy
    solves it, decoded as `decode` says ("pomo8", "greedy", ...; None: as thoroughly as about a second allows), and with `time` or
    `iterations` as well the search goes on from its routes for as long; decode="eas8" takes the `time` itself. seed is that of
    the search (None: 42), or of the routes that a policy draws (None: its run's). vehicles limits the number of routes,
    open_routes leaves out the way back.

    Coordinates may be any sequence of pairs, a NumPy array, a tensor, or two columns of a pandas DataFrame.

    >>> import haul
    >>> s = haul.solve([(0, 0), (3, 4), (6, 8)], [0, 1, 1], capacity=2, method="exact")
    >>> s.cost, s.method, [sorted(r) for r in s.routes]
    (20.0, 'exact', [[1, 2]])
    >>> around = [(7 * i % 11, 3 * i % 11) for i in range(11)]
    >>> def drawn(seed):
    ...     return haul.solve(around, [0] + [3] * 10, capacity=10, policy="cvrp20", decode="sample:1,5", seed=seed).cost
    >>> drawn(1) == drawn(1), drawn(1) == drawn(2)
    (True, False)
    >>> haul.solve([(0, 0), (3, 4)], [0, 1.5], capacity=2)
    Traceback (most recent call last):
        ...
    ValueError: the demand of point 1 is 1.5: a whole number is needed
    >>> haul.solve([(0, 0, 0), (3, 4, 0)], [0, 1], capacity=2)
    Traceback (most recent call last):
        ...
    ValueError: point 0 has 3 numbers: two are needed, x and y
    >>> haul.solve([(0, 0), None], [0, 1], capacity=2)
    Traceback (most recent call last):
        ...
    ValueError: point 1 is None: two numbers are needed, x and y
    >>> haul.solve([(0, 0), (3, 4)], [0, 1], capacity=2, method=None)
    Traceback (most recent call last):
        ...
    ValueError: haul solve was given None: text is needed
    >>> haul.solve([(0, 0), (3, 4)], [0, 1], capacity=2, time=1, iterations=10)
    Traceback (most recent call last):
        ...
    ValueError: time and iterations both say how long: give one of them
    >>> haul.solve([(0, 0), (3, 4)], [0, 1], capacity=2, method="exact", time=1)
    Traceback (most recent call last):
        ...
    ValueError: time is about the search: leave method='exact' out
    >>> haul.solve([(0, 0), (3, 4)], [0, 1], capacity=2, decode="pomo8")
    Traceback (most recent call last):
        ...
    ValueError: decode is 'pomo8' and no policy is named: give policy or checkpoint
    >>> haul.solve(around, [0] + [3] * 10, capacity=10, policy="cvrp20", iterations=200).method
    'policy and search'
    >>> haul.solve([(0, 0), (3, 4)], [0, 1], capacity=2, policy="cvrp20", method="exact")
    Traceback (most recent call last):
        ...
    ValueError: a policy solves it, and no other method: leave method out
    """
    points = [pair(p, i) for i, p in enumerate(listed(coords, "coords"))]
    loads = [whole(d, f"the demand of point {i}") for i, d in enumerate(listed(demands, "demands"))]
    if len(points) != len(loads):
        raise ValueError(f"{len(loads)} demands for {len(points)} points: one per point is needed, 0 for the depot")
    if len(points) < 2:
        raise ValueError(f"{len(points)} points: the depot and at least one customer are needed")
    if loads[0] != 0:
        raise ValueError(f"the depot, point 0, has demand {loads[0]}: 0 is needed")
    for i, (x, y) in enumerate(points):
        if not (math.isfinite(x) and math.isfinite(y)):
            raise ValueError(f"point {i} is ({x}, {y}): finite coordinates are needed")
    if policy is not None and checkpoint is not None:
        raise ValueError("policy and checkpoint both name a policy: give one of them")
    if policy is None and checkpoint is None:
        if decode is not None:
            raise ValueError(f"decode is {decode!r} and no policy is named: give policy or checkpoint")
    elif method != "search":
        raise ValueError("a policy solves it, and no other method: leave method out")
    time = seconds(time)
    budget(time, iterations, method)
    with tempfile.TemporaryDirectory(prefix="haul") as folder:
        file = Path(folder) / "problem.csv"
        with file.open("w", newline="") as f:
            table = csv.writer(f)
            table.writerow(["id", "x", "y", "demand"])
            table.writerows((i, repr(x), repr(y), d) for i, ((x, y), d) in enumerate(zip(points, loads)))
        arguments = ["solve", str(file), "--capacity", str(whole(capacity, "the capacity")), "--json"]
        if policy is not None:
            arguments += ["--policy", policy]
        elif checkpoint is not None:
            arguments += ["--policy", str(checkpoint)]
        if policy is not None or checkpoint is not None:
            arguments += ["--set", f"decode={decode}"] if decode is not None else []
            arguments += ["--seed", str(seed)] if seed is not None else []
            if iterations:
                arguments += ["--iterations", str(iterations)]
            elif time is not None:
                arguments += ["--time", f"{time:.9f}s"]
        else:
            arguments += ["--method", method]
            if method == "search":
                arguments += ["--iterations", str(iterations)] if iterations else ["--time", f"{1.0 if time is None else time:.9f}s"]
                arguments += ["--seed", str(seed)] if seed is not None else []
        if workers:
            arguments += ["--workers", str(workers)]
        if vehicles:
            arguments += ["--vehicles", str(vehicles)]
        if open_routes:
            arguments += ["--open"]
        try:
            r = call(arguments, str(file), "the problem")
        except HaulError as e:  # a caller knows no file: its line 3 is point 1
            raise HaulError(str(e).replace(str(file), "the problem"), e.code) from None
    unserved = tuple(Unserved(int(u["customer"]), str(u["id"]), str(u["reason"])) for u in (r.get("plan") or {}).get("unserved") or ())
    return Solution(cost=float(r["cost"]), routes=r["routes"], method=r["method"], seconds=float(r["seconds"]), coords=tuple(points), demands=tuple(loads), unserved=unserved)
