"""Learners that live in anybody's environments, and the histories that they leave.

What a reader could break: what is recorded is what the environment gave, number for number; what a learner makes of it (bins) is its own.
An environment that cannot be recorded as it is, is refused before anybody lives in it.
"""

from __future__ import annotations

import array
import operator
import random
from pathlib import Path
from typing import Any, Callable, NamedTuple, Sequence

from ._agent import finite, number, row
from ._binary import HaulError
from ._histories import Numbers, load_histories
from ._lines import Program
from ._many import Parts, Singles, reset, step


class _QLearner:
    """Tabular Q-learning over observations that are cut into bins where they are floating point."""

    def __init__(self, actions: int, bins: int, rate: float, discount: float, seed: int) -> None:
        self.actions, self.bins, self.rate, self.discount = actions, bins, rate, discount
        self.random = random.Random(seed)
        self.table: dict[tuple[int, ...], list[float]] = {}
        self.low: list[float] = []
        self.high: list[float] = []

    def measure(self, seen: list[list[float]]) -> None:
        """Sets the bins by what was seen."""
        self.low, self.high = [min(v) for v in zip(*seen)], [max(v) for v in zip(*seen)]

    def state(self, obs: list[float]) -> tuple[int, ...]:
        if not self.low:
            return tuple(int(v) for v in obs)
        # by halves: the span of two large numbers may be infinite
        return tuple(min(self.bins - 1, max(0, int(self.bins * ((v / 2 - a / 2) / (b / 2 - a / 2))))) if b > a else 0 for v, a, b in zip(obs, self.low, self.high))

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


class _Life:
    """All transitions of a learner in one environment, in order."""

    def __init__(self, job: "_Job", stream: int) -> None:
        self.task, self.stream = job.place, stream
        self.observations, self.rewards = array.array("d"), array.array("d")
        self.actions, self.ends, self.best = array.array("q"), array.array("B"), array.array("q")
        self.episodes, self.steps = 0, 0  # lived through, and of the present one
        self.sizes = job.sizes
        self.who = f"task {job.task!r}, episode %d, step %d"

    def step(self, now: list[float], action: int, reward: Any, after: list[float], over: bool) -> float:
        """A transition; over says that the next observation is another episode's first. It returns what was paid."""
        paid = finite([number(reward)], "the reward of " + self.who % (self.episodes, self.steps))[0]
        finite(now, "the observation of " + self.who % (self.episodes, self.steps))
        for i, (v, size) in enumerate(zip(now, self.sizes or [])):
            if not 0 <= v < size:
                raise HaulError(f"the observation of {self.who % (self.episodes, self.steps)} has {v:g} in field {i}: observation_space says 0 to {size - 1}")
        finite(after, "the observation after " + self.who % (self.episodes, self.steps))
        self.observations.extend(now)
        self.actions.append(action)
        self.rewards.append(paid)
        self.ends.append(over)
        self.steps += 1
        if over:
            self.episodes, self.steps = self.episodes + 1, 0
        return paid

    def whole(self) -> None:
        """Drops the episode that the end of the life cut off, unless it is the only one."""
        n, width = len(self.actions) - self.steps, len(self.observations) // max(1, len(self.actions))
        if n > 0:
            del self.observations[n * width :], self.actions[n:], self.rewards[n:], self.ends[n:], self.best[n:]


class _Job(NamedTuple):
    """One task that learners live through: what a process is given."""

    make_env: Callable[[Any], Any]
    task: Any
    place: int
    stream: int
    streams: int
    limit: int
    seed: int
    learner: str
    episodes: int  # of a table
    bins: int
    rate: float
    discount: float
    steps: int  # of a network
    sizes: list[int] | None  # values of each number of an observation, where all are whole

    @property
    def key(self) -> int:
        """Of the environments' seeds, which are not negative."""
        return abs(self.place)

    def epsilon(self, episode: int) -> float:
        return max(0.0, 1 - episode / (0.8 * self.episodes))

    def table(self, actions: int, stream: int) -> _QLearner:
        return _QLearner(actions, self.bins, self.rate, self.discount, self.seed * 1_000_003 + self.place * 1009 + stream)


def _spaces(env: Any) -> tuple[Any, Any]:
    """What is observed and done, of one of a vectorised environment's."""
    try:
        if hasattr(env, "num_envs"):
            return env.single_observation_space, env.single_action_space
        return env.observation_space, env.action_space
    except AttributeError:
        raise HaulError(f"make_env gave {repr(env)[:60]}, which has no observation_space and action_space: want a Gymnasium environment") from None


