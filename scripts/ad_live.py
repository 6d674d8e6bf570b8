"""In-context agents of internal/recipe/agent in plain PyTorch: contexts of tokens, read whole at every step.

What a reader could break: the draws. Agent i's step t spends the words of Philox(seed, i, t, 13): 0 picks the action, 1 says whether the region ends.
"""

if __name__ == "__main__":  # a module: there is nothing to run
    raise SystemExit(__doc__.strip())

import numpy as np
import torch

from gt_torch import philox

AGENT = 13  # rng.Agent
TRANSITION, START, END = 0, 1, 2
MOVES = ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))  # stay, up, down, left, right


class Context:
    """Tokens (x, y, action, reward, type) of one agent; its position in the list is a token's position."""

    def __init__(self, compressed, longest, capacity, horizon):
        self.compressed, self.longest, self.capacity, self.horizon = compressed, longest, capacity, horizon
        self.tokens, self.open = [], 0
        if compressed:
            self.tokens.append((-1, -1, -1, -1, START))

    def observe(self, cell, action, reward):
        if not self.compressed and len(self.tokens) == self.capacity:
            del self.tokens[: min(self.horizon, self.capacity)]
        self.tokens.append((*cell, action, reward, TRANSITION))

    def region(self):
        return len(self.tokens) - self.open - 1

    def end(self):
        del self.tokens[: self.open]  # of two regions the older goes
        self.tokens.append((-1, -1, -1, -1, END))
        self.open = len(self.tokens)
        self.tokens.append((-1, -1, -1, -1, START))


def choose(logits, temperature, word):
    """One draw a row from the softmax of logits/temperature; the largest at temperature 0."""
    if temperature == 0:
        return logits.argmax(-1)
    weight = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    below = weight.cumsum(-1) > (word >> np.uint64(8)).astype(np.float64)[:, None] * 2.0**-24 * weight.sum(-1, keepdims=True)
    return np.where(below.any(-1), below.argmax(-1), logits.argmax(-1))


def parts(goal):
    """What pays, in order: the one cell of Dark Room, or a key and a door, which pay once each."""
    return [tuple(goal["key"]), tuple(goal["door"])] if isinstance(goal, dict) else [tuple(goal)]


def returns(model, report, settings):
    """What the agents of an evaluation's report get when they live here: [goals, agents, episodes]."""
    size, horizon, each, episodes = report["size"], report["horizon"], report["agents_per_goal"], report["episodes"]
    goals = [parts(g["goal"]) for g in report["goals"] for _ in range(each)]
    compressed = settings["use_compressed_context"].lower() == "true"
    contexts = [Context(compressed, int(settings["compress_interval"]), int(settings["n_transit"]), horizon) for _ in goals]
    start = (size // 2, size // 2)
    cells, found = [start] * len(goals), [0] * len(goals)  # parts of a key and a door that an episode has found
    for c in contexts:
        c.observe(start, -1, -1)
    out = np.zeros((len(goals), episodes))
    for t in range(episodes * horizon):
        logits = last_logits(model, contexts)
        words = philox(report["seed"], np.arange(len(goals)), t, AGENT)
        actions = choose(logits[:, : model.actions], report["temperature"], words[0])
        ends = choose(logits[:, model.actions :][:, [TRANSITION, END]], report["temperature"], words[1])
        for i, c in enumerate(contexts):
            dx, dy = MOVES[actions[i]]
            cells[i] = (min(max(cells[i][0] + dx, 0), size - 1), min(max(cells[i][1] + dy, 0), size - 1))
            reward = int(found[i] < len(goals[i]) and cells[i] == goals[i][found[i]])
            if len(goals[i]) > 1:
                found[i] += reward
            out[i, t // horizon] += reward
            if t % horizon == horizon - 1:
                cells[i], found[i] = start, 0
            if compressed and (c.region() >= c.longest or ends[i] == 1):
                c.end()
            c.observe(cells[i], int(actions[i]), reward)
    return torch.from_numpy(out).view(len(report["goals"]), each, episodes)


def last_logits(model, contexts):
    """The logits of each context's last token; what pads the shorter ones comes after it and is not seen."""
    longest = max(len(c.tokens) for c in contexts)
    index = torch.full((len(contexts), longest, 6), -1)
    for i, c in enumerate(contexts):
        index[i, : len(c.tokens), :5] = torch.tensor(c.tokens)
    index[..., 5] = torch.arange(longest)
    with torch.no_grad():
        logits = model(index, torch.zeros(len(contexts), longest, dtype=torch.long))
    return logits[torch.arange(len(contexts)), [len(c.tokens) - 1 for c in contexts]].double().numpy()
