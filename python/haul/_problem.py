"""Problems out of files and generators, and many of them at once.

What a reader could break: a file is handed to the program as it is, so that every format that `haul solve` reads is read here too,
and refused here in its words.
"""

from __future__ import annotations

import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence, SupportsIndex, Union

from ._binary import HaulError, run
from ._model import Model, Result, first_shipment, solve_file
from ._solve import budget, seconds
from ._values import Point, Table, encoded, listed, named, pair, short, whole


@dataclass(frozen=True)
class Problem:
    """A routing problem: a file of any format with the flags that go with it, or one in Haul's own JSON.

    >>> import haul
    >>> p = haul.Problem.of([(0, 0), (3, 4), (6, 8)], [0, 1, 1], capacity=2)
    >>> p.name, p.customers, p.solve(method="exact").cost()
    ('problem', 2, 20.0)
    """

    name: str
    file: Path | None = None  # what it is read from
    flags: tuple[str, ...] = ()
    data: Mapping[str, Any] | None = field(default=None, repr=False)  # or itself, in Haul's own JSON
    table: str = field(default="", repr=False)  # or a frame's text, where there is neither

    @classmethod
    def of(cls, coords: Iterable[Point] | Table, demands: Iterable[Any], capacity: SupportsIndex | float, *, name: str = "problem", **parts: Any) -> Problem:
        """A problem of numbers; parts are keys of Haul's own JSON (docs/formats.md): windows, service, fleet, ..."""
        at = [list(pair(p, i)) for i, p in enumerate(listed(coords, "coords"))]
        loads = [whole(d, f"the demand of point {i}") for i, d in enumerate(listed(demands, "demands"))]
        return cls(name, data={"haul": 1, "name": name, "coords": at, "demands": loads, "capacity": whole(capacity, "the capacity"), **parts})

    @property
    def customers(self) -> int | None:
        """How many there are; None where only the program has read the file."""
        return len(self.data["demands"]) - int(self.data.get("depots") or 1) if self.data is not None else None

    @property
    def coords(self) -> tuple[tuple[float, float], ...]:
        """Of the places, depots first; none where only the program has read the file."""
        at = self.data.get("coords") if self.data is not None else None
        return tuple(pair(p, i) for i, p in enumerate(listed(at, "coords"))) if at is not None else ()

    def solve(
        self,
        time: float | None = None,
        *,
        method: str | None = None,
        policy: str | None = None,
        checkpoint: str | Path | None = None,
        decode: str | None = None,
        iterations: int = 0,
        seed: int | None = None,
        workers: int = 1,
    ) -> Result:
        """Routes with their times. Without a method the program picks one; a policy's routes are improved where time is given."""
        arguments = [*self.flags, "--workers", str(workers)]
        for flag, value in (("--method", method), ("--policy", policy), ("--policy", checkpoint), ("--set", None if decode is None else f"decode={decode}"), ("--seed", seed)):
            if value is not None:
                arguments += [flag, str(value)]
        budget(time, iterations, method or "search")
        if iterations:
            arguments += ["--iterations", str(iterations)]
        elif (most := seconds(time)) is not None:
            arguments += ["--time", f"{most:.9f}s"]
        if self.file is not None:
            return solve_file(self.file, arguments, str(self.file))
        with tempfile.TemporaryDirectory(prefix="haul") as folder:
            if self.data is None:
                file = Path(folder) / "table.csv"
                file.write_text(self.table, encoding="utf-8")
                return solve_file(file, arguments, "the table")
            file = Path(folder) / "problem.json"
            file.write_text(encoded(dict(self.data)), encoding="utf-8")
            return solve_file(file, arguments, self.name, self.coords, int(self.data.get("depots") or 1), first_shipment(dict(self.data)))


Readable = Union[str, Path, Mapping[str, Any]]


def read(source: Any, *, capacity: int | None = None, distance: str | None = None, vehicles: int | None = None, **flags: Any) -> Problem:
    """A problem out of a file of any format that `haul solve` reads (.vrp, .csv, .xlsx, .json, .geojson, VROOM's JSON, Solomon's, ...),
    a pandas DataFrame, which is taken as a table, or a dict in Haul's own JSON.

    Further keywords are flags of `haul solve`: fleet="vans.csv", distances="matrix.npy", speed=30.

    >>> import haul, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> table = os.path.join(folder, "stops.csv")
    >>> _ = open(table, "w").write("id,x,y,demand\\ndepot,0,0,0\\na,3,4,1\\nb,6,8,1\\n")
    >>> r = haul.read(table, capacity=2).solve(method="exact")
    >>> r.cost(), [s.id for s in r.best.routes()[0] if s.is_client()] in (["a", "b"], ["b", "a"])
    (20.0, True)
    >>> plan = {"vehicles": [{"id": 7, "start": [2.35, 48.85], "end": [2.35, 48.85]}], "jobs": [{"id": 4, "location": [2.4, 48.9]}]}
    >>> r = haul.read(plan).solve(iterations=50)  # VROOM's words
    >>> r.cost(), [(s.vehicle, s.visits()) for s in r.best.routes()]
    (958.0, [('7', [1])])
    >>> haul.read(table).solve()
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: --capacity is missing: a table of stops does not say what a vehicle carries; or give a table of vehicles with --with fleet=FILE
    """
    words: list[str] = []
    for name in ("out", "json", "help"):
        if name in flags:
            raise ValueError(f"{name} says what is printed, and is no part of a problem: leave it out")
    for name, value in {"capacity": capacity, "distance": distance, "vehicles": vehicles, **flags}.items():
        if value is True:
            words.append("--" + name.replace("_", "-"))
        elif name in ("fleet", "depots", "shipments", "distances", "durations") and value is not None:
            words += ["--with", f"{name}={value}"]
        elif name in ("distance", "times") and value is not None:
            words += ["--set", f"{name}={value}"]
        elif value is not None and value is not False:
            words += ["--" + name.replace("_", "-"), str(value)]
    if isinstance(source, Mapping):
        return Problem(str(source.get("name") or "problem"), None, tuple(words), dict(source))
    if hasattr(source, "to_csv"):
        return Problem("table", None, tuple(words), None, str(source.to_csv(index=False)))
    try:
        path = Path(source)
    except TypeError:
        raise ValueError(f"{short(source)} is a {type(source).__name__}: the name of a file, a DataFrame or a dict is needed") from None
    if not path.exists():
        raise HaulError(f"{path}: no such file")
    return Problem(path.stem, path, tuple(words))


