"""Write internal/world/xland/testdata/parity.json: checksums of steps of the Python package xminigrid.

    pip install xminigrid==0.9.3
    cd internal/world/xland/testdata
    python ../../../../scripts/xland_fixture.py --generator ruleset_generator.py parity.json
    python ../../../../scripts/xland_fixture.py --benchmark benchmark.bz2

Each case is a layout, rulesets and a seed. Environment e of n plays ruleset e modulo their number,
begins with key e of split(PRNGKey(seed), n) and begins again when an episode ends
(GymAutoResetWrapper). Step t takes action mix(t*n + e) modulo 6, mix being the finalizer of
MurmurHash3. A checksum (CRC-32) covers 64 steps, step after step: the views of all environments as
tile*12 + colour, their rewards as float32, little endian, and a byte each that says whether the
episode ended. --generator is scripts/ruleset_generator.py of the public repository; with it the
rulesets that it draws are kept as checksums too.
"""

import importlib.util
import json
import os
import zlib

import needs

parser = needs.flags(__doc__)
parser.add_argument("--generator", help="the public generator's file")
parser.add_argument("--benchmark", action="store_true", help="write twelve rulesets as the package keeps benchmarks")
parser.add_argument("out", help="file to write")
args = parser.parse_args()
needs.packages("jax", "numpy", "xminigrid")

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")  # beside other work

import jax
import jax.numpy as jnp
import numpy as np
import xminigrid
from xminigrid.benchmarks import save_bz2_pickle
from xminigrid.core.observation import minigrid_field_of_view
from xminigrid.types import RuleSet
from xminigrid.wrappers import GymAutoResetWrapper

BLOCK = 64
FLOOR = (1, 7)


def mix(x):
    x = x.astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def rulesets(seed, size, count):
    """Rulesets of few tiles, so that rules and goals of every kind happen often."""
    rng = np.random.RandomState(seed)
    tiles = [(3, 1), (4, 2), (5, 3), (7, 4), (11, 5), (12, 6)]
    out = []
    for i in range(count):
        few = [tiles[j] for j in rng.permutation(len(tiles))[:4]]
        pick = lambda: few[rng.randint(4)]
        kind = i % 15
        goal = [kind, 0, 0, 0, 0]
        if kind == 2:
            goal[1:3] = (6, 2)
        elif kind == 5:
            goal[1:5] = [*pick(), rng.randint(1, size - 1), rng.randint(1, size - 1)]
        elif kind == 6:
            goal[1:3] = [rng.randint(1, size - 1), rng.randint(1, size - 1)]
        elif kind in (4, 7, 8, 9, 10):
            goal[1:5] = [*pick(), *pick()]
        elif kind != 0:
            goal[1:3] = pick()
        rules = []
        for j in range(5):
            rule = [(i + j * 5) % 12, 0, 0, 0, 0, 0, 0]
            product = FLOOR if rng.rand() < 0.2 else pick()
            if rule[0] in (3, 4, 5, 6, 7):
                rule[1:7] = [*pick(), *pick(), *product]
            elif rule[0] != 0:
                rule[1:5] = [*pick(), *product]
            rules.append(rule)
        objects = [pick() for _ in range(8)] + [(6, 2), (8, 4), (0, 0)]
        if i % 3 == 0:
            objects[2] = (0, 0)
        out.append((goal, rules, objects))
    return out


def play(layout, size, sets, envs, steps, seed, opaque=False, view=5):
    env, params = xminigrid.make(f"XLand-MiniGrid-{layout}-{size}x{size}", view_size=view)
    env = GymAutoResetWrapper(env)
    own = [sets[e % len(sets)] for e in range(envs)]
    params = params.replace(
        ruleset=RuleSet(
            goal=jnp.array([s[0] for s in own], dtype=jnp.uint8),
            rules=jnp.array([s[1] for s in own], dtype=jnp.uint8),
            init_tiles=jnp.array([s[2] for s in own], dtype=jnp.uint8),
        )
    )
    keys = jax.random.split(jax.random.PRNGKey(seed), envs)
    reset = jax.jit(jax.vmap(env.reset))

    def look(state):
        return minigrid_field_of_view(state.grid, state.agent, view, view)

    @jax.jit
    def block(timestep, actions):
        def one(timestep, action):
            timestep = jax.vmap(env.step)(params, timestep, action)
            seen = jax.vmap(look)(timestep.state) if opaque else timestep.observation
            tiles = seen[..., 0].astype(jnp.uint8) * 12 + seen[..., 1].astype(jnp.uint8)
            return timestep, (tiles, timestep.reward.astype(jnp.float32), timestep.last())

        return jax.lax.scan(one, timestep, actions)

    timestep = reset(params, keys)
    sums, paid, ended, earned = [], 0, 0, 0.0
    first = np.asarray(timestep.observation)
    start = zlib.crc32((first[..., 0] * 12 + first[..., 1]).astype(np.uint8).tobytes())
    for begin in range(0, steps, BLOCK):
        t = np.arange(begin, begin + BLOCK, dtype=np.uint32)[:, None] * np.uint32(envs)
        actions = mix(t + np.arange(envs, dtype=np.uint32)[None]) % 6
        timestep, (tiles, rewards, ends) = block(timestep, jnp.asarray(actions, dtype=jnp.int32))
        tiles, rewards, ends = np.asarray(tiles), np.asarray(rewards), np.asarray(ends)
        crc = 0
        for i in range(BLOCK):
            crc = zlib.crc32(tiles[i].tobytes(), crc)
            crc = zlib.crc32(rewards[i].astype("<f4").tobytes(), crc)
            crc = zlib.crc32(ends[i].astype(np.uint8).tobytes(), crc)
        sums.append(crc)
        paid, ended, earned = paid + int((rewards > 0).sum()), ended + int(ends.sum()), earned + float(rewards.sum(dtype=np.float64))
    print(f"{layout}-{size} view {view} opaque {opaque}: {envs * steps} steps, {ended} episodes ended, {paid} paid")
    return {
        "layout": layout, "size": size, "view": view, "opaque": opaque, "envs": envs, "steps": steps, "seed": seed, "start": start,
        "rulesets": [{"goal": s[0], "rules": s[1], "tiles": s[2]} for s in sets],
        "ended": ended, "paid": paid, "crc32": sums,
    }