def _actions(space: Any) -> int:
    """How many actions there are.

    >>> from types import SimpleNamespace as Space
    >>> _actions(Space(n=4)), _actions(Space(n=4, shape=(), start=0))
    (4, 4)
    >>> for other in (Space(n=3, shape=(3,)), Space(n=3, start=1), Space(n=1), Space(n=65), Space(nvec=[2, 2])):
    ...     try:
    ...         _actions(other)
    ...     except HaulError as e:
    ...         print(str(e).split(": ")[1])
    want one whole number from 0 on, Gymnasium's Discrete; a wrapper can turn each combination into a number of its own
    begin with 1
    with one action there is nothing to choose
    65 are more than the 64 that an agent knows; a wrapper can leave some out
    want one whole number from 0 on, Gymnasium's Discrete; a wrapper can turn each combination into a number of its own
    """
    if not hasattr(space, "n") or getattr(space, "shape", ()) not in ((), None):
        raise HaulError(f"actions of {repr(space)[:60]}: want one whole number from 0 on, Gymnasium's Discrete; a wrapper can turn each combination into a number of its own")
    if getattr(space, "start", 0) != 0:
        raise HaulError(f"the actions: begin with {space.start}: agents count them from 0; gymnasium.wrappers.TransformAction brings them there")
    if space.n > 64:
        raise HaulError(f"the actions: {space.n} are more than the 64 that an agent knows; a wrapper can leave some out")
    if space.n < 2:
        raise HaulError("the actions: with one action there is nothing to choose")
    return int(space.n)


def _whole(space: Any) -> bool:
    """Whether all numbers of an observation are whole.

    >>> from types import SimpleNamespace as Space
    >>> whole, box = Space(n=4, dtype="int64"), Space(dtype="float32")
    >>> _whole(whole), _whole(box), _whole(Space(spaces=(whole, box))), _whole(Space(spaces={"a": whole}))
    (True, False, False, True)
    """
    parts = _parts(space)
    if parts is not None:
        return all(_whole(p) for p in parts)
    return not str(getattr(space, "dtype", "int")).startswith("float")


def _parts(space: Any) -> list[Any] | None:
    """The spaces of a tuple or a dict, in the order of row; None of another space."""
    spaces = getattr(space, "spaces", None)
    if spaces is None:
        return None
    return [spaces[k] for k in sorted(spaces, key=str)] if hasattr(spaces, "keys") else list(spaces)


def _sizes(space: Any) -> list[int] | None:
    """How many values each number of an observation takes, where all are whole numbers from 0 to 255; else None.

    >>> from types import SimpleNamespace as Space
    >>> five, pair = Space(n=5, start=0, dtype="int64"), Space(nvec=[3, 4], dtype="int64")
    >>> _sizes(five), _sizes(pair), _sizes(Space(spaces={"b": five, "a": pair})), _sizes(Space(n=2, shape=(3,), dtype="int8"))
    ([5], [3, 4], [3, 4, 5], [2, 2, 2])
    >>> _sizes(Space(n=5, start=3)), _sizes(Space(n=5, start=-3)), _sizes(Space(n=256)), _sizes(Space(n=257)), _sizes(Space(spaces=(five, Space(dtype="float32"))))
    ([8], None, [256], None, None)
    >>> _sizes(Space(dtype="int64", low=[0, 0], high=[8, 9])), _sizes(Space(dtype="int64", low=[-1], high=[8])), _sizes(Space(dtype="uint8", low=[0], high=[256]))
    ([9, 10], None, None)
    """
    parts = _parts(space)
    out: list[int] = []
    if parts is not None:
        for p in parts:
            more = _sizes(p)
            if more is None:
                return None
            out += more
        return out
    if not _whole(space):
        return None
    if hasattr(space, "nvec"):
        starts = row(getattr(space, "start", 0))
        if any(starts):
            return None
        out = [int(v) for v in row(space.nvec)]
    elif getattr(space, "shape", None):
        count = 1
        for k in space.shape:
            count *= k
        if hasattr(space, "n"):  # MultiBinary
            out = [2] * count
    elif hasattr(space, "n"):
        out = [int(space.n) + int(getattr(space, "start", 0))] if getattr(space, "start", 0) >= 0 else []
    if not out and hasattr(space, "high"):
        low, high = row(space.low), row(space.high)
        if any(v < 0 for v in low) or any(v > 255 for v in high):
            return None
        out = [int(v) + 1 for v in high]
    return out if out and all(1 <= v <= 256 for v in out) else None


