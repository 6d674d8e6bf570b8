"""In-context agents in any Python loop, and histories of any Gymnasium environment for them to learn from.

What a reader could break: agents keep their contexts in the program (`haul act`), which this module speaks to line by line.
A history is recorded as arrays, which `haul data import` judges and turns into a file.
"""

from __future__ import annotations

import array
import json
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Callable, Sequence

from ._binary import HaulError, binary, call, failure, remark, texts


class Agent:
    """Trained agents that learn a task inside their contexts, each on a task of its own.

    run is a run folder or a .safetensors file. act takes what every agent observes and what its last action paid, and returns
    what each does; with agents=1 observations, rewards and actions need no list around them. Contexts last over episodes:
    that is where learning happens. forget begins anew, on another task.

    >>> import haul
    >>> agent = haul.Agent("runs/mine")              # doctest: +SKIP
    >>> action = agent.act(obs)                      # doctest: +SKIP
    >>> obs, reward, ended, cut, _ = env.step(action)  # doctest: +SKIP
    >>> action = agent.act(obs, reward)              # doctest: +SKIP
    """

    def __init__(self, run: str | Path, *, agents: int = 1, device: str = "cpu", temperature: float | None = None, search: float | None = None, seed: int | None = None) -> None:
        arguments = ["act", "--checkpoint", str(run), "--agents", str(agents), "--device", device]
        for name, value in (("--temperature", temperature), ("--search", search), ("--seed", seed)):
            if value is not None:
                arguments += [name, str(value)]
        self._process = subprocess.Popen([binary(), *texts(arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace")
        self._words: list[str] = []
        # the pipe of words is read beside: a full one would stop the program
        self._reader = threading.Thread(target=lambda: self._words.extend(self._process.stderr or []), daemon=True)
        self._reader.start()
        first = self._read()
        self.agents: int = first["agents"]
        self.fields: list[str] = first["fields"]
        self.actions: int = first["actions"]
        self.temperature: float = first["temperature"]
        self.search_temperature: float = first["search_temperature"]
        self._forget = [False] * self.agents

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._reader.join()
            raise failure("".join(self._words), code)
        out: dict[str, Any] = json.loads(line)
        return out

    def act(self, obs: Any, reward: Any = None, done: Any = None) -> Any:
        """What every agent does. reward is of its last action; done is of no use to a context and may be given all the same."""
        single = self.agents == 1
        told: dict[str, Any] = {"obs": [row(obs)] if single else [row(o) for o in obs], "forget": self._forget}
        if reward is not None:
            told["reward"] = [number(reward)] if single else [number(r) for r in reward]
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(told) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            self._read()  # says why
            raise
        out = self._read()
        if "error" in out:
            raise HaulError(out["error"])
        if "note" in out:
            remark(out["note"])
        self._forget = [False] * self.agents
        actions: list[int] = out["action"]
        return actions[0] if single else actions

    def forget(self, which: Sequence[int] | None = None) -> None:
        """Lets all agents, or those, begin anew with their next observation."""
        for i in range(self.agents) if which is None else which:
            self._forget[i] = True

    def close(self) -> None:
        """Ends the program behind the agents."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()


def number(value: Any) -> float:
    """A number as JSON has it, whatever array it lies in.

    >>> number(3), number(True)
    (3.0, 1.0)
    """
    return float(value)


def row(obs: Any) -> list[float]:
    """An observation as a list of numbers: a number, a list, a tuple or an array of any shape.

    >>> row(3), row([1, 2]), row(((1, 2), (3, 4)))
    ([3.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    """
    if hasattr(obs, "ravel"):
        obs = obs.ravel().tolist()
    if isinstance(obs, (list, tuple)):
        return [v for part in obs for v in row(part)]
    return [float(obs)]


class _QLearner:
    """Tabular Q-learning over observations that are cut into bins where they are floating point."""

    def __init__(self, actions: int, bins: int, rate: float, discount: float, seed: int) -> None:
        import random

        self.actions, self.bins, self.rate, self.discount = actions, bins, rate, discount
        self.random = random.Random(seed)
        self.table: dict[tuple[int, ...], list[float]] = {}
        self.low: list[float] = []
        self.high: list[float] = []

    def state(self, obs: list[float], whole: bool) -> tuple[int, ...]:
        if whole:
            return tuple(int(v) for v in obs)
        return tuple(min(self.bins - 1, max(0, int(self.bins * (v - a) / (b - a)))) if b > a else 0 for v, a, b in zip(obs, self.low, self.high))

    def values(self, state: tuple[int, ...]) -> list[float]:
        return self.table.setdefault(state, [0.0] * self.actions)

    def choose(self, state: tuple[int, ...], epsilon: float) -> int:
        if self.random.random() < epsilon:
            return self.random.randrange(self.actions)
        q = self.values(state)
        most = max(q)
        return self.random.choice([a for a, v in enumerate(q) if v == most])

    def learn(self, state: tuple[int, ...], action: int, reward: float, after: tuple[int, ...], ended: bool) -> None:
        q = self.values(state)
        target = reward + (0.0 if ended else self.discount * max(self.values(after)))
        q[action] += self.rate * (target - q[action])


def _live(job: tuple[Any, ...]) -> list[tuple[list[float], int, float, bool]]:
    """One learner's life in one task: every transition, in order."""
    make_env, task, stream, episodes, limit, bins, rate, discount, seed = job
    env = make_env(task)
    actions = int(env.action_space.n)
    space = env.observation_space
    whole = not str(getattr(space, "dtype", "int")).startswith("float")
    learner = _QLearner(actions, bins, rate, discount, seed * 1_000_003 + task * 1009 + stream)
    if not whole:
        obs, _ = env.reset(seed=seed + task)
        seen = [row(obs)]
        for _ in range(2000):  # what a walk at random sees sets the bins
            obs, _, ended, cut, _ = env.step(learner.random.randrange(actions))
            seen.append(row(obs))
            if ended or cut:
                obs, _ = env.reset()
        learner.low = [min(v) for v in zip(*seen)]
        learner.high = [max(v) for v in zip(*seen)]
    steps: list[tuple[list[float], int, float, bool]] = []
    for episode in range(episodes):
        epsilon = max(0.0, 1 - episode / (0.8 * episodes))
        obs, _ = env.reset(seed=seed * 7919 + stream * episodes + episode)
        for t in range(limit):
            now = row(obs)
            state = learner.state(now, whole)
            action = learner.choose(state, epsilon)
            obs, reward, ended, cut, _ = env.step(action)
            learner.learn(state, action, float(reward), learner.state(row(obs), whole), bool(ended))
            over = bool(ended or cut or t == limit - 1)
            steps.append((now, action, float(reward), over))
            if over:
                break
    env.close()
    return steps


def record(
    make_env: Callable[[int], Any],
    tasks: int | Sequence[int],
    out: str | Path,
    *,
    episodes: int = 200,
    streams: int = 1,
    limit: int = 1000,
    bins: int = 8,
    rate: float = 0.5,
    discount: float = 0.9,
    seed: int = 0,
    processes: int = 1,
    title: str | None = None,
    train_ratio: float = 0.9,
    force: bool = False,
) -> dict[str, Any]:
    """Lets a learner live through every task of a Gymnasium environment, and keeps all of its history in a file that
    `haul train --config ad_any --history FILE` reads. It returns what `haul data show` says of the file.

    make_env(task) makes the environment of a task; tasks are how many, or their numbers. Its actions are discrete; observations
    are discrete, multi-discrete, or boxes of whole or floating-point numbers. The learner is tabular Q-learning whose exploration
    falls linearly; floating point is cut into bins for it (what is recorded is not). streams learners live through each task,
    processes of them at a time (make_env must be a function of a module then).
    """
    numbers = list(range(tasks)) if isinstance(tasks, int) else list(tasks)
    jobs = [(make_env, t, s, episodes, limit, bins, rate, discount, seed) for t in numbers for s in range(streams)]
    if not jobs:
        raise HaulError("no tasks: an agent learns how learning goes from many")
    if processes > 1:
        import multiprocessing

        with multiprocessing.Pool(processes) as pool:
            lives = pool.map(_live, jobs)
    else:
        lives = [_live(j) for j in jobs]
    if not any(lives):
        raise HaulError(f"nothing was recorded in {episodes} episodes of at most {limit} steps: both must be at least 1")
    probe = make_env(numbers[0])
    actions = int(probe.action_space.n)
    whole = not str(getattr(probe.observation_space, "dtype", "int")).startswith("float")
    probe.close()
    steps = [s for life in lives for s in life]
    small = whole and all(0 <= v < 256 for s in steps for v in s[0])
    arrays = {
        "observations": _Array("|u1" if small else "<f4", [int(v) if small else v for s in steps for v in s[0]], (len(steps), len(steps[0][0]))),
        "actions": _Array("<i8", [s[1] for s in steps]),
        "rewards": _Array("<f8", [s[2] for s in steps]),
        "dones": _Array("|u1", [int(s[3]) for s in steps]),
        "tasks": _Array("<i8", [j[1] for j, life in zip(jobs, lives) for _ in life]),
        "streams": _Array("<i8", [j[2] for j, life in zip(jobs, lives) for _ in life]),
    }
    return load_histories(arrays, out, title=title or Path(out).stem, actions=actions, train_ratio=train_ratio, force=force)


class _Array:
    """Numbers as an .npy file has them, for whoever has no NumPy.

    >>> _Array("<i8", [1, 2]).bytes()[-16:]
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """

    def __init__(self, kind: str, numbers: list[Any], shape: tuple[int, ...] | None = None) -> None:
        self.kind, self.numbers, self.shape = kind, numbers, shape or (len(numbers),)

    def bytes(self) -> bytes:
        data = array.array({"|u1": "B", "<i8": "q", "<f4": "f", "<f8": "d"}[self.kind], self.numbers)
        if sys.byteorder == "big":
            data.byteswap()
        head = f"{{'descr': '{self.kind}', 'fortran_order': False, 'shape': {self.shape}, }}".encode()
        head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data.tobytes()


def load_histories(arrays: dict[str, Any], out: str | Path, *, title: str = "", actions: int = 0, train_ratio: float = 0.9, force: bool = False) -> dict[str, Any]:
    """Writes arrays of histories, as `haul data import --help` names them, to a file, and returns what it holds."""
    with tempfile.TemporaryDirectory() as folder:
        for name, values in arrays.items():
            path = Path(folder) / f"{name}.npy"
            if isinstance(values, _Array):
                path.write_bytes(values.bytes())
            else:
                import numpy as np

                np.save(path, np.asarray(values))
        arguments = ["data", "import", folder, "--out", str(out), "--actions", str(actions), "--train-ratio", str(train_ratio), "--json"]
        if title:
            arguments += ["--title", title]
        if force:
            arguments.append("--force")
        return call(arguments, folder, "the arrays")


# What an array of a plain file may be called, as `haul data import` has it.
_NAMES = {
    "observations": ("observations", "states", "obs"),
    "actions": ("actions",),
    "rewards": ("rewards",),
    "dones": ("dones", "terminals", "terminations"),
    "truncations": ("truncations", "timeouts"),
    "tasks": ("tasks", "task"),
    "streams": ("streams", "stream"),
}


def _column(f: Any, path: Any, kind: str, names: dict[str, str], needed: bool) -> Any:
    """An array of a plain file under one of its names, or under the one that the caller says; None where there is none.

    >>> _column({"obs": [1, 2]}, "a.h5", "observations", {}, True), _column({"obs": [1]}, "a.h5", "streams", {}, False)
    ([1, 2], None)
    >>> _column({"obs": [1]}, "a.h5", "dones", {}, True)
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: a.h5: no array dones or terminals or terminations; it holds obs
    """
    of = (names[kind],) if kind in names else _NAMES[kind]
    for name in of:
        if name in f:
            return f[name]
    if needed or kind in names:
        raise HaulError(f"{path}: no array {' or '.join(of)}; it holds {', '.join(list(f)[:8])}")
    return None


def from_hdf5(path: str | Path, out: str | Path, *, force: bool = False, **names: str) -> dict[str, Any]:
    """Turns an HDF5 file into histories. Needs h5py.

    Three layouts are read: Minari's (`episode_0/observations`, ..., one stream of one task each); XLand-100B's (a group per
    task with `states` [streams, steps, ...], `actions`, `rewards`, `dones`); and plain arrays under the names of
    `haul data import`. names say where an array lies under another name (`observations="obs"`). Observations of more than 64
    numbers are refused by the program.
    """
    import h5py  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import numpy as np

    for name in names:
        if name not in _NAMES:
            raise ValueError(f"{name} is no array of histories: there are {', '.join(_NAMES)}")
    parts: dict[str, list[Any]] = {k: [] for k in ("observations", "actions", "rewards", "dones", "tasks", "streams")}

    def add(task: int, stream: int, obs: Any, actions: Any, rewards: Any, dones: Any) -> None:
        n = len(actions)
        parts["observations"].append(np.asarray(obs)[:n].reshape(n, -1))
        parts["actions"].append(np.asarray(actions).reshape(n).astype(np.int64))
        parts["rewards"].append(np.asarray(rewards).reshape(n).astype(np.float64))
        parts["dones"].append((np.asarray(dones).reshape(n) != 0).astype(np.uint8))
        parts["tasks"].append(np.full(n, task, np.int64))
        parts["streams"].append(np.full(n, stream, np.int64))

    with h5py.File(path, "r") as f:
        episodes = sorted((k for k in f if k.startswith("episode_")), key=lambda k: int(k.split("_")[1]))
        groups = [k for k in f if isinstance(f[k], h5py.Group) and "actions" in f[k] and ("states" in f[k] or "observations" in f[k])]
        if episodes:
            for k in episodes:
                e = f[k]
                if len(e["actions"]) == 0:
                    continue  # an episode that was begun and never stepped
                ends = np.asarray(e["terminations"]) | np.asarray(e["truncations"])
                ends[-1] = True
                add(int(e.attrs.get("task", 0)), 0, e["observations"], e["actions"], e["rewards"], ends)
        elif groups:
            for task, k in enumerate(groups):
                g = f[k]
                states = g["states"] if "states" in g else g["observations"]
                for s in range(len(g["actions"])):
                    add(task, s, states[s], g["actions"][s], g["rewards"][s], g["dones"][s])
        elif "actions" in f or names:
            obs, actions, rewards, ends = (np.asarray(_column(f, path, k, names, True)) for k in ("observations", "actions", "rewards", "dones"))
            cuts, tasks, streams = (_column(f, path, k, names, False) for k in ("truncations", "tasks", "streams"))
            if cuts is not None:
                ends = (ends != 0) | (np.asarray(cuts) != 0)
            tasks, streams = (np.zeros(len(actions), np.int64) if v is None else np.asarray(v) for v in (tasks, streams))
            for k, values in {"actions": actions, "rewards": rewards, "dones": ends, "tasks": tasks, "streams": streams}.items():
                if len(values) != len(obs):
                    raise HaulError(f"{path}: {k} has {len(values)} rows, observations has {len(obs)}: want one for each transition")
            for t, s in dict.fromkeys(zip(tasks.tolist(), streams.tolist())):
                at = np.nonzero((tasks == t) & (streams == s))[0]
                add(int(t), int(s), obs[at], actions[at], rewards[at], ends[at])
        else:
            raise HaulError(f"{path}: neither episodes of Minari's nor groups with states and actions nor plain arrays; it holds {', '.join(list(f)[:8])}")
    arrays = {k: np.concatenate(v) for k, v in parts.items()}
    if arrays["observations"].dtype.kind not in "uif":
        raise HaulError(f"{path}: observations of type {arrays['observations'].dtype}")
    return load_histories(arrays, out, title=Path(path).stem, force=force)
