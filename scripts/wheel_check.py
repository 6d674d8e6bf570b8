"""What scripts/wheel --check runs inside the fresh environment: the package's doctests, or its weights against the program's tours.

  python scripts/wheel_check.py doctests
  python scripts/wheel_check.py notebook           # runs docs/notebook.ipynb
  python scripts/wheel_check.py weights RUN        # needs PyTorch and NumPy
"""

import doctest
import importlib
import json
import pathlib
import pkgutil
import sys

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


def notebook():
    """Every cell of code of docs/notebook.ipynb, in order; its assertions hold and what is shown last has a table."""
    text = json.loads((pathlib.Path(__file__).resolve().parent.parent / "docs/notebook.ipynb").read_text(encoding="utf-8"))
    names, count = {"__name__": "notebook"}, 0
    for cell in text["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {count}", "exec"), names)
            count += 1
    for shown in (names["s"], names["r"]):
        if "<table>" not in shown._repr_html_():
            sys.exit("a result is not shown as a table")
    print(f"{count} cells of the notebook ran")


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
