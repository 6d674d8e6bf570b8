"""Races Haul's training step against the same model in PyTorch, on the same cores, in one run.

  python scripts/race.py --haul bin/haul [--threads 2] [--rounds 5]      # needs torch (CPU, MKL)

Both sides draw instances, encode, sample, run the greedy baseline, score, go backward, clip and update: N = 10, batch 128, rollout
baseline, fp32. They take turns, a few seconds each; a side's figure is the median of its turns' medians. PyTorch runs
eagerly and compiled where its compiler works, and its fastest mode counts.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch

import gt_torch as gt

N, BATCH, CAPACITY, WIDTH, LAYERS, HEADS = 10, 128, 30, 128, 3, 4


class Step:
    """The training step an expert would write."""

    def __init__(self, compiled):
        torch.manual_seed(1)
        self.policy, self.frozen = gt.GT(WIDTH, LAYERS, HEADS), gt.GT(WIDTH, LAYERS, HEADS)
        self.frozen.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
        if compiled:
            for m in (self.policy, self.frozen):
                m.encode, m.logits = torch.compile(m.encode), torch.compile(m.logits, dynamic=True)

    def __call__(self):
        xy = torch.randint(0, 101, (BATCH, N + 1, 2)).float() / 100
        demand = torch.randint(1, 11, (BATCH, N + 1)).float() / CAPACITY
        demand[:, 0] = 0
        enc = self.policy.encode(xy, demand)
        with torch.no_grad():
            routes = gt.rollout(self.policy, tuple(e.detach() for e in enc), xy, demand, 1)
            base = gt.rollout(self.frozen, self.frozen.encode(xy, demand), xy, demand, 1, greedy=True).cost
        b, s, t = routes.actions.shape
        lg = self.policy.logits(enc, routes.cur.reshape(b, s * t), routes.left.reshape(b, s * t), routes.mask.reshape(b, s * t, -1))
        logp = torch.log_softmax(lg, -1).gather(2, routes.actions.reshape(b, s * t, 1)).view(b, s, t)
        loss = ((routes.cost - base) * logp.sum(2)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 2.0)
        self.optimizer.step()

    def turn(self, seconds):
        took, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(took) < 3:
            start = time.perf_counter()
            self()
            took.append(time.perf_counter() - start)
        return 1e3 * statistics.median(took)


def haul_turn(args, seconds, guess):
    rounds = max(11, int(1e3 * seconds / guess))
    line = subprocess.run([args.haul, "bench", "step", "--config", "tiny_1", "--device", "cpu", "--workers", str(args.threads), "--rounds", str(rounds), "--json"],
                          check=True, capture_output=True, text=True).stdout
    return json.loads(line)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--haul", default="haul")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--seconds", type=float, default=4, help="of a turn")
    ap.add_argument("--json", action="store_true")
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    modes = {"eager": Step(False)}
    modes["eager"].turn(1)
    try:
        compiled = Step(True)
        compiled.turn(1)
        modes["compiled"] = compiled
    except Exception as e:  # no C++ compiler, or a graph it cannot take
        print(f"torch.compile does not work here: {str(e).splitlines()[0]}")
    times, ours = {m: [] for m in modes}, []
    for _ in range(a.rounds):
        for name, step in modes.items():
            times[name].append(step.turn(a.seconds))
        ours.append(haul_turn(a, a.seconds, ours[-1]["ms_per_step"] if ours else 50))
    best = min(times, key=lambda m: statistics.median(times[m]))
    theirs, mine = statistics.median(times[best]), statistics.median(o["ms_per_step"] for o in ours)
    share = statistics.median(o["share_of_peak"] for o in ours)
    ratios = sorted(t / o["ms_per_step"] for t, o in zip(times[best], ours))
    out = {"torch": torch.__version__, "threads": a.threads, "torch_ms": {m: statistics.median(t) for m, t in times.items()}, "torch_best": best,
           "haul_ms": mine, "haul_device": ours[0]["device"], "haul_share_of_peak": share, "ratio": theirs / mine, "ratio_by_round": ratios}
    if a.json:
        print(json.dumps(out))
        return
    for name, t in times.items():
        print(f"PyTorch {torch.__version__} {name:9} {statistics.median(t):7.1f} ms a step  {BATCH / statistics.median(t) * 1e3:7.0f} instances/s")
    print(f"Haul {ours[0]['device']:24} {mine:7.1f} ms a step  {BATCH / mine * 1e3:7.0f} instances/s  {100 * share:.0f} % of the multiply-add peak")
    print(f"ratio to PyTorch's fastest ({best}): {theirs / mine:.2f}  (by round: {ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
