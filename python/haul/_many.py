"""Environments that step together: several of Gymnasium's, or the parts of a vectorised one.

What a reader could break: a step says both what it led to (after) and what the next action is chosen by (now), which differ where an
episode is over. idle marks environments whose step only began an episode.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

from ._agent import each, finite, number, row
from ._binary import HaulError


class Step(NamedTuple):
    """What a step led to, by environment."""

    after: list[list[float]]
    now: list[list[float]]
    rewards: list[float]
    ended: list[bool]
    cut: list[bool]
    idle: list[bool]


def reset(env: Any, **how: Any) -> Any:
    """The first observation of an episode.

    >>> class Old:
    ...     reset = lambda self, seed: 0
    ...     step = lambda self, action: (0, 1.0, True, {})
    >>> for call in (lambda: reset(Old(), seed=1), lambda: step(Old(), 0)):
    ...     try:
    ...         call()
    ...     except HaulError as e:
    ...         print(str(e).split(": ")[1])
    want an observation and a dict, as Gymnasium's gives
    want an observation, a reward, terminated, truncated and a dict, as Gymnasium's gives
    """
    given = env.reset(**how)
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)):
        raise HaulError("reset of the environment gave something else: want an observation and a dict, as Gymnasium's gives")
    return given[0]


def step(env: Any, action: Any) -> Any:
    """What an action led to."""
    given = env.step(action)
    if not (isinstance(given, tuple) and len(given) == 5):
        raise HaulError("step of the environment gave something else: want an observation, a reward, terminated, truncated and a dict, as Gymnasium's gives")
    return given


class Singles:
    """Several environments of one task, which begin their next episodes at once. An episode of limit steps is cut."""

    def __init__(self, envs: Sequence[Any], limit: int, who: str) -> None:
        self.envs, self.limit, self.who = envs, limit, who
        self.seed, self.episodes, self.clock = 0, [0] * len(envs), [0] * len(envs)

    def begin(self, seed: int) -> list[list[float]]:
        self.seed, self.episodes = seed, [0] * len(self.envs)
        return [self._reset(i) for i in range(len(self.envs))]

    def _reset(self, i: int) -> list[float]:
        seed = self.seed + i + len(self.envs) * self.episodes[i]
        self.episodes[i], self.clock[i] = self.episodes[i] + 1, 0
        return self._row(i, reset(self.envs[i], seed=seed))

    def _row(self, i: int, obs: Any) -> list[float]:
        return finite(row(obs), f"the observation of {self.who}, environment {i}")

    def step(self, actions: Sequence[int]) -> Step:
        out = Step([], [], [], [], [], [False] * len(self.envs))
        for i, (env, action) in enumerate(zip(self.envs, actions)):
            obs, reward, ended, cut, _ = step(env, action)
            self.clock[i] += 1
            ended, cut = bool(ended), bool(cut) or self.clock[i] == self.limit
            after = self._row(i, obs)
            out.after.append(after)
            out.now.append(self._reset(i) if ended or cut else after)
            out.rewards.append(finite([number(reward)], f"the reward of {self.who}, environment {i}")[0])
            out.ended.append(ended)
            out.cut.append(cut)
        return out


class Parts:
    """A vectorised environment, whose parts begin their next episodes as its metadata says."""

    def __init__(self, env: Any, limit: int, who: str) -> None:
        self.env, self.limit, self.who, self.count = env, limit, who, int(env.num_envs)
        mode = getattr(env, "metadata", {}).get("autoreset_mode")
        self.mode = str(getattr(mode, "value", mode))
        if self.mode not in ("NextStep", "SameStep", "Disabled"):
            raise HaulError(f"{repr(env)[:60]} does not say in metadata[\"autoreset_mode\"] when its parts begin their next episodes (gymnasium.vector.AutoresetMode)")
        self.idle, self.clock = [False] * self.count, [0] * self.count

    def begin(self, seed: int) -> list[list[float]]:
        self.idle, self.clock = [False] * self.count, [0] * self.count
        self.seen = self._rows(reset(self.env, seed=seed))
        return self.seen

    def _rows(self, obs: Any) -> list[list[float]]:
        return [finite(row(o), f"the observation of {self.who}, environment {i}") for i, o in enumerate(each(obs, self.count))]

    def step(self, actions: Sequence[int]) -> Step:
        obs, rewards, ended, cut, infos = step(self.env, packed(list(actions)))
        after = self._rows(obs)
        idle, over = self.idle, [bool(a or b) for a, b in zip(ended, cut)]
        now = list(after)
        if self.mode == "SameStep":
            final = infos.get("final_obs", infos.get("final_observation"))
            for i in range(self.count):
                if over[i]:  # without its last observation nothing is known to follow
                    after[i] = row(final[i]) if final is not None and final[i] is not None else self.seen[i]
        elif self.mode == "Disabled" and any(over):
            now = self._rows(reset(self.env, options={"reset_mask": packed(over)}))
        for i in range(self.count):
            self.clock[i] = 0 if over[i] or idle[i] else self.clock[i] + 1
            if self.clock[i] >= self.limit:
                raise HaulError(f"an episode of more than limit={self.limit} steps in {self.who}: a part of a vectorised environment cannot be stopped; give it a limit of its own")
        self.idle = [o and not b and self.mode == "NextStep" for o, b in zip(over, idle)]
        self.seen = now
        paid = [0.0 if w else finite([number(r)], f"the reward of {self.who}, environment {i}")[0] for i, (r, w) in enumerate(zip(rewards, idle))]
        return Step(after, now, paid, [bool(v) for v in ended], [bool(v) for v in cut], idle)


def packed(values: list[Any]) -> Any:
    """An array, where there is NumPy: Gymnasium's vectorised environments want one, and bring it."""
    try:
        import numpy
    except ImportError:
        return values
    return numpy.array(values)
