"""What scripts/wheel --check runs inside the fresh environment: the package's doctests, or its weights against the program's tours.

  python scripts/wheel_check.py doctests
  python scripts/wheel_check.py notebook           # runs docs/notebook.ipynb and docs/agents.ipynb
  python scripts/wheel_check.py weights RUN        # needs PyTorch and NumPy
"""

import doctest
import importlib
import json
import pathlib
import pkgutil
import sys
import warnings

import needs

ap = needs.flags(__doc__)
ap.add_argument("what", choices=["doctests", "notebook", "weights"])
ap.add_argument("run", nargs="?", help="of weights: a run's folder")
FLAGS = ap.parse_args()
if (FLAGS.what == "weights") != (FLAGS.run is not None):
    ap.error("weights takes a run's folder, the others none")
needs.packages("haul")

import haul

TEST_INSTANCES = 4  # rng.TestInstances
TOLERANCE = 2e-4  # of the mean cost: a tie may send a route another way


def doctests():
    tried = 0
    for m in [haul, *(importlib.import_module(f"haul.{m.name}") for m in pkgutil.iter_modules(haul.__path__) if not m.name.endswith("_torch") and m.name != "__main__")]:
        result = doctest.testmod(m)
        if result.failed:
            sys.exit(f"{m.__name__}: {result.failed} doctests failed")
        tried += result.attempted
    if tried < 5:
        sys.exit(f"{tried} lines of doctests were found: the search is broken")
    print(f"{tried} lines of doctests passed")
    arguments()
    misuse()
    leaving()
    undocumented()


def arguments():
    """What a caller asks for reaches the program: each call goes there, and its words are looked at on the way."""
    from haul import _solve

    said, real = [], _solve.call

    def listen(words, *named):
        said[:] = words
        return real(words, *named)

    def pair(name):
        return said[said.index(name) + 1] if name in said else None

    spots, loads = [(0, 0), (0, 3), (4, 0), (4, 3)], [0, 1, 1, 1]
    _solve.call = listen
    try:
        haul.solve(spots, loads, capacity=9, iterations=7, seed=5, workers=1)
        assert (pair("--iterations"), pair("--time"), pair("--seed"), pair("--workers")) == ("7", None, "5", "1"), said
        haul.solve(spots, loads, capacity=9, time=0.05)
        assert (pair("--iterations"), pair("--time"), pair("--seed"), pair("--workers")) == (None, "0.050000000s", None, None), said
        closed = haul.solve(spots, loads, capacity=9, iterations=50)
        assert "--open" not in said and "--vehicles" not in said, said
        left_open = haul.solve(spots, loads, capacity=9, iterations=50, open_routes=True)
        assert "--open" in said and left_open.cost < closed.cost, (left_open.cost, closed.cost)
        free, few = haul.solve(spots, loads, capacity=1, iterations=50), haul.solve(spots, loads, capacity=1, iterations=50, vehicles=2)
        assert pair("--vehicles") == "2" and len(free.routes) == 3 and len(few.routes) == 2, (free.routes, few.routes)
    finally:
        _solve.call = real
    print("what is asked for reaches the program")


class Array:
    """What the package sees of an array of NumPy's, a column of pandas' or one of their numbers."""

    def __init__(self, values, to_numpy=False):
        self.values, self.ndim = values, 1 if isinstance(values, list) else 0
        if to_numpy:
            self.to_numpy = lambda: Array(values)

    def tolist(self):
        return self.values

    def __float__(self):
        if self.ndim:
            raise TypeError("only length-1 arrays can be converted to Python scalars")
        return float(self.values)

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


