"""What a caller hands over, as plain numbers and text.

What a reader could break: whatever is not of its kind is a ValueError that names it, before the program is asked. Nothing here
imports NumPy or pandas: arrays, tensors, frames and their numbers are known by their methods.
"""

from __future__ import annotations

import json
import math
import os
from operator import index
from typing import Any, Iterable, Iterator, Mapping, Protocol, Sequence, SupportsFloat, SupportsIndex, Tuple, Union

Point = Union[Tuple[SupportsFloat, SupportsFloat], Sequence[SupportsFloat]]


class Table(Protocol):
    """A DataFrame, of which only its numbers are of interest."""

    def to_numpy(self) -> Any: ...


def number(value: Any, what: str, endless: bool = False) -> float:
    """A number that is finite, or infinite where that means without end, whatever array's it is.

    >>> number(3, "x"), number("2.5", "x"), number(float("inf"), "x", endless=True)
    (3, 2.5, inf)
    >>> number(True, "x")
    1
    >>> number(None, "tw_early")
    Traceback (most recent call last):
        ...
    ValueError: tw_early is None: a number is needed
    >>> number(float("nan"), "tw_early")
    Traceback (most recent call last):
        ...
    ValueError: tw_early is nan: a finite number is needed
    """
    if isinstance(value, int):
        return int(value)  # True is 1
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {short(value)}: a number is needed") from None
    if math.isnan(x) or (math.isinf(x) and not (endless and x > 0)):
        raise ValueError(f"{what} is {x}: a finite number is needed")
    return x


def whole(value: SupportsIndex | float, what: str) -> int:
    """A whole number, also one that came as 4.0, as arrays have it.

    >>> whole(4.0, "the capacity")
    4
    >>> whole(None, "the capacity")
    Traceback (most recent call last):
        ...
    ValueError: the capacity is None: a whole number is needed
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    try:
        x = float(value)  # type: ignore[arg-type,unused-ignore]
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {short(value)}: a whole number is needed") from None
    if not x.is_integer():
        raise ValueError(f"{what} is {value}: a whole number is needed")
    return int(x)


def short(value: Any) -> str:
    """What a message says of a value of the wrong kind."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}... ({type(value).__name__})"


def listed(values: Any, what: str) -> Iterator[Any]:
    """The rows of a frame, which itself iterates over its columns, or the items of anything that has an order.

    >>> list(listed((i for i in range(3)), "demands"))
    [0, 1, 2]
    >>> listed({(0, 0), (1, 1)}, "coords")
    Traceback (most recent call last):
        ...
    ValueError: coords is a set: a list, an array or a DataFrame is needed, whose first is the depot
    """
    rows = values.to_numpy().tolist() if hasattr(values, "to_numpy") else values
    if isinstance(rows, (str, bytes, Mapping, set, frozenset)) or not (hasattr(rows, "__iter__") or hasattr(rows, "__getitem__")):
        raise ValueError(f"{what} is a {type(values).__name__}: a list, an array or a DataFrame is needed, whose first is the depot")
    try:
        return iter(rows)
    except TypeError:  # an array without dimensions
        raise ValueError(f"{what} is {short(values)}: one per point is needed") from None


def pair(point: Any, i: int) -> tuple[float, float]:
    """x and y, and nothing beside them that would be passed over.

    >>> pair("34", 1)
    Traceback (most recent call last):
        ...
    ValueError: point 1 is '34': two numbers are needed, x and y
    """
    try:
        xy = None if isinstance(point, (str, bytes, Mapping, set, frozenset)) else list(point)
    except TypeError:
        xy = None
    if xy is None:
        raise ValueError(f"point {i} is {short(point)}: two numbers are needed, x and y")
    if len(xy) != 2:
        raise ValueError(f"point {i} has {len(xy)} numbers: two are needed, x and y")
    try:
        return float(xy[0]), float(xy[1])
    except (TypeError, ValueError):
        raise ValueError(f"point {i} is {short(point)}: two numbers are needed, x and y") from None


def named(path: Any) -> str:
    """A file's name as the program takes it: one that begins with - is no flag.

    >>> named("-x.csv"), named("-"), named("a.csv")
    ('./-x.csv', '-', 'a.csv')
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise ValueError(f"{short(path)} is a {type(path).__name__}: the name of a file is needed") from None
    return f"./{text}" if text.startswith("-") and text != "-" else text


def plain(value: Any) -> Any:
    """An array, a column or one of their numbers as JSON has it."""
    for method in ("tolist", "item"):
        if hasattr(value, method):
            return getattr(value, method)()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable):
        return list(value)
    raise ValueError(f"{short(value)} is a {type(value).__name__}, which a problem cannot hold")


def encoded(data: Any) -> str:
    """JSON of a problem that may hold arrays.

    >>> encoded({"service": (0, 1)})
    '{"service": [0, 1]}'
    >>> encoded({"windows": [[], [float("nan"), 3]]})
    Traceback (most recent call last):
        ...
    ValueError: windows[1][0] is nan: a finite number is needed
    """
    try:
        return json.dumps(data, default=plain, allow_nan=False)
    except ValueError:
        for where, x in endless("", json.loads(json.dumps(data, default=plain))):
            raise ValueError(f"{where} is {x}: a finite number is needed") from None
        raise


def endless(where: str, data: Any) -> Iterator[tuple[str, float]]:
    """Every number that is not finite, and its place."""
    if isinstance(data, float) and not math.isfinite(data):
        yield where, data
    elif isinstance(data, dict):
        for key, part in data.items():
            yield from endless(f"{where}.{key}" if where else str(key), part)
    elif isinstance(data, list):
        for i, part in enumerate(data):
            yield from endless(f"{where}[{i}]", part)
