"""In-context agents in any Python loop.

What a reader could break: agents keep their contexts in the program (`haul act`), which this module speaks to line by line. An
observation is a row of numbers in one order, here and where histories of it are recorded (_record.py, _histories.py).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Iterator, Sequence

from ._binary import HaulError, remark
from ._lines import Program


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
        self._program = Program(arguments)
        first = self._program.first
        self.agents: int = first["agents"]
        self.fields: list[str] = first["fields"]
        self.actions: int = first["actions"]
        self.temperature: float = first["temperature"]
        self.search_temperature: float = first["search_temperature"]
        self._forget = [False] * self.agents

    def act(self, obs: Any, reward: Any = None, done: Any = None) -> Any:
        """What every agent does. reward is of its last action; done is of no use to a context and may be given all the same."""
        if self._program.closed:
            raise HaulError("these agents were closed")
        single = self.agents == 1
        seen = [obs] if single else list(each(obs, self.agents))
        told: dict[str, Any] = {"obs": [finite(row(o), f"the observation of agent {i}") for i, o in enumerate(seen)], "forget": self._forget}
        if reward is not None:
            if not single and not hasattr(reward, "__len__"):
                raise HaulError(f"one reward for {self.agents} agents: want a list of as many")
            paid = [reward] if single else list(reward)
            told["reward"] = [None if r is None else finite([number(r)], f"the reward of agent {i}")[0] for i, r in enumerate(paid)]
        out = self._program.ask(told)
        if "note" in out:
            remark(out["note"])
        self._forget = [False] * self.agents
        actions: list[int] = out["action"]
        return actions[0] if single else actions

    def forget(self, which: Sequence[int] | Sequence[bool] | bool | None = None) -> None:
        """Lets agents begin anew with their next observation: all of them, those of these places, or those for which a list of as many
        truth values as there are agents has True. With agents=1 a truth value needs no list around it."""
        for i in range(self.agents) if which is None else chosen(which, self.agents):
            self._forget[i] = True

    def close(self) -> None:
        """Ends the program behind the agents."""
        self._program.close()

    def __enter__(self) -> "Agent":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def number(value: Any) -> float:
    """A number as JSON has it, whatever array it lies in.

    >>> number(3), number(True)
    (3.0, 1.0)
    >>> number("x")
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: 'x' is no number
    """
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError):
        raise HaulError(f"{repr(value)[:60]} is no number") from None


def row(obs: Any) -> list[float]:
    """An observation as a list of numbers: a number, a list, a tuple, an array of any shape, or a dict of such, whose keys are taken in
    alphabetical order, as Gymnasium's Dict has them.

    >>> row(3), row([1, 2]), row(((1, 2), (3, 4))), row({"b": 1, "a": (2, 3)})
    ([3.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 1.0])
    >>> row("north")
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: 'north' is no number
    """
    if hasattr(obs, "ravel"):
        obs = obs.ravel().tolist()
    if isinstance(obs, dict):
        obs = [obs[k] for k in sorted(obs, key=str)]
    if isinstance(obs, (list, tuple)):
        return [v for part in obs for v in row(part)]
    return [number(obs)]


def finite(values: list[float], what: str) -> list[float]:
    """The values, none of which is infinite or NaN.

    >>> finite([1.0, float("nan")], "the observation of agent 0")
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: the observation of agent 0 has nan in field 1
    """
    for i, v in enumerate(values):
        if not math.isfinite(v):
            raise HaulError(f"{what} has {v} in field {i}" if len(values) > 1 else f"{what} is {v}")
    return values


def each(obs: Any, count: int) -> Iterator[Any]:
    """The observations of many agents, one by one: a list or an array of them, or a dict or a tuple of arrays, as vectorised
    environments give them.

    >>> list(each([5, 6], 2)), list(each({"a": [1, 2], "b": [3, 4]}, 2)), list(each(([1, 2], [3, 4], [5, 6]), 2))
    ([5, 6], [{'a': 1, 'b': 3}, {'a': 2, 'b': 4}], [(1, 3, 5), (2, 4, 6)])
    """
    if isinstance(obs, dict):
        parts = {k: list(each(v, count)) for k, v in obs.items()}
        return ({k: v[i] for k, v in parts.items()} for i in range(min(map(len, parts.values()), default=0)))
    if isinstance(obs, tuple) and len(obs) != count and all(hasattr(v, "__len__") and len(v) == count for v in obs):
        return zip(*(each(v, count) for v in obs))
    if not hasattr(obs, "__len__"):
        raise HaulError(f"one observation for {count} agents: want a list of as many")
    return iter(obs)


def chosen(which: Any, count: int) -> list[int]:
    """Places of those who are meant, by their places or by a truth value for each.

    >>> chosen([2, 0], 3), chosen([True, False, True], 3), chosen([], 3)
    ([2, 0], [0, 2], [])
    >>> from types import SimpleNamespace as Scalar  # as NumPy's are
    >>> chosen(True, 1), chosen(False, 1), chosen([Scalar(item=lambda: False), Scalar(item=lambda: True)], 2)
    ([0], [], [1])
    >>> for which in ([3], 1, ["a"]):
    ...     try:
    ...         chosen(which, 3)
    ...     except HaulError as e:
    ...         print(e)
    agent 3 is none of 3: places count from 0
    1 is neither a list of places nor one of truth values
    'a' is no place of an agent
    """
    given = which.tolist() if hasattr(which, "tolist") else which
    if isinstance(given, bool) and count == 1:
        given = [given]
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise HaulError(f"{repr(which)[:60]} is neither a list of places nor one of truth values")
    given = [v.item() if hasattr(v, "item") else v for v in given]
    if any(isinstance(v, bool) for v in given):
        if len(given) != count or not all(isinstance(v, bool) for v in given):
            raise HaulError(f"{len(given)} truth values for {count} agents: want one for each")
        return [i for i, v in enumerate(given) if v]
    for i in given:
        if not isinstance(i, int):
            raise HaulError(f"{repr(i)[:60]} is no place of an agent")
        if not 0 <= i < count:
            raise HaulError(f"agent {i} is none of {count}: places count from 0")
    return given
