"""What scripts/wheel --check tries of agents in Python: histories that are recorded and read, and agents that are told what they see.

  python scripts/wheel_agents.py

HDF5 files are tried where NumPy and h5py are; nothing else needs them.
"""

import array
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import warnings

import needs

needs.flags(__doc__).parse_args()
needs.packages("haul")

import haul
from haul import _histories


class Parts:
    """A vectorised environment whose parts count their steps: part i pays as many as it has made, and ends after 3 + i of them."""

    def __init__(self, mode, n=3):
        self.num_envs, self.metadata = n, {"autoreset_mode": types.SimpleNamespace(value=mode)}
        self.single_action_space = types.SimpleNamespace(n=2)
        self.single_observation_space = types.SimpleNamespace(n=9, dtype="int64")
        self.waits = [False] * n

    def reset(self, *, seed=None, options=None):
        begin = (options or {}).get("reset_mask", [True] * self.num_envs)
        self.clock = [0 if b else t for b, t in zip(begin, getattr(self, "clock", [0] * self.num_envs))]
        return list(self.clock), {}

    def step(self, actions):
        mode, paid, ended, final = self.metadata["autoreset_mode"].value, [], [], [None] * self.num_envs
        for i in range(self.num_envs):
            if self.waits[i]:
                self.clock[i], self.waits[i] = 0, False
                paid, ended = [*paid, 99.0], [*ended, False]
                continue
            self.clock[i] += 1
            paid, ended = [*paid, float(self.clock[i])], [*ended, self.clock[i] == 3 + i]
            if ended[i] and mode == "NextStep":
                self.waits[i] = True
            if ended[i] and mode == "SameStep":
                final[i], self.clock[i] = self.clock[i], 0
        return list(self.clock), paid, [False] * self.num_envs, ended, {"final_obs": final}


class Measured:
    """An environment that shows one number of float64 and one that never changes; two arms, of which the task's pays."""

    def __init__(self, task, base=1e9):
        self.pays, self.base = (task if isinstance(task, int) else ord(task)) % 2, base
        self.action_space = types.SimpleNamespace(n=2)
        self.observation_space = types.SimpleNamespace(shape=(2,), dtype="float64")

    def reset(self, *, seed=None, options=None):
        self.left = 5
        return [self.base, 0.5], {}

    def step(self, arm):
        self.left -= 1
        return [self.base + self.left % 3, 0.5], float(arm == self.pays), False, self.left == 0, {}


def refused(want, call, *given, **named):
    try:
        call(*given, **named)
    except haul.HaulError as e:
        assert want in str(e) and "\n" not in str(e), f"{e}; want {want}"
        return
    sys.exit(f"not refused: {want}")


def agents():
    """What is recorded is what was lived, agents are told what they are told, and what cannot be is refused in a line."""
    from haul import _record

    written, load = {}, _record.load_histories
    _record.load_histories = lambda arrays, out, **named: (written.clear(), written.update(arrays), load(arrays, out, **named))[-1]
    try:
        with tempfile.TemporaryDirectory() as folder:
            recording(folder, written)
            living(folder)
            if sys.platform != "win32":  # which has no such locks
                killed(folder)
            left = [p.name for p in pathlib.Path(folder).iterdir() if p.name.startswith(".haul-")]
            assert not left, left
            try:
                import h5py
                import numpy
            except ImportError:
                print("no NumPy and h5py here: HDF5 files were not tried")
            else:
                saved(folder, h5py, numpy)
    finally:
        _record.load_histories = load


