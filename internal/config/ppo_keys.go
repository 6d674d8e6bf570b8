package config

import "math"

// ppoKeys is the schema of the learner whose histories are kept. As in keys.go, every key but
// include needs a line in configs/ppo_default.yaml and, unless it is without effect, a field in
// PPO, in this order, and an explanation must be true of the program.
var ppoKeys = newSchema(
	include(),
	text("env", Honoured, "darkroom: a square of cells, a goal that is not seen, reward 1 for every step on it. keydoor, Dark Key-to-Door: a key and a door that are not seen, reward 1 on the key and after it 1 on the door, once each in an episode. A file with this key is known as its settings.", EnvDarkRoom, EnvKeyDoor),
	integer("grid_size", between(2, 16), Honoured, "Cells along a side, at most what a history's byte for a cell holds. Every cell is one goal, or every two cells, a key's and a door's; an episode starts in the centre."),
	integer("dim_states", between(2, 2), Differently, "Always 2: an agent sees its column and row. In keydoor the learner, not the agent that reads its history, also sees whether it holds the key and whether the door is open."),
	integer("dim_actions", between(1, 1), Differently, "Always 1: an action is one choice."),
	integer("num_actions", between(5, 5), Differently, "Always 5: the four neighbours, and to stay."),
	integer("horizon", between(1, 1<<16), Honoured, "Steps of an episode."),
	integer("goal", between(0, 256*255-1), Honoured, "What pays in `haul train --model PPO`: a cell, counted row by row. 0 is the upper left corner; no cell is further from the start than the corners; in keydoor the key's cell times the number of other cells, plus the door's place among them. `haul data` takes many in turn."),
	integer("n_goal", between(0, 256*255), Honoured, "Goals that `haul data` makes histories of, drawn by env_split_seed, so that train_env_ratio of them are trained on; 0 is every goal of the room. Whether a goal is held out does not depend on it."),
	integer("env_split_seed", between(0, math.MaxInt64), Honoured, "Seed that splits the goals into those trained on and those held out."),
	float("train_env_ratio", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Share of the goals that are trained on, rounded to whole goals."),
	float("max_reward", moreThan(0), NoEffect, "Returns are compared with each goal's own optimum, which the distances of what pays give."),

	text("alg", Honoured, "The learner whose histories are kept.", "PPO"),
	text("policy", Honoured, "An actor and a critic that share two hidden layers.", "MlpPolicy"),
	integer("n_steps", upTo(1, mostRows), Honoured, "Steps of each stream between two passes of learning."),
	integer("batch_size", upTo(1, mostRows), Honoured, "Steps in a batch of the learner."),
	integer("n_epochs", atLeast(1), Honoured, "Passes over the steps gathered."),
	integer("alg_seed", between(0, math.MaxInt64), Honoured, "Seed of the learners' weights, actions and batches."),
	integer("total_source_timesteps", atLeast(1), Honoured, "Steps of a goal's learner, all its streams together."),
	integer("n_stream", upTo(1, 1<<16), Honoured, "Environments in which a goal's one learner acts at once; each leaves a stream."),
	float("source_lr", moreThan(0), Honoured, "The learner's rate."),
	integer("n_process", between(0, 1<<16), Differently, "Learners that run at once, as threads; 0, or more than there are cores, is one for each core. The histories do not depend on it."),
	float("gamma", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Discount of later rewards. An episode's end is not seen, so values are sums without an end: at 1 they would have no limit."),
	float("gae_lambda", between(0, 1), Honoured, "Decay of generalized advantage estimation."),
	float("clip_range", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "How far the ratio of probabilities may leave 1."),
	float("ent_coef", atLeast(0), Honoured, "Weight of the entropy bonus."),
	float("vf_coef", atLeast(0), Honoured, "Weight of the critic's loss."),
	float("max_grad_norm", moreThan(0), Honoured, "The gradient is scaled down to this norm when it is longer."),
	integer("hidden", between(1, 4096), Honoured, "Width of the hidden layers."),
	float("target_kl", atLeast(0), Honoured, "The passes end when the policy has moved further than 1.5 times this from the one that gathered the steps; 0 never ends them."),
)