DRAWN = {
    "trivial": (0, 0, 3, False, False, False, 0.5),
    "small": (1, 2, 2, False, True, True, 0.3),
    "medium": (2, 3, 2, False, True, True, 0.1),
    "high": (3, 4, 1, False, True, True, 0.1),
}


def drawn(path, name, count, seed):
    """Checksums of the rulesets that the public generator draws, 100 at a time: goal, rules and
    objects without padding, each behind a byte that says how many there are."""
    spec = importlib.util.spec_from_file_location("ruleset_generator", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.random.seed(seed)
    sums, crc, sets = [], 0, []
    for i in range(count):
        r = module.sample_ruleset(*DRAWN[name])
        goal = [int(v) for v in np.asarray(r["goal"].encode())]
        rules = [[int(v) for v in np.asarray(x.encode())] for x in r["rules"]]
        rules = [x for x in rules if x[0] != 0]
        tiles = [[int(v) for v in x] for x in r["init_tiles"]]
        sets.append((goal, rules, tiles))
        data = bytes(goal) + bytes([len(rules)]) + bytes(sum(rules, [])) + bytes([len(tiles)]) + bytes(sum(tiles, []))
        crc = zlib.crc32(data, crc)
        if i % 100 == 99:
            sums.append(crc)
            crc = 0
    return {"name": name, "seed": seed, "count": count, "crc32": sums}, sets


def padded(sets, rules, tiles):
    return [(g, r + [[0] * 7] * (rules - len(r)), t + [[0, 0]] * (tiles - len(t))) for g, r, t in sets]


def main():
    if args.benchmark:
        sets = rulesets(7, 9, 12)
        part = lambda i: jnp.array([s[i] for s in sets], dtype=jnp.uint8)
        save_bz2_pickle({"generation_config": {"random_seed": 7}, "goals": part(0), "rules": part(1), "init_tiles": part(2),
                         "num_rules": jnp.full((12, 1), 5, dtype=jnp.uint8)}, args.out)
        return
    out = {"package": "xminigrid " + xminigrid.__version__, "jax": jax.__version__, "drawn": []}
    trivial = None
    if args.generator:
        for name, count in ("trivial", 1000), ("small", 500), ("medium", 300), ("high", 200):
            sums, sets = drawn(args.generator, name, count, 42)
            out["drawn"].append(sums)
            if name == "trivial":
                trivial = padded(sets[:60], 1, 5)
            if name == "small":
                small = padded(sets[:60], 4, 10)
            print("drew", name)
    cases = [play("R1", 9, rulesets(1, 9, 60), 512, 1024, 1)]
    if trivial:
        cases.append(play("R1", 9, trivial, 240, 1024, 2))
        cases.append(play("R1", 9, small, 240, 512, 3))
    for layout, size in ("R2", 9), ("R4", 11), ("R6", 13), ("R9", 16):
        cases.append(play(layout, size, rulesets(size, size, 60), 120, 512, size))
    cases.append(play("R4", 9, rulesets(4, 9, 30), 60, 256, 4, opaque=True))
    cases.append(play("R2", 11, rulesets(5, 11, 30), 60, 256, 5, view=7))
    cases.append(play("R1", 9, rulesets(6, 9, 30), 60, 256, 6, view=3))
    out["cases"] = cases
    print(sum(c["envs"] * c["steps"] for c in cases), "steps")
    text = json.dumps(out, separators=(",", ":"))
    with open(args.out, "w") as f:
        f.write(text + "\n")


needs.run(main)
