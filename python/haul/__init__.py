"""Haul from Python: routes, training runs, diagnoses and weights.

The package carries the program itself, one binary without dependencies, and speaks to it by its JSON. Nothing here needs
NumPy or PyTorch, except `load`, which needs PyTorch, and `load_histories` and `from_hdf5`, which need NumPy.

>>> import haul
>>> s = haul.solve([(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)], [0, 5, 5, 5, 5], capacity=10)
>>> round(s.cost, 6), sorted(map(sorted, s.routes))
(8.0, [[1, 2], [3, 4]])
"""

from ._agent import Agent
from ._binary import HaulError, HaulWarning, binary, run, version
from ._doctor import Diagnosis, Finding, doctor
from ._histories import from_hdf5, load_histories
from ._load import Loaded, load
from ._model import Client, ClientGroup, Depot, Edge, Location, Model, Profile, Result, Shipment, VehicleType
from ._plan import Plan, Route, Stop, Unserved
from ._problem import Policy, Problem, evaluate, generate, policies, read, solve_many
from ._record import record
from ._solve import Solution, solve
from ._train import Record, train
from . import plotting, stop

__all__ = [
    "Agent",
    "Client",
    "ClientGroup",
    "Depot",
    "Diagnosis",
    "Edge",
    "Finding",
    "HaulError",
    "HaulWarning",
    "Loaded",
    "Location",
    "Model",
    "Plan",
    "Policy",
    "Problem",
    "Profile",
    "Record",
    "Result",
    "Route",
    "Shipment",
    "Solution",
    "Stop",
    "Unserved",
    "VehicleType",
    "binary",
    "doctor",
    "evaluate",
    "from_hdf5",
    "generate",
    "load",
    "load_histories",
    "plotting",
    "policies",
    "read",
    "record",
    "run",
    "solve",
    "solve_many",
    "stop",
    "train",
    "version",
]
__version__ = "@VERSION@"
