"""Histories that somebody else saved: arrays and HDF5 files, as `haul data import` takes them.

What a reader could break: no number is changed on the way (an action of 0.4 is refused by the program, not cut to 0), and an HDF5 file
may be larger than memory: its streams are read one at a time into arrays beside the file that is written.
"""

from __future__ import annotations

import array
import contextlib
import os
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from ._binary import HaulError, call, remark

# What an array may be called, as `haul data import` has it.
NAMES = {
    "observations": ("observations", "states", "obs", "observation"),
    "actions": ("actions", "action"),
    "rewards": ("rewards", "reward"),
    "dones": ("dones", "terminals", "terminations", "done", "terminated"),
    "truncations": ("truncations", "timeouts", "truncated"),
    "tasks": ("tasks", "task"),
    "streams": ("streams", "stream"),
    "best_actions": ("best_actions", "expert_actions"),
}


class Numbers:
    """Numbers as an .npy file has them, for whoever has no NumPy: parts that follow one another.

    >>> Numbers("<i8", [array.array("q", [1]), array.array("q", [2])]).bytes()[-16:]
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """

    def __init__(self, kind: str, parts: list["array.array[Any]"], width: int | None = None) -> None:
        self.kind, self.parts, self.width = kind, parts, width

    def bytes(self) -> bytes:
        numbers = sum(map(len, self.parts))
        shape = (numbers,) if self.width is None else (numbers // self.width, self.width)
        head = f"{{'descr': '{self.kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"".join(map(_little, self.parts))


def _little(part: "array.array[Any]") -> bytes:
    if sys.byteorder == "big":
        part = part[:]
        part.byteswap()
    return part.tobytes()


def load_histories(
    arrays: dict[str, Any], out: str | Path, *, title: str = "", actions: int = 0, sizes: Sequence[int] | None = None, train_ratio: float = 0.9, force: bool = False
) -> dict[str, Any]:
    """Writes arrays of histories, as `haul data import --help` names them, to a file, and returns what it holds.

    Lists are taken, and arrays of any layout. tasks and streams may be names, which are numbered in alphabetical order; whole numbers
    outside of 0 to 255 in observations are measured, as floating point is. sizes are how many values each field of whole numbers
    takes, actions how many there are, where that is more than was seen.
    """
    with _beside(out) as folder:
        for name, values in arrays.items():
            path = Path(folder) / f"{name}.npy"
            if values is None:
                continue
            if path.parent != Path(folder):
                remark(f"not read: {name}")
            elif isinstance(values, Numbers):
                path.write_bytes(values.bytes())
            else:
                import numpy as np

                np.save(path, _plain(name, values))
        return _import(folder, "the arrays", out, title, actions, sizes, train_ratio, force)


@contextlib.contextmanager
def _beside(out: str | Path) -> Iterator[str]:
    """A folder on the disk that the file goes to: what is read may be large. It is locked while it is in use, which ends with the
    process however that ends: those that killed processes have left are removed."""
    home = Path(out).resolve().parent
    home.mkdir(parents=True, exist_ok=True)
    for left in home.glob(".haul-*"):
        held = _hold(left)
        if held is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(held)
    while True:
        folder = tempfile.TemporaryDirectory(dir=home, prefix=".haul-")
        held = _hold(folder.name)
        if Path(folder.name).is_dir():
            break
        folder.cleanup()  # somebody took it for one that was left, before it was locked
    try:
        with folder:
            yield folder.name
    finally:
        if held is not None:
            os.close(held)


def _hold(folder: str | Path) -> int | None:
    """Locks a folder; None where somebody else holds it, and where the system has no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return held
    except OSError:
        os.close(held)
        return None


def _import(folder: str, name: str, out: str | Path, title: str, actions: int, sizes: Sequence[int] | None, train_ratio: float, force: bool) -> dict[str, Any]:
    arguments = ["data", "import", folder, "--out", str(out), "--actions", str(actions), "--train-ratio", str(train_ratio), "--json"]
    if title:
        arguments += ["--title", title]
    if sizes is not None:
        arguments += ["--sizes", ",".join(str(int(v)) for v in sizes)]
    if force:
        arguments.append("--force")
    return call(arguments, folder, name)


def _plain(name: str, values: Any) -> Any:
    """An array that the program reads, with the same numbers."""
    import numpy as np

    try:
        a = np.asarray(values)
    except ValueError as e:
        raise HaulError(f"{name} is no array: {str(e).splitlines()[0]}") from None
    if name in NAMES["tasks"] + NAMES["streams"]:
        return _numbered(name, a)
    if a.dtype == np.longdouble:
        a = a.astype(np.float64)
    if name in NAMES["observations"] and a.dtype.kind in "iu" and a.size and (a.min() < 0 or a.max() > 255):
        a = a.astype(np.float64)
    return np.ascontiguousarray(a)


def _numbered(name: str, a: Any) -> Any:
    """Whole numbers as they are, names by their place in the alphabet."""
    import numpy as np

    if a.dtype.kind in "USO":
        if a.dtype.kind == "O" and not all(isinstance(v, (str, bytes)) for v in a.ravel()):
            raise HaulError(f"{name} holds {type(a.ravel()[0]).__name__} objects: want numbers or names")
        a = np.unique(a.astype(str), return_inverse=True)[1]
    if a.dtype.kind == "f" and not np.array_equal(a, np.trunc(a)):
        raise HaulError(f"{name} holds {a[a != np.trunc(a)][0]}: want whole numbers or names")
    return np.ascontiguousarray(a)


class _Piece(NamedTuple):
    """A stretch of a stream: its rows, and what reads observations, actions, rewards, ends and best actions (None: there are none)."""

    task: Any
    stream: int
    rows: int
    kinds: list[Any]  # dtypes of the observations
    where: str
    labels: bool  # there are best actions
    read: Callable[[], tuple[Any, Any, Any, Any, Any]]


def _get(group: Any, name: str, where: str) -> Any:
    """A part of a group, which must be there."""
    if name not in group:
        raise HaulError(f"{where} has no {name}: it holds {', '.join(list(group)[:8]) or 'nothing'}")
    return group[name]


def _leaves(data: Any) -> list[Any]:
    """The arrays of an observation, in the order of an agent's: those of a dict by name, those of a tuple (_index_0, ...) by place."""
    if hasattr(data, "shape"):
        return [data]
    return [leaf for k in sorted(data, key=_place) for leaf in _leaves(data[k])]


def _place(name: str) -> tuple[Any, ...]:
    """Names in alphabetical order, the numbers at their ends by value.

    >>> sorted(["_index_10", "_index_2", "b", "a"], key=_place)
    ['_index_2', '_index_10', 'a', 'b']
    """
    m = re.fullmatch(r"(.*?)(\d+)(.*?)", name)
    return (m[1], int(m[2]), m[3]) if m else (name, -1, "")


def _piece(task: Any, stream: int, obs: Any, actions: Any, rewards: Any, ends: Callable[[], Any], where: str, at: Any = (), best: Any = None) -> _Piece:
    """A stretch whose arrays are read later. at is its place among the streams that lie in the same arrays; best are best actions."""
    leaves = _leaves(obs)
    n = actions.shape[len(at)] if len(actions.shape) > len(at) else 0

    def read() -> tuple[Any, Any, Any, Any, Any]:
        import numpy as np

        seen = [np.asarray(x[(*at, slice(0, n))]) for x in leaves]
        done = np.asarray(ends())
        acts, paid = np.asarray(actions[at] if at else actions[...]), np.asarray(rewards[at] if at else rewards[...])
        for name, a in (("rewards", paid), ("ends of episodes", done), *(("observations", x) for x in seen)):
            if len(a) != n:
                raise HaulError(f"{where}: {name} has {len(a)} rows, actions has {n}: want one for each transition")
        held = None if best is None else np.asarray(best[at] if at else best[...])
        for name, a in (("actions", acts), ("rewards", paid), *((("best actions", held),) if held is not None else ())):
            if a.size != n:
                raise HaulError(f"{where}: {name} has the shape {a.shape}: want one number for each transition" + ", since agents choose among up to 64 actions" * (name == "actions"))
        return np.concatenate([x.reshape(n, -1) for x in seen], axis=1), acts.reshape(n), paid.reshape(n), done.reshape(n) != 0, None if held is None else held.reshape(n)

    return _Piece(task, stream, n, [x.dtype for x in leaves], where, best is not None, read)


def _minari(f: Any, path: Any) -> Iterator[_Piece]:
    import numpy as np

    for k in sorted((k for k in f if k.startswith("episode_")), key=_place):
        e, where = f[k], f"{path}: {k}"
        parts = [_get(e, name, where) for name in ("observations", "actions", "rewards", "terminations", "truncations")]

        def ends(parts: list[Any] = parts) -> Any:
            done = (np.asarray(parts[3]) != 0) | (np.asarray(parts[4]) != 0)
            done[-1:] = True
            return done

        if not hasattr(parts[1], "shape"):
            raise HaulError(f"{where}: actions in several arrays: want one number for each transition, since agents choose among up to 64 actions")
        yield _piece(int(e.attrs.get("task", 0)), 0, *parts[:3], ends, where)


def _xland(f: Any, path: Any, groups: list[str]) -> Iterator[_Piece]:
    for task, k in enumerate(sorted(groups, key=_place)):
        g, where = f[k], f"{path}: {k}"
        obs = g["states"] if "states" in g else g["observations"]
        actions, rewards, dones = (_get(g, name, where) for name in ("actions", "rewards", "dones"))
        if len(actions.shape) < 2:
            raise HaulError(f"{where}: actions has the shape {actions.shape}: want streams, and steps of each")
        best = next((g[name] for name in NAMES["best_actions"] if name in g), None)
        for name, a in (("rewards", rewards), ("dones", dones), *(("observations", x) for x in _leaves(obs)), *((("best actions", best),) if best is not None else ())):
            if a.shape[:2] != actions.shape[:2]:
                raise HaulError(f"{where}: {name} has the shape {a.shape}, actions {actions.shape}: want as many streams and steps")
        for s in range(len(actions)):
            yield _piece(task, s, obs, actions, rewards, lambda d=dones, s=s: d[s], f"{where}, stream {s}", (s,), best)


VINTIX = ("proprio_observation", "action", "reward", "step_num")


def _vintix(f: Any, path: Any) -> Iterator[_Piece]:
    """One trajectory in groups of steps that follow one another; an episode ends where step_num does not grow."""
    import numpy as np

    names = sorted(f, key=_place)
    for i, k in enumerate(names):
        obs, actions, rewards, clock = (_get(f[k], name, f"{path}: {k}") for name in VINTIX)

        def ends(clock: Any = clock, i: int = i) -> Any:
            then = f[names[i + 1]]["step_num"][:1] if i + 1 < len(names) else [-1]
            now = np.asarray(clock)
            return np.append(now[1:], then) <= now

        yield _piece(0, 0, obs, actions, rewards, ends, f"{path}: {k}")


def _column(f: Any, path: Any, kind: str, names: dict[str, str], needed: bool) -> Any:
    """An array of a plain file under one of its names, or under the one that the caller says; None where there is none.

    >>> _column({"obs": [1, 2]}, "a.h5", "observations", {}, True), _column({"obs": [1]}, "a.h5", "streams", {}, False)
    ([1, 2], None)
    >>> _column({"obs": [1]}, "a.h5", "actions", {}, True)
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: a.h5: no array actions or action; it holds obs
    """
    of = (names[kind],) if kind in names else NAMES[kind]
    for name in of:
        if name in f:
            return f[name]
    if needed or kind in names:
        raise HaulError(f"{path}: no array {' or '.join(of)}; it holds {', '.join(list(f)[:8])}")
    return None


def _flat(f: Any, path: Any, names: dict[str, str]) -> Iterator[_Piece]:
    """Plain arrays, a row for each transition, whose streams may take turns. They are read at once."""
    import numpy as np

    cuts = _column(f, path, "truncations", names, False)
    columns = {k: _column(f, path, k, names, k != "dones" or cuts is None) for k in ("observations", "actions", "rewards", "dones")}
    ends = np.zeros(len(columns["actions"]), bool) if columns["dones"] is None else np.asarray(columns["dones"]) != 0
    if cuts is not None:
        if len(cuts) != len(ends):
            raise HaulError(f"{path}: truncations has {len(cuts)} rows, dones has {len(ends)}: want one for each transition")
        ends = ends | (np.asarray(cuts) != 0)
    ids = {}
    for k in ("tasks", "streams"):
        given = _column(f, path, k, names, False)
        ids[k] = np.zeros(len(ends), np.int64) if given is None else _numbered(k, np.asarray(given)).astype(np.int64)
    rows = _leaves(columns["observations"])[0].shape[0]
    held = _column(f, path, "best_actions", names, False)
    for k, values in {"actions": columns["actions"], "rewards": columns["rewards"], "dones": ends, **ids, **({} if held is None else {"best_actions": held})}.items():
        if len(values) != rows:
            raise HaulError(f"{path}: {k} has {len(values)} rows, observations has {rows}: want one for each transition")
    read = {k: np.asarray(columns[k]) for k in ("actions", "rewards")}
    best = None if held is None else np.asarray(held)
    seen = [np.asarray(x) for x in _leaves(columns["observations"])]
    both = np.stack([ids["tasks"], ids["streams"]], axis=1)
    _, which, count = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    order, begins = np.argsort(which.ravel(), kind="stable"), np.append(0, np.cumsum(count))
    for i in range(len(count)):
        at = order[begins[i] : begins[i + 1]]
        task, stream = both[at[0]]
        obs = {str(j): x[at] for j, x in enumerate(seen)}
        yield _piece(int(task), int(stream), obs, read["actions"][at], read["rewards"][at], lambda at=at: ends[at], str(path), best=None if best is None else best[at])


def _pieces(f: Any, path: Any, names: dict[str, str]) -> list[_Piece]:
    """The streams of an open file, by its layout."""
    groups = [k for k in f if hasattr(f[k], "keys")]
    xland = [k for k in groups if "actions" in f[k] and ("states" in f[k] or "observations" in f[k])]
    if any(k.startswith("episode_") for k in groups):
        return list(_minari(f, path))
    if xland:
        return list(_xland(f, path, xland))
    if groups and all(name in f[groups[0]] for name in VINTIX):
        return list(_vintix(f, path))
    if names or any(n in f and hasattr(f[n], "shape") for n in NAMES["actions"]):
        return list(_flat(f, path, names))
    raise HaulError(f"{path}: neither episodes of Minari's nor groups with states and actions nor plain arrays; it holds {', '.join(list(f)[:8]) or 'nothing'}")


def from_hdf5(path: str | Path | Sequence[str | Path], out: str | Path, *, force: bool = False, **names: str) -> dict[str, Any]:
    """Turns an HDF5 file, several, or all .h5 and .hdf5 files of a folder, into histories. Needs h5py.

    Four layouts are read: Minari's (`episode_0/observations`, ..., one stream for each value of an episode's attribute `task`);
    XLand-100B's (a group per task with `states` [streams, steps, ...], `actions`, `rewards`, `dones`, `expert_actions` if there); Vintix's (a file per trajectory,
    in groups with `proprio_observation`, `action`, `reward`, `step_num`; actions must be whole numbers); and plain arrays under the
    names of `haul data import`. names say where an array lies under another name (`observations="obs"`). Observations in dicts and
    tuples are taken as `haul.Agent` takes them. Of several files each has tasks of its own. Actions of several numbers, and
    observations of more than 64, are refused. But for plain arrays, a file may be larger than memory.
    """
    for name in names:
        if name not in NAMES:
            raise ValueError(f"{name} is no array of histories: there are {', '.join(NAMES)}")
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(p) for p in path]
    if len(paths) == 1 and paths[0].is_dir():
        paths = sorted((p for p in paths[0].iterdir() if p.suffix in (".h5", ".hdf5")), key=lambda p: _place(p.name))
        if not paths:
            raise HaulError(f"{path} holds no .h5 or .hdf5 files")
    import h5py  # type: ignore[import-untyped,import-not-found,unused-ignore]
    import numpy as np

    with contextlib.ExitStack() as stack:
        pieces: list[_Piece] = []
        for i, p in enumerate(paths):
            try:
                f = stack.enter_context(h5py.File(p, "r"))
            except FileNotFoundError:
                raise HaulError(f"{p}: no such file") from None
            except OSError as e:
                raise HaulError(f"{p} is no HDF5 file, or is damaged: {e}") from None
            pieces += [x._replace(task=(i, x.task)) for x in _pieces(f, p, names)]
        pieces = [x for x in pieces if x.rows > 0]  # an episode that was begun and never stepped
        name = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        if not pieces:
            raise HaulError(f"{name}: it holds no transitions")
        tasks = list(dict.fromkeys(x.task for x in pieces))
        number = {t: t[1] if len(paths) == 1 else k for k, t in enumerate(tasks)}
        pieces.sort(key=lambda x: (number[x.task], x.stream))
        kind = np.result_type(*{k for x in pieces for k in x.kinds}) if all(k.kind in "buif" for x in pieces for k in x.kinds) else None
        if kind is None:
            bad = next((x.where, k) for x in pieces for k in x.kinds if k.kind not in "buif")
            raise HaulError(f"{bad[0]}: observations of type {bad[1]}: want numbers")
        if kind.kind in "iu" and kind != np.uint8:  # measured where they do not fit a byte
            small = all(v.size == 0 or v.min() >= 0 and v.max() <= 255 for v in (x.read()[0] for x in pieces))
            kind = np.dtype(np.uint8 if small else np.float64)
        kind = np.dtype(np.uint8 if kind.kind == "b" else np.float64 if kind.kind == "f" and kind.itemsize > 8 else kind)
        rows = sum(x.rows for x in pieces)
        with _beside(out) as folder:
            width = pieces[0].read()[0].shape[1]

            def column(name: str, kind: Any, *more: int) -> Any:
                return np.lib.format.open_memmap(Path(folder) / f"{name}.npy", mode="w+", dtype=np.dtype(kind).newbyteorder("<"), shape=(rows, *more))

            arrays = {"observations": column("observations", kind, width), "actions": column("actions", np.float64), "rewards": column("rewards", np.float64),
                      "dones": column("dones", np.uint8), "tasks": column("tasks", np.int64), "streams": column("streams", np.int64)}
            labels = [x.labels for x in pieces]
            if all(labels):
                arrays["best_actions"] = column("best_actions", np.float64)
            elif any(labels):
                remark(f"best actions are not read: {pieces[labels.index(False)].where} has none")
            at = 0
            for x in pieces:
                obs, actions, rewards, ends, best = x.read()
                if obs.shape[1] != width:
                    raise HaulError(f"{x.where}: observations of {obs.shape[1]} numbers, elsewhere of {width}: want as many everywhere")
                for k, v in zip(arrays, (obs, actions, rewards, ends, number[x.task], x.stream, best)):
                    arrays[k][at : at + x.rows] = v
                at += x.rows
            for a in arrays.values():
                a.flush()
            arrays.clear()
            return _import(folder, name, out, paths[0].stem if len(paths) == 1 else Path(out).stem, 0, None, 0.9, force)