def _width(space: Any) -> int | None:
    """How many numbers an observation has; None where its space does not say.

    >>> from types import SimpleNamespace as Space
    >>> pair = Space(spaces=(Space(n=5), Space(shape=(2, 3), dtype="float32")))
    >>> _width(Space(n=5, shape=())), _width(Space(nvec=[3, 4], shape=(2,))), _width(pair), _width(Space())
    (1, 2, 7, None)
    """
    parts = _parts(space)
    if parts is not None:
        widths = [_width(p) for p in parts]
        return None if None in widths else sum(w or 0 for w in widths)
    if getattr(space, "shape", None):
        count = 1
        for k in space.shape:
            count *= k
        return count
    return 1 if hasattr(space, "n") else None


FIELDS = 64  # numbers that an observation has at most


def _live(job: _Job) -> list[_Life]:
    """Learners' lives in one task."""
    env = job.make_env(job.task)
    try:
        seen, acts = _spaces(env)
        actions, who = _actions(acts), f"task {job.task!r}"
        if hasattr(env, "num_envs"):
            parts = Parts(env, job.limit, who)
            if job.learner == PPO:
                return _live_network(parts, parts.count, job, actions)
            return _live_parts(parts, job, actions, _whole(seen))
        if job.learner == PPO:
            others: list[Any] = []
            try:
                while len(others) + 1 < job.streams:
                    others.append(job.make_env(job.task))
                return _live_network(Singles([env, *others], job.limit, who), job.streams, job, actions)
            finally:
                for other in others:
                    _close(other)
        return [_live_one(env, job, actions, _whole(seen))]
    finally:
        _close(env)


def _close(env: Any) -> None:
    if hasattr(env, "close"):
        env.close()


def _live_network(envs: Parts | Singles, count: int, job: _Job, actions: int) -> list[_Life]:
    """The lives of one learner with a network, which acts in all environments at once. The program has it."""
    now = envs.begin(job.seed * 7919 + job.key * job.steps * count)
    arguments = ["data", "learn", "--envs", count, "--steps", job.steps, "--actions", actions, "--seed", job.seed, "--rate", job.rate, "--discount", job.discount]
    arguments += ["--measured", len(now[0])] if job.sizes is None else ["--sizes", ",".join(map(str, job.sizes))]
    lives = [_Life(job, i) for i in range(count)]
    idles: list[list[bool]] = []
    with Program([str(a) for a in arguments]) as program:
        told = program.ask({"task": job.place, "obs": now})
        for _ in range(job.steps):
            acts = told["action"]
            t = envs.step(acts)
            for i, life in enumerate(lives):
                if not t.idle[i]:
                    life.step(now[i], acts[i], t.rewards[i], t.after[i], t.ended[i] or t.cut[i])
            idles.append(t.idle)
            last = [after if cut and not ended else None for after, cut, ended in zip(t.after, t.cut, t.ended)]
            told = program.ask({"obs": t.now, "reward": t.rewards, "end": t.ended, "cut": t.cut, "last": last, "idle": t.idle})
            now = t.now
    for i, life in enumerate(lives):
        life.best.extend(a for a, idle in zip(told["best"][i], idles) if not idle[i])
        life.whole()
    return lives


def _live_one(env: Any, job: _Job, actions: int, whole: bool) -> _Life:
    life, learner = _Life(job, job.stream), job.table(actions, job.stream)
    if not whole:
        obs = reset(env, seed=job.seed + job.key)
        seen = [finite(row(obs), "the first observation of " + repr(job.task))]
        for _ in range(2000):  # what a walk at random sees sets the bins
            obs, _, ended, cut, _ = step(env, learner.random.randrange(learner.actions))
            seen.append(finite(row(obs), "an observation of task " + repr(job.task)))
            if ended or cut:
                obs = reset(env)
        learner.measure(seen)
    for episode in range(job.episodes):
        now = row(reset(env, seed=job.seed * 7919 + job.stream * job.episodes + episode))
        for t in range(job.limit):
            action = learner.choose(learner.state(finite(now, "an observation of task " + repr(job.task))), job.epsilon(episode))
            obs, reward, ended, cut, _ = step(env, action)
            after = row(obs)
            over = bool(ended or cut or t == job.limit - 1)
            paid = life.step(now, action, reward, after, over)
            learner.learn(learner.state(now), action, paid, learner.state(after), bool(ended))
            now = after
            if over:
                break
    return life