def misuse():
    """What is not of its kind is a ValueError that names it; numbers and arrays of other packages are numbers and arrays."""
    import pickle

    from haul.stop import MaxIterations

    spots, loads, nan = [(0, 0), (3, 4), (6, 8)], [0, 1, 1], float("nan")

    def model(start=None, stop=MaxIterations(5), edge=None, vehicle=(), **client):
        m = haul.Model()
        depot = m.add_depot(x=Array(0), y=0)
        m.add_vehicle_type(**{"capacity": Array([9]), "start_depot": depot, "end_depot": depot, "fixed_cost": Array(2), **dict(vehicle)})
        for x, y in spots[1:]:
            m.add_client(x=x, y=y, **{"delivery": Array([1]), "tw_early": Array(0.0), "service_duration": Array(1), **client})
        if edge is not None:
            m.add_edge(depot, m.clients[0], edge)
        return m.solve(stop, initial_solution=start)

    def solve(coords=spots, demands=loads, capacity=9, **others):
        return haul.solve(coords, demands, capacity, **{"iterations": 5, **others})

    frame = Array([[0, 0], [3, 4], [6, 8]], to_numpy=True)
    for taken in (
        solve(frame, Array(loads, to_numpy=True), Array(9)),
        solve((iter(p) for p in spots), iter(loads)),
        haul.Problem.of(frame, loads, 9, service=Array([0, 1, 1])).solve(iterations=5),
        haul.read({"haul": 1, "coords": frame, "demands": Array(loads), "capacity": 9}).solve(iterations=5),
        model(), model(start=[Array([1, 2])], edge=Array(3)), model(start=model()),
    ):
        assert taken.cost if isinstance(taken, haul.Solution) else taken.is_feasible(), taken
    table = type("Frame", (), {"to_csv": lambda self, index: "id,x,y,demand\na,0,0,0\nb,3,4,1\n"})()
    kept = pickle.loads(pickle.dumps(haul.read(table, capacity=2)))
    assert kept.solve(method="exact").cost() == 10, "a frame's problem does not outlive a pickle"
    for call, says in (
        (lambda: solve([(0, 0), (None, 4), (6, 8)]), "point 1 is (None, 4)"),
        (lambda: solve([0, 0, 3, 4]), "point 0 is 0"),
        (lambda: solve(["00", "34", "68"]), "point 0 is '00'"),
        (lambda: solve(set(spots)), "coords is a set"),
        (lambda: solve(dict(enumerate(spots))), "coords is a dict"),
        (lambda: solve(3), "coords is a int"),
        (lambda: solve(demands="011"), "demands is a str"),
        (lambda: solve(demands=[0, None, 1]), "the demand of point 1 is None"),
        (lambda: solve(demands=[0, [1], 1]), "the demand of point 1 is [1]"),
        (lambda: solve(capacity=None), "the capacity is None"),
        (lambda: solve(time="soon"), "time is 'soon'"),
        (lambda: solve(time=float("inf"), iterations=0), "time is inf"),
        (lambda: solve(method=3, iterations=0), "haul solve was given 3"),
        (lambda: model(tw_early=nan), "tw_early is nan"),
        (lambda: model(tw_late=None), "tw_late is None"),
        (lambda: model(prize=float("inf"), required=False), "prize is inf"),
        (lambda: model(name=3), "name is 3"),
        (lambda: model(vehicle={"max_distance": nan}), "max_distance is nan"),
        (lambda: model(edge=nan), "distance is nan"),
        (lambda: model(stop=nan), "stop is nan"),
        (lambda: model(start=[1, 2]), "route 0 of initial_solution is 1"),
        (lambda: haul.Problem.of(spots, loads, 9, windows=[[], [nan, 3], []]).solve(), "windows[1][0] is nan"),
        (lambda: haul.read(None), "None is a NoneType"),
        (lambda: haul.read({}, json=True), "json says what is printed"),
        (lambda: haul.doctor(None), "None is a NoneType"),
        (lambda: haul.solve_many("a.csv"), "problems is one str"),
    ):
        try:
            call()
        except ValueError as e:
            assert says in str(e), f"{says!r} is not in {e}"
        else:
            raise AssertionError(f"nothing says {says!r}")
    for call, says in ((lambda: model(start=[[1, 1]]), "initial_solution is not"), (lambda: haul.doctor("-x"), "open ./-x")):
        try:
            call()
        except haul.HaulError as e:
            assert str(e).startswith(says), f"{e} does not begin with {says!r}"
        else:
            raise AssertionError(f"nothing says {says!r}")
    print("what is not of its kind is named")


def undocumented():
    """Whatever the package exports says what it is."""
    import inspect

    for name in haul.__all__:
        thing = getattr(haul, name)
        parts = [(a, v) for a, v in vars(thing).items() if not a.startswith("_") and (callable(v) or isinstance(v, property))] if inspect.isclass(thing) else []
        for what, v in [(name, thing), *((f"{name}.{a}", v) for a, v in parts)]:
            if not inspect.getdoc(v):
                sys.exit(f"haul.{what} says nothing of itself: help() shows no more than its name")


