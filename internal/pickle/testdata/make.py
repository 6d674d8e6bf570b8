"""Makes the pickles of this folder with Python's and NumPy's own code: python make.py (NumPy 2.4)."""

import os
import pickle

import numpy as np


class Hostile:
    def __reduce__(self):
        return os.system, ("touch it-ran",)


plain = [([0.25, 0.5], [[0.75, 1.0], [0.0, 0.125]], [3, 4], 9.0), ([0.5, 0.5], [[0.0, 0.125], [0.5, 0.25]], [5, 6], 10.0)]
arrays = {"depot": np.array([[0.25, 0.5]], np.float32), "locs": np.array([[[0.75, 1.0], [0.0, 0.125]]]), "demand": np.array([[3, 4]]), "capacity": np.array([9], np.int32)}
mixed = [(np.array([0.25, 0.5]), np.array([[0.75, 1.0], [0.0, 0.125]]), np.array([3, 4]), np.float64(9.0))]
scalars = [True, False, None, -1, 255, 65535, -(2**31), 2**40, -(2**63), 1e300, "text", "é\u20ac\n", b"\x00\xff", (), {}, {"a": (1, 2, 3, 4)}]
results = ([(6.5, [1, 2, 0], 0.1), (7.5, [1], 0.2)], 4)
for name, value in {"plain": plain, "arrays": arrays, "mixed": mixed, "scalars": scalars, "results": results, "hostile": [Hostile()]}.items():
    for protocol in range(6):
        with open(f"{name}-{protocol}.pkl", "wb") as f:
            pickle.dump(value, f, protocol=protocol)