def _live_parts(parts: Parts, job: _Job, actions: int, whole: bool) -> list[_Life]:
    """The lives of a vectorised environment, a learner in each of its parts. They go on until all have had their episodes; what a
    part does afterwards is not kept."""
    n = parts.count
    lives = [_Life(job, job.stream * n + i) for i in range(n)]
    learners = [job.table(actions, x.stream) for x in lives]
    seed = job.seed * 7919 + job.stream * job.episodes * n
    now = parts.begin(seed)
    if not whole:
        seen: list[list[list[float]]] = [[o] for o in now]
        for _ in range(2000):
            t = parts.step([x.random.randrange(x.actions) for x in learners])
            for i in range(n):
                seen[i] += [t.after[i], t.now[i]]
        for x, s in zip(learners, seen):
            x.measure(s)
        now = parts.begin(seed)
    while any(x.episodes < job.episodes for x in lives):
        acts = [x.choose(x.state(o), job.epsilon(life.episodes)) for x, o, life in zip(learners, now, lives)]
        t = parts.step(acts)
        for i, (x, life) in enumerate(zip(learners, lives)):
            if t.idle[i] or life.episodes == job.episodes:
                continue
            life.step(now[i], acts[i], t.rewards[i], t.after[i], t.ended[i] or t.cut[i])
            x.learn(x.state(now[i]), acts[i], t.rewards[i], x.state(t.after[i]), t.ended[i])
        now = t.now
    return lives


def _numbered(tasks: Any) -> list[Any]:
    """What make_env is given for each task.

    >>> _numbered(3), _numbered(["maze", "pole"]), _numbered(range(2, 4))
    ([0, 1, 2], ['maze', 'pole'], [2, 3])
    >>> _numbered([1, 2, 1])
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: task 1 is there twice: streams= lets several learners live through each task
    """
    try:
        listed: list[Any] = list(range(operator.index(tasks)))
    except TypeError:
        listed = [operator.index(t) if hasattr(t, "__index__") else t for t in tasks]
    for i, t in enumerate(listed):
        if isinstance(t, int) and abs(t) > 2**53:
            raise HaulError(f"task {t}: want a whole number of at most 2^53 in size")
        if t in listed[:i]:
            raise HaulError(f"task {t!r} is there twice: streams= lets several learners live through each task")
    return listed


TABLE, PPO = "table", "ppo"

# What each learner heeds, with its defaults.
_HEEDS: dict[str, dict[str, Any]] = {
    TABLE: {"episodes": 200, "streams": 1, "bins": 8, "rate": 0.5, "discount": 0.9},
    PPO: {"steps": 8192, "streams": 8, "rate": 1e-3, "discount": 0.99},
}


def _heeded(learner: str, given: dict[str, Any]) -> dict[str, Any]:
    """The learner's settings: what was given, else its defaults.

    >>> _heeded("ppo", {"steps": 100, "bins": None})["steps"], _heeded("table", {"rate": None})["rate"]
    (100, 0.5)
    >>> _heeded("ppo", {"bins": 4})
    Traceback (most recent call last):
        ...
    haul._binary.HaulError: bins=4: learner="ppo" has none, learner="table" has
    """
    if learner not in _HEEDS:
        raise HaulError(f"learner={learner!r}: use {' or '.join(map(repr, _HEEDS))}")
    out = dict(_HEEDS[learner])
    for name, value in given.items():
        if value is None:
            continue
        if name not in out:
            raise HaulError(f'{name}={value}: learner="{learner}" has none, learner="{TABLE if learner == PPO else PPO}" has')
        out[name] = value
    for name in ("episodes", "steps", "streams", "bins"):
        if name in out:
            out[name] = _count(name, out[name])
    if not 0 < out["rate"] <= 1:
        raise HaulError(f"rate={out['rate']}: it must be more than 0, at most 1")
    if not 0 <= out["discount"] <= 1:
        raise HaulError(f"discount={out['discount']}: it must be 0 to 1")
    return out


def _count(name: str, value: Any, least: int = 1) -> int:
    """A whole number.

    >>> _count("seed", 0, 0)
    0
    >>> for value in (0, 2.5):
    ...     try:
    ...         _count("steps", value)
    ...     except HaulError as e:
    ...         print(e)
    steps=0: it must be at least 1
    steps=2.5: want a whole number
    """
    try:
        n = operator.index(value)
    except TypeError:
        raise HaulError(f"{name}={value!r}: want a whole number") from None
    if n < least:
        raise HaulError(f"{name}={n}: it must be at least {least}")
    return n