def recording(folder, written):
    Space = types.SimpleNamespace

    def column(name):
        return [v for part in written[name].parts for v in part]

    for mode in ("NextStep", "SameStep", "Disabled"):
        shown = haul.record(lambda task: Parts(mode), tasks=2, out=f"{folder}/parts.hist", episodes=4, streams=2, force=True)
        assert (shown["streams"], shown["episodes"]) == (12, 48), shown
        lives = [[t for _ in range(4) for t in range(3 + i)] for _ in range(4) for i in range(3)]
        assert column("observations") == sum(lives, []), mode
        assert column("rewards") == [t + 1.0 for t in sum(lives, [])], mode
        assert column("streams") == [k for _ in range(2) for k, x in enumerate(lives[:6]) for _ in x], mode
    refused("autoreset_mode", haul.record, lambda task: Parts("Never"), tasks=2, out=f"{folder}/no.hist")
    refused("more than limit=3 steps", haul.record, lambda task: Parts("NextStep"), tasks=2, out=f"{folder}/no.hist", limit=3)
    shown = haul.record(Measured, tasks=8, out=f"{folder}/measured.hist", episodes=12)
    assert shown["tasks"] == 8 and sorted(set(column("observations"))) == [0.5, 1e9, 1e9 + 1, 1e9 + 2], sorted(set(column("observations")))
    mixed = Space(spaces=(Space(n=3, dtype="int64"), Space(shape=(1,), dtype="float32")))

    class Mixed(Measured):
        def __init__(self, task):
            super().__init__(task, 0.25)
            self.observation_space = mixed

    haul.record(Mixed, tasks=["b", "a"], out=f"{folder}/mixed.hist", episodes=12)
    assert sorted(set(column("observations"))) == [0.25, 0.5, 1.25, 2.25] and set(column("tasks")) == {0, 1}
    networks(folder, column)
    for want, change in {
        "Gymnasium's Discrete": {"action_space": Space(n=2, shape=(2,))},
        "begin with 1": {"action_space": Space(n=2, start=1)},
        "nothing to choose": {"action_space": Space(n=1)},
        "'north' is no number": {"reset": lambda **_: ("north", {})},
        "observation of task 0 is nan": {"reset": lambda **_: (float("nan"), {}), "observation_space": Space(n=2, dtype="int64")},
        "an observation of 65 numbers: want 1 to 64": {"observation_space": Space(shape=(5, 13), dtype="float64")},
        "step 0 has 9 in field 1: observation_space says 0 to 7": {"reset": lambda **_: ([0, 9], {}), "step": lambda arm: ([0, 0], 0.0, True, False, {}), "observation_space": Space(nvec=[8, 8], dtype="int64")},
        "reset of the environment gave something else": {"reset": lambda **_: [0, 0]},
        "step of the environment gave something else": {"step": lambda arm: ([0, 0], 0.0, True, {})},
        "the reward of task 0, episode 0, step 0 is nan": {"step": lambda arm: ([0, 0], float("nan"), False, True, {})},
    }.items():
        def changed(task):
            env = Measured(task)
            vars(env).update(change)
            return env

        refused(want, haul.record, changed, tasks=2, out=f"{folder}/no.hist", learner="table")
    for name in ("episodes", "streams", "limit", "bins", "processes"):
        refused(f"{name}=0", haul.record, Measured, tasks=2, out=f"{folder}/no.hist", learner="table", **{name: 0})
    for want, given in {"seed=-1: it must be at least 0": {"seed": -1}, "episodes=2.5: want a whole number": {"episodes": 2.5}, "rate=nan": {"rate": float("nan")}, "discount=2": {"discount": 2}}.items():
        refused(want, haul.record, Measured, tasks=2, out=f"{folder}/no.hist", learner="table", **given)
    refused("at most 2^53", haul.record, Measured, tasks=[1 << 60, 1], out=f"{folder}/no.hist")
    refused("is there twice", haul.record, Measured, tasks=[1, 1], out=f"{folder}/no.hist")
    refused("which has no observation_space", haul.record, lambda task: None, tasks=2, out=f"{folder}/no.hist")
    refused("a function of a module", haul.record, lambda task: Measured(task), tasks=2, out=f"{folder}/no.hist", processes=2)
    print("what is recorded is what was lived")


class Signs(Measured):
    """Shows a number; the arm that pays is told by its sign, one way or the other by the task. Episodes are cut after 7 steps."""

    def reset(self, *, seed=None, options=None):
        self.left, self.luck = 7, random.Random(seed)
        return self.look(), {}

    def close(self):
        assert not getattr(self, "closed", False), "closed twice"
        self.closed = True

    def look(self):
        self.shown = self.luck.choice([-3.0, 5.0])
        return [100 + self.shown, 0.5]

    def step(self, arm):
        paid, self.left = float(arm == (self.shown > 0) ^ self.pays), self.left - 1
        return self.look(), paid, False, self.left == 0, {}