def solve_many(
    problems: Iterable[Problem | Model | Mapping[str, Any] | str | Path],
    time: float | None = None,
    *,
    workers: int = 0,
    **options: Any,
) -> list[Result]:
    """Solves many problems, as many at once as there are cores (or `workers`), each on one; results keep the problems' order.

    time is the seconds of each; options are those of `Problem.solve`: method, policy, iterations, seed, ...

    >>> import haul
    >>> for r in haul.solve_many(haul.generate(customers=8, count=3, seed=1), method="exact"):
    ...     print(r.is_feasible(), r.best.num_clients())
    True 8
    True 8
    True 8
    """
    if isinstance(problems, (Problem, Model, Mapping, str, Path)):
        raise ValueError(f"problems is one {type(problems).__name__}: a list of them is needed")
    if workers < 0:
        raise ValueError(f"workers is {workers}: at least 1 is needed, or 0 for one per core")
    asked = [p if isinstance(p, Problem) else read(p.data()) if isinstance(p, Model) else read(p) for p in problems]
    with ThreadPoolExecutor(max_workers=workers or os.cpu_count() or 1) as pool:
        return list(pool.map(lambda p: p.solve(time, **options), asked))


def generate(customers: int = 20, capacity: int = 30, count: int = 1, *, seed: int = 42, distribution: str = "uniform", first: int = 0) -> list[Problem]:
    """Instances as `haul gen` draws them: on the unit square, in whole numbers of a millionth, or with distribution="grid" on whole
    numbers to 100. Costs of the unit square are those of the result divided by 1,000,000.

    >>> import haul
    >>> a, b = haul.generate(customers=5, count=2, seed=7)
    >>> a.customers, len(a.coords), a.data["capacity"], a.data == b.data
    (5, 6, 30, False)
    >>> haul.generate(customers=5, seed=7, first=1)[0].coords == b.coords
    True
    """
    with tempfile.TemporaryDirectory(prefix="haul") as folder:
        out = Path(folder) / "set"
        run("gen", f"{distribution}:{customers}", "--capacity", str(capacity), "--count", str(count), "--seed", str(seed), "--first", str(first), "--out", str(out))
        return [drawn(p) for p in sorted(out.glob("*.vrp"))]


def drawn(file: Path) -> Problem:
    """What `haul gen` wrote, as it wrote it: coordinates, demands and the capacity, with distances unrounded."""
    at: list[list[float]] = []
    demands: list[int] = []
    capacity, section = 0, ""
    for line in file.read_text(encoding="utf-8").splitlines():
        word, _, value = line.partition(":")
        cells = line.split()
        if word.strip() == "CAPACITY":
            capacity = int(value)
        elif line.strip().endswith("SECTION"):
            section = line.strip()
        elif section == "NODE_COORD_SECTION" and len(cells) == 3:
            at.append([float(cells[1]), float(cells[2])])
        elif section == "DEMAND_SECTION" and len(cells) == 2:
            demands.append(int(cells[1]))
    return Problem(file.stem, data={"haul": 1, "name": file.stem, "coords": at, "demands": demands, "capacity": capacity})


@dataclass(frozen=True)
class Policy:
    """A shipped trained policy."""

    name: str
    customers: int  # of the instances that it learned from
    capacity: int
    parameters: int
    decode: str  # the default decoder
    card: str = field(repr=False)  # its model card


def policies() -> list[Policy]:
    """The shipped policies.

    >>> import haul
    >>> [p.customers for p in haul.policies() if p.name == "cvrp20"]
    [20]
    """
    lines = [json.loads(line) for line in run("policies", "--json").stdout.splitlines() if line.strip()]
    return [Policy(**{k: p[k] for k in ("name", "customers", "capacity", "parameters", "decode", "card")}) for p in lines]


def evaluate(policy: str | Path, count: int = 1000, *, decode: str | None = None, seed: int | None = None, device: str = "auto", instances: str | Path | None = None) -> dict[str, Any]:
    """Judges a policy (a name of `policies`, a run's folder or a .safetensors file) on instances that it has not learned from.

    Returns what `haul eval --json` prints: mean_cost, gap to the optimum or to a search, standard errors, ...

    >>> import haul
    >>> 6 < haul.evaluate("cvrp20", count=10, decode="greedy", device="cpu")["mean_cost"] < 7
    True
    """
    path = named(policy)
    shipped = not Path(path).exists() and any(p.name == path for p in policies())
    arguments = ["eval", *([] if instances is None else [str(instances)]), "--policy" if shipped else "--checkpoint", path, "--count", str(count), "--device", device, "--json"]
    for flag, value in (("--decode", decode), ("--seed", seed)):
        if value is not None:
            arguments += [flag, str(value)]
    result = json.loads(run(*arguments).stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


__all__: Sequence[str] = ["Policy", "Problem", "evaluate", "generate", "policies", "read", "solve_many"]