def record(
    make_env: Callable[[Any], Any],
    tasks: int | Sequence[Any],
    out: str | Path,
    *,
    learner: str | None = None,
    episodes: int | None = None,
    steps: int | None = None,
    streams: int | None = None,
    limit: int = 1000,
    bins: int | None = None,
    rate: float | None = None,
    discount: float | None = None,
    seed: int = 0,
    processes: int = 1,
    title: str | None = None,
    train_ratio: float = 0.9,
    force: bool = False,
) -> dict[str, Any]:
    """Lets a learner live through every task of a Gymnasium environment, and keeps all of its history in a file that
    `haul train --config ad_any --history FILE` reads. It returns what `haul data show` says of the file.

    make_env(task) makes the environment of a task; tasks are how many, or their numbers or names (the file has the places of names).
    Its actions are discrete and count from 0; observations are discrete, multi-discrete, multi-binary, boxes of whole or
    floating-point numbers, or tuples and dicts of such. An episode of limit steps is cut. processes tasks are lived through at a time
    (make_env must be a function of a module then).

    learner="table" is Q-learning with a table, whose exploration falls linearly over its episodes; floating point is cut into bins
    for it (what is recorded is not). Each of the streams is a learner of its own, and so is each part of a vectorised environment
    (`gymnasium.make_vec`). learner="ppo" is a recurrent network that the program trains by proximal policy optimization
    (`haul data learn --help`). It acts in as many environments as there are streams, or parts of a vectorised environment, for so many
    steps in each, all of which are recorded, with the actions that it holds best in the end (labels). Where learner is not given, it is
    the one that has steps, or episodes and bins, if these are given; else "table" for observations of whole numbers and "ppo" for others.
    """
    limit, processes, seed = _count("limit", limit), _count("processes", processes), _count("seed", seed, 0)
    listed = _numbered(tasks)
    if not listed:
        raise HaulError("no tasks: an agent learns how learning goes from many")
    places = [t if isinstance(t, int) else i for i, t in enumerate(listed)]
    if len(set(places)) != len(places):
        raise HaulError("tasks are numbers and names: want either")
    probe = make_env(listed[0])
    seen, acts = _spaces(probe)
    actions, whole, sizes, width = _actions(acts), _whole(seen), _sizes(seen), _width(seen)
    parts = hasattr(probe, "num_envs")
    _close(probe)
    if width is not None and width > FIELDS:
        raise HaulError(f"an observation of {width} numbers: want 1 to {FIELDS}")
    who = learner or (PPO if steps is not None else TABLE if whole or episodes is not None or bins is not None else PPO)
    heeds = _heeded(who, {"episodes": episodes, "steps": steps, "streams": streams, "bins": bins, "rate": rate, "discount": discount})
    if who == PPO and parts and streams is not None:
        raise HaulError(f"streams={streams}: of a vectorised environment each part is a stream")
    given = {"episodes": 0, "bins": 0, "steps": 0, **heeds}
    lived = 1 if who == PPO else given["streams"]  # streams of a job
    jobs = [_Job(make_env, t, p, s, limit=limit, seed=seed, learner=who, sizes=sizes, **given) for t, p in zip(listed, places) for s in range(lived)]
    if processes > 1:
        import multiprocessing
        import pickle

        try:
            pickle.dumps(make_env)
        except (pickle.PicklingError, AttributeError, TypeError) as e:
            raise HaulError(f"processes={processes} hand make_env to others, which cannot be done ({e}): make it a function of a module") from None
        with multiprocessing.Pool(processes) as pool:
            lives = [x for of in pool.map(_live, jobs, chunksize=1) for x in of]
    else:
        lives = [x for j in jobs for x in _live(j)]
    if not any(any(x.ends) for x in lives):
        raise HaulError(f"no episode ended in {given['steps']} steps of each environment: use more steps, or a lower limit than {limit}")
    width = len(lives[0].observations) // len(lives[0].actions)
    rows = [len(x.actions) for x in lives]
    for x, n in zip(lives, rows):
        if len(x.observations) != n * width:
            raise HaulError(f"observations of {width} numbers in one task and others elsewhere (task {x.task}): want as many of each")
    small = whole and all(0 <= v < 256 and v == int(v) for x in lives for v in x.observations)
    arrays = {
        "observations": Numbers("|u1" if small else "<f8", [array.array("B", map(int, x.observations)) if small else x.observations for x in lives], width),
        "actions": Numbers("<i8", [x.actions for x in lives]),
        "rewards": Numbers("<f8", [x.rewards for x in lives]),
        "dones": Numbers("|u1", [x.ends for x in lives]),
        "tasks": Numbers("<i8", [array.array("q", [x.task]) * n for x, n in zip(lives, rows)]),
        "streams": Numbers("<i8", [array.array("q", [x.stream]) * n for x, n in zip(lives, rows)]),
    }
    if who == PPO:
        arrays["best_actions"] = Numbers("<i8", [x.best for x in lives])
    return load_histories(arrays, out, title=title or Path(out).stem, actions=actions, sizes=sizes if small else None, train_ratio=train_ratio, force=force)
