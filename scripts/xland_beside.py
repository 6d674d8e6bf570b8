"""Steps per second of XLand-MiniGrid: Haul beside the Python package xminigrid under JAX, in one run.

    go build -o bin/haul ./cmd/haul
    python scripts/xland_beside.py --haul bin/haul

Both step the same number of environments of XLand-MiniGrid-R1-9x9 under random actions, each with a
trivial task of its own, starts and views included. Rounds alternate, so that other work on the
machine touches both alike; medians are compared. The second comparison is by CPU seconds that the
processes used, which other work does not touch.
"""

import json
import os
import resource
import subprocess
import time

import needs

parser = needs.flags(__doc__)
parser.add_argument("--haul", default="bin/haul", help="the program")
parser.add_argument("--envs", type=int, default=4096, help="environments")
parser.add_argument("--steps", type=int, default=256, help="steps of each in a round")
parser.add_argument("--rounds", type=int, default=5, help="rounds of each")
args = parser.parse_args()
needs.packages("jax", "numpy", "xminigrid")
haul = needs.program(args.haul)

import jax
import jax.numpy as jnp
import numpy as np
import xminigrid
from xminigrid.types import RuleSet
from xminigrid.wrappers import GymAutoResetWrapper


OWN = 10  # rounds of a process of Haul's


def package():
    """A function that takes a key and runs a round."""
    env, params = xminigrid.make("XLand-MiniGrid-R1-9x9")
    env = GymAutoResetWrapper(env)
    rng = np.random.RandomState(0)
    n = args.envs
    goals, tiles = np.zeros((n, 5), np.uint8), np.zeros((n, 5, 2), np.uint8)
    kinds, colours = np.array([3, 4, 5, 7, 12, 11]), np.array([1, 2, 3, 4, 5, 6, 9, 10, 11, 8])
    tiles[..., 0], tiles[..., 1] = kinds[rng.randint(6, size=(n, 5))], colours[rng.randint(10, size=(n, 5))]
    goals[:, 0] = np.array([1, 3, 11, 13, 14, 12, 4, 7, 9, 10, 8])[rng.randint(11, size=n)]
    goals[:, 1:3], goals[:, 3:5] = tiles[:, 0], tiles[:, 1]
    params = params.replace(ruleset=RuleSet(goal=jnp.array(goals), rules=jnp.zeros((n, 1, 7), jnp.uint8), init_tiles=jnp.array(tiles)))
    timestep = jax.jit(jax.vmap(env.reset))(params, jax.random.split(jax.random.PRNGKey(0), n))

    @jax.jit
    def play(timestep, actions):
        def one(timestep, action):
            return jax.vmap(env.step)(params, timestep, action), None

        return jax.lax.scan(one, timestep, actions)[0]

    actions = jnp.asarray(rng.randint(6, size=(args.steps, n)), dtype=jnp.int32)

    def round():
        nonlocal timestep
        timestep = play(timestep, actions)
        timestep.observation.block_until_ready()

    round()  # compiles
    return round


def used(who):
    u = resource.getrusage(who)
    return u.ru_utime + u.ru_stime


def main():
    theirs, mine = [], []
    their_cpu = my_cpu = 0.0
    round = package()
    steps = args.envs * args.steps
    for _ in range(args.rounds):
        cpu, began = used(resource.RUSAGE_SELF), time.perf_counter()
        round()
        theirs.append(steps / (time.perf_counter() - began))
        their_cpu += used(resource.RUSAGE_SELF) - cpu
        cpu = used(resource.RUSAGE_CHILDREN)
        out = subprocess.run([haul, "bench", "xland", "--envs", str(args.envs), "--steps", str(args.steps), "--rounds", str(OWN), "--json"],
                             check=True, capture_output=True)
        mine.append(json.loads(out.stdout)["steps_per_second"])
        my_cpu += used(resource.RUSAGE_CHILDREN) - cpu
    # Haul's process warms up for a round and runs OWN on all cores and OWN on one; what else it does counts against it.
    by_cpu = [args.rounds * steps / their_cpu, (1 + 2 * OWN) * args.rounds * steps / my_cpu]
    a, b = float(np.median(theirs)), float(np.median(mine))
    print(f"{os.cpu_count()} cores, {args.envs} environments, {args.rounds} rounds of {steps} steps")
    print(f"xminigrid {xminigrid.__version__} under JAX {jax.__version__}: {a / 1e6:.3f} million steps/s, {by_cpu[0] / 1e6:.3f} per CPU second")
    print(f"haul: {b / 1e6:.3f} million steps/s, {by_cpu[1] / 1e6:.3f} per CPU second")
    print(f"ratio: {b / a:.1f} by the clock, {by_cpu[1] / by_cpu[0]:.1f} by CPU seconds")


needs.run(main)