def leaving():
    """Who stops reading a run ends it as Ctrl-C does, and what was reached is saved; one that was read to its end is let be."""
    import subprocess
    import tempfile
    from pathlib import Path

    from haul import _binary

    small = [w for key in ["problem.num_customers=5", "training.batch_size=12", "training.num_batches_per_epoch=6", "training.validation_instances=10",
                           "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1"] for w in ("--set", key)]
    ended, terminate = [], subprocess.Popen.terminate
    subprocess.Popen.terminate = lambda p: (ended.append(p), terminate(p))[1]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train = ["train", "--config", "tiny_1", "--device", "cpu", "--json", *small]
        objects = _binary.stream([*train, "--out", str(run), "--epochs", "100000000"])
        next(o for o in objects if o.get("event") == "epoch")
        objects.close()  # waits for the program, which would take days to end by itself
        if len(ended) != 1 or not (run / "last.safetensors").is_file():
            sys.exit("a run that nobody reads any more was not told to end, or saved nothing")
        if not list(_binary.stream([*train, "--out", str(run) + "2", "--epochs", "1"])) or len(ended) != 1:
            sys.exit("a run that was read to its end told nothing, or was told to end")
    subprocess.Popen.terminate = terminate
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run = haul.train("tiny_1", out="unread")
        words = repr(run)
        del run
        with tempfile.TemporaryDirectory() as folder:
            given = {"experiment.random_seed": 9, **dict(key.split("=") for key in small[1::2])}
            list(haul.train("tiny_1", seed=3, epochs=1, device="cpu", out=folder + "/run", settings=given))
    want = ["haul.train: no run was begun", "--set experiment.random_seed=9 has no effect: --seed is given too"]
    if "no run was begun" not in words or [str(w.message)[: len(t)] for w, t in zip(told, want)] != want or len(told) != len(want):
        sys.exit(f"what a run passes over: {words}, {[str(w.message) for w in told]}, want {want}")
    print("who stops reading ends the run")


def cells(name):
    """Every cell of code of a notebook in docs, in order; its assertions hold. Returns what it has defined."""
    text = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs" / name).read_text(encoding="utf-8"))
    names, count = {"__name__": "notebook"}, 0
    for cell in text["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, cell {count}", "exec"), names)
            count += 1
    print(f"{count} cells of {name} ran")
    return names


def notebook():
    """Routes, whose results are shown as tables, and an agent in a world of its own."""
    names = cells("notebook.ipynb")
    for shown in (names["s"], names["r"]):
        if "<table>" not in shown._repr_html_():
            sys.exit("a result is not shown as a table")
    cells("agents.ipynb")


def weights(path):
    """PyTorch routes the test instances greedily, as `haul eval` does; means and single costs must agree."""
    import torch

    from haul import gt_torch as gt

    loaded = haul.load(path)
    problem, seed, count = loaded.settings["problem"], loaded.settings["experiment"]["random_seed"], 500
    xy, load = gt.instances(seed, TEST_INSTANCES, 0, count, problem)
    demand = load.float() / problem["vehicle_capacity"]
    with torch.no_grad():
        cost = gt.rollout(loaded.model, loaded.model.encode(xy, demand), xy, demand, 1, greedy=True).cost.mean().item()
    ours = json.loads(haul.run("eval", "--checkpoint", path, "--count", str(count), "--device", "cpu", "--json").stdout.splitlines()[-1])["mean_cost"]
    print(f"mean greedy cost of {count} instances: PyTorch {cost:.6f}, Haul {ours:.6f}")
    with torch.no_grad():
        tours, lengths = loaded.model(xy, demand)
    if not abs(lengths.mean().item() / cost - 1) <= 1e-6 or tours.shape[0] != count:
        sys.exit("the module's forward is not its greedy rollout")
    shipped = haul.load("cvrp20")
    with torch.no_grad():
        _, lengths = shipped.model(xy, demand)
    print(f"cvrp20, loaded by its name: {lengths.mean().item():.6f}")
    if not abs(cost / ours - 1) <= TOLERANCE:
        sys.exit("haul.load and the program disagree")


if __name__ == "__main__":
    needs.run({"doctests": doctests, "notebook": notebook, "weights": lambda: weights(FLAGS.run)}[FLAGS.what])