def killed(folder):
    """A process that is killed while it writes leaves a folder beside its file, which the next one removes; another's it leaves."""
    home = pathlib.Path(folder) / "killed"
    words = f"""
import haul, os, sys
from haul import _histories
with _histories._beside({str(home / "x.hist")!r}) as folder:
    open(folder + "/actions.npy", "w").close()
    print(folder, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), 9)
"""
    dead, busy = (subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2))
    names = [p.stdout.readline().strip() for p in (dead, busy)]
    dead.communicate("")
    assert all(pathlib.Path(n).is_dir() for n in names), names
    arrays = {"observations": [[0]] * 40, "actions": [0, 1] * 20, "rewards": [0, 1] * 20, "dones": [0, 1] * 20, "tasks": [0] * 20 + [1] * 20}
    haul.load_histories({k: _histories.Numbers("<i8", [array.array("q", sum(v, []) if k == "observations" else v)], 1 if k == "observations" else None) for k, v in arrays.items()}, home / "x.hist")
    left = sorted(p.name for p in home.iterdir())
    busy.communicate("")
    assert left == sorted([pathlib.Path(names[1]).name, "x.hist"]), left
    print("what killed processes left is removed")


def networks(folder, column):
    """A learner with a network: what it lives through is recorded in every environment, its labels are what it learned, and the same
    call records the same."""
    made = []
    for _ in range(2):
        shown = haul.record(Signs, tasks=2, out=f"{folder}/signs.hist", steps=1030, streams=4, rate=0.003, seed=3, force=True)
        assert (shown["streams"], shown["tasks"], shown["transitions"]) == (8, 2, 8 * 1029), shown  # the last episode was cut by the end
        assert shown["last_return"] > 6 and shown["first_return"] < 5.5, shown
        made.append([column(k) for k in ("observations", "actions", "rewards", "dones", "tasks", "streams", "best_actions")])
    assert made[0] == made[1], "the same call, other histories"
    obs, acts, rewards, dones, tasks, streams, best = made[0]
    for i, (a, paid, held, task) in enumerate(zip(acts, rewards, best, tasks)):
        right = (obs[2 * i] > 100) ^ (task % 2 == 1)
        assert paid == float(a == right) and dones[i] == (i % 1029 % 7 == 6), i
    hits = sum(h == ((obs[2 * i] > 100) ^ (tasks[i] % 2 == 1)) for i, h in enumerate(best))
    assert hits > 0.97 * len(best), (hits, len(best))
    for mode in ("NextStep", "SameStep", "Disabled"):
        shown = haul.record(lambda task: Parts(mode), tasks=2, out=f"{folder}/parts.hist", learner="ppo", steps=70, force=True)
        assert shown["streams"] == 6, shown
        lived = 70 if mode != "NextStep" else None
        for i in range(3):
            part = [t for t, s, k in zip(column("observations"), column("streams"), column("tasks")) if s == i and k == 0]
            whole = (lived or 70 * (3 + i) // (4 + i)) // (3 + i)
            assert part == [t for _ in range(len(part) // (3 + i)) for t in range(3 + i)] and len(part) // (3 + i) in (whole, whole - 1), (mode, i, part)
        assert len(column("best_actions")) == len(column("actions")) and max(column("rewards")) == 5, mode
    one = haul.record(Signs, tasks=2, out=f"{folder}/one.hist", steps=64, streams=1, limit=3, processes=2)
    assert one["streams"] == 2 and one["transitions"] == 2 * 63 and one["episodes"] == 42, one
    negative = haul.record(Signs, tasks=[-3, 4], out=f"{folder}/one.hist", steps=64, streams=1, force=True)
    assert set(column("tasks")) == {-3, 4}, negative

    class Endless(Signs):
        def step(self, arm):
            obs, paid, *_ = super().step(arm)
            return obs, paid, False, False, {}

    refused("no episode ended in 64 steps of each environment: use more steps, or a lower limit than 1000", haul.record, Endless, tasks=2, out=f"{folder}/no.hist", steps=64)
    for want, given in {
        "learner='sarsa': use 'table' or 'ppo'": {"learner": "sarsa"},
        'bins=4: learner="ppo" has none': {"learner": "ppo", "bins": 4},
        'steps=9: learner="table" has none': {"learner": "table", "steps": 9},
        'episodes=3: learner="ppo" has none': {"steps": 64, "episodes": 3},
        "steps=0: it must be at least 1": {"steps": 0},
        "63 steps of a history: want 64": {"steps": 63},
        "a discount of 1: want 0 or more": {"steps": 64, "discount": 1.0},
    }.items():
        refused(want, haul.record, Signs, tasks=2, out=f"{folder}/no.hist", **given)
    refused("each part is a stream", haul.record, lambda task: Parts("SameStep"), tasks=2, out=f"{folder}/no.hist", learner="ppo", streams=2)
    refused("more than limit=3 steps", haul.record, lambda task: Parts("NextStep"), tasks=2, out=f"{folder}/no.hist", learner="ppo", steps=70, limit=3)
    assert not pathlib.Path(f"{folder}/no.hist").exists()
    print("networks learn in Python's environments")


def living(folder):
    small = dict(tf_n_embd=16, tf_n_layer=1, tf_n_head=2, compress_interval=20, compress_min=5, n_transit=44, train_batch_size=4, test_batch_size=4, num_warmup_steps=1)
    list(haul.train("ad_any", out=f"{folder}/run", iterations=2, device="cpu", settings=small, flags={"history": f"{folder}/measured.hist"}))
    seen = [[1e9, 0.5]] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with haul.Agent(f"{folder}/run", agents=3) as three, haul.Agent(f"{folder}/run", agents=3) as again:
            assert three.act(seen) == again.act(seen) and len(three.act(seen, [0, 1, 0])) == 3
            again.act(seen, [0, 1, 0])
            three.forget([True, False, True])
            again.forget([0, 2])
            assert three.act(seen, [None, 1, None]) == again.act({"b": [0.5] * 3, "a": [1e9] * 3}, [None, 1, None])
            refused("agent 0 is not told what its last action paid", three.act, seen)
            refused("the observation of agent 1 has nan in field 0", three.act, [seen[0], [float("nan"), 0], seen[0]], [0, 0, 0])
            refused("the reward of agent 2 is inf", three.act, seen, [0, 0, float("inf")])
            refused("one reward for 3 agents", three.act, seen, 1)
            refused("one observation for 3 agents", three.act, 1, [0, 0, 0])
            refused("want a list of 3 observations", three.act, seen[:2], [0, 0])
            refused("2 truth values for 3 agents", three.forget, [True, False])
            refused("agent 3 is none of 3", three.forget, [3])
    refused("these agents were closed", three.act, seen)
    print("agents are told what they are told")


def saved(folder, h5py, np):
    """Layouts of HDF5 files, their numbers kept, and what cannot be read."""
    def made(build, **names):
        path = f"{folder}/x.h5"
        with h5py.File(path, "w") as f:
            build(f)
        return haul.from_hdf5(path, f"{folder}/x.hist", force=True, **names)

    def minari(f, obs=None, actions=None, rewards=True):
        for e in (3, 10, 1, 2):
            g = f.create_group(f"episode_{e}")
            o = obs(e) if obs else np.full((6, 2), e)
            for name, values in (o.items() if isinstance(o, dict) else ()):
                g.create_dataset(f"observations/{name}", data=values)
            if not isinstance(o, dict):
                g.create_dataset("observations", data=o, compression="gzip", chunks=True)
            g.create_dataset("actions", data=np.arange(5) % 3 if actions is None else actions)
            if rewards:
                g.create_dataset("rewards", data=np.full(5, float(e)))
            g.create_dataset("terminations", data=np.zeros(5, bool))
            g.create_dataset("truncations", data=np.zeros(5, bool))
            g.attrs["task"] = e % 2

    shown = made(minari)
    assert (shown["tasks"], shown["streams"], shown["transitions"], shown["fields"]) == (2, 2, 20, 2), shown
    assert (shown["first_return"], shown["last_return"]) == (7.5, 32.5), shown  # episodes 1, 3 and 2, 10, in order
    assert made(lambda f: minari(f, obs=lambda e: {"_index_10": np.zeros(6), "_index_2": np.full((6, 2), e)}))["fields"] == 3
    refused("the action of transition 1 is 0.5", made, lambda f: minari(f, actions=np.arange(5) / 2))
    refused("actions has the shape (5, 2): want one number", made, lambda f: minari(f, actions=np.zeros((5, 2))))
    refused("has no rewards", made, lambda f: minari(f, rewards=False))
    refused("observations of type |S1", made, lambda f: minari(f, obs=lambda e: np.array([b"x"] * 6)))
    refused("elsewhere of 2", made, lambda f: minari(f, obs=lambda e: np.zeros((6, 1 + (e < 10)))))

    def xland(f, dones=True, experts=()):
        for k in ("0", "1", "10", "2"):
            g = f.create_group(k)
            if k in experts:
                g.create_dataset("expert_actions", data=np.full((2, 20), 4, np.uint8))
            for name, values in {"states": np.full((2, 20, 5, 5), int(k), np.uint8), "actions": np.zeros((2, 20), np.uint8), "rewards": np.full((2, 20), int(k), np.float16)}.items():
                g.create_dataset(name, data=values, compression="gzip")
            if dones:
                g.create_dataset("dones", data=np.tile(np.arange(20) % 5 == 4, (2, 1)))

    shown = made(xland)
    assert (shown["tasks"], shown["streams"], shown["episodes"], shown["fields"], shown["rewards"]) == (4, 8, 32, 25, [0, 1, 2, 10]), shown
    assert made(lambda f: xland(f, experts=("0", "1", "10", "2")))["actions"] == 5, "expert actions are not read"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert made(lambda f: xland(f, experts=("1",)))["actions"] == 2
    assert any("best actions are not read" in str(w.message) for w in told), told
    refused("0 has no dones", made, lambda f: xland(f, dones=False))

    def vintix(f, actions=np.arange(30) % 2):
        for k in range(3):
            at = slice(10 * k, 10 * k + 10)
            for name, values in {"proprio_observation": np.arange(60.0).reshape(30, 2), "action": actions, "reward": np.ones(30), "step_num": np.arange(30) % 6}.items():
                f.create_dataset(f"{10 * k}-{10 * k + 10}/{name}", data=values[at])

    for i in (1, 2):
        with h5py.File(f"{folder}/t{i}.h5", "w") as f:
            vintix(f)
    shown = haul.from_hdf5([f"{folder}/t1.h5", f"{folder}/t2.h5"], f"{folder}/x.hist", force=True)
    assert (shown["tasks"], shown["streams"], shown["transitions"], shown["episodes"]) == (2, 2, 60, 10), shown
    refused("the action of transition 1 is 0.1", made, lambda f: vintix(f, np.arange(30) / 10))

    def plain(f, **given):
        n = np.arange(60)
        for name, values in {"observations": n % 5, "actions": n % 2, "rewards": n % 2, "dones": n // 3 % 5 == 4, "tasks": n % 3, **given}.items():
            if values is not None:
                f.create_dataset(name, data=values)

    shown = made(plain)
    assert (shown["streams"], shown["episodes"]) == (3, 12), shown
    assert made(lambda f: plain(f, tasks=np.array([b"a", b"b", b"c"])[np.arange(60) % 3]))["tasks"] == 3
    assert made(lambda f: plain(f, dones=None, timeouts=np.arange(60) // 3 % 5 == 4))["episodes"] == 12
    refused("tasks holds 0.5", made, lambda f: plain(f, tasks=np.arange(60) / 2))
    refused("holds no transitions", made, lambda f: plain(f, **{k: [] for k in ("observations", "actions", "rewards", "dones", "tasks")}))
    refused("neither episodes of Minari's", made, lambda f: None)
    refused("no such file", haul.from_hdf5, f"{folder}/none.h5", f"{folder}/x.hist")
    cut = pathlib.Path(f"{folder}/x.h5")
    made(xland)
    cut.write_bytes(cut.read_bytes()[:-1000])
    refused("is no HDF5 file, or is damaged", haul.from_hdf5, cut, f"{folder}/x.hist")
    n = np.arange(60)
    shown = haul.load_histories({"observations": np.stack([n - 5, n]).T, "actions": (n % 2).astype(">i8"), "rewards": list(range(60)), "dones": n % 5 == 4, "tasks": ["a"] * 30 + ["b"] * 30,
                                 "streams": None}, f"{folder}/x.hist", force=True)
    assert (shown["tasks"], shown["fields"], shown["episodes"]) == (2, 2, 12), shown
    print("HDF5 files keep their numbers")


if __name__ == "__main__":
    needs.run(agents)
