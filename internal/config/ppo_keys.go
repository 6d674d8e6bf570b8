package config

import "math"

// ppoKeys is the schema of the learner that generates histories. As in keys.go, every key except
// include has a line in configs/ppo_default.yaml and, if it has an effect, a field in PPO, in the
// same order. Texts must describe what the program does.
var ppoKeys = newSchema(
	include(),
	text("env", Honoured, "darkroom: a square of cells with a hidden goal, reward 1 for every step on it. keydoor (Dark Key-to-Door): a hidden key and a hidden door, reward 1 for the key and after it 1 for the door, once each per episode. A file with this key holds settings of PPO.", EnvDarkRoom, EnvKeyDoor),
	integer("grid_size", between(2, 16), Honoured, "Cells along a side of the room. Every cell is a goal (in keydoor every pair of cells); an episode starts in the centre."),
	integer("dim_states", between(2, 2), Differently, "Always 2: an agent sees its column and row. In keydoor the learner, not the agent that reads its history, also sees whether it holds the key and whether the door is open."),
	integer("dim_actions", between(1, 1), Differently, "Always 1: an action is one choice."),
	integer("num_actions", between(5, 5), Differently, "Always 5: the four neighbours, and to stay."),
	integer("horizon", between(1, 1<<16), Honoured, "Steps of an episode."),
	integer("goal", between(0, 256*255-1), Honoured, "The goal of `haul train --model PPO`: the number of a cell, counted row by row; 0 is the upper left corner. In keydoor it is the key's cell times the number of other cells, plus the door's place among them. `haul data` uses many goals."),
	integer("n_goal", between(0, 256*255), Honoured, "Number of goals for which `haul data` makes histories, drawn by env_split_seed; the share train_env_ratio of them is for training. 0: every goal of the room. Whether a goal is held out does not depend on this number."),
	integer("env_split_seed", between(0, math.MaxInt64), Honoured, "Seed that splits the goals into those trained on and those held out."),
	float("train_env_ratio", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Share of the goals that are trained on, rounded to whole goals."),
	float("max_reward", moreThan(0), NoEffect, "Returns are compared with each goal's own optimum, which follows from distances."),

	text("alg", Honoured, "The learner whose histories are kept.", "PPO"),
	text("policy", Honoured, "An actor and a critic that share two hidden layers.", "MlpPolicy"),
	integer("n_steps", upTo(1, mostRows), Honoured, "Steps of each stream between two passes of learning."),
	integer("batch_size", upTo(1, mostRows), Honoured, "Steps in a batch of the learner."),
	integer("n_epochs", atLeast(1), Honoured, "Passes over the steps gathered."),
	integer("alg_seed", between(0, math.MaxInt64), Honoured, "Seed of the learners' weights, actions and batches."),
	integer("total_source_timesteps", atLeast(1), Honoured, "Steps of a goal's learner, over all its streams together."),
	integer("n_stream", upTo(1, 1<<16), Honoured, "Environments in which a goal's learner acts at the same time; each gives one stream."),
	float("source_lr", moreThan(0), Honoured, "The learner's rate."),
	integer("n_process", between(0, 1<<16), Differently, "Learners that run at the same time, as threads; 0, or more than there are cores, means one per core. The histories do not depend on it."),
	float("gamma", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Discount of later rewards, below 1: the learner does not see the end of an episode, so undiscounted values would be infinite."),
	float("gae_lambda", between(0, 1), Honoured, "Decay of generalized advantage estimation."),
	float("clip_range", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "How far the ratio of probabilities may differ from 1."),
	float("ent_coef", atLeast(0), Honoured, "Weight of the entropy bonus."),
	float("vf_coef", atLeast(0), Honoured, "Weight of the critic's loss."),
	float("max_grad_norm", moreThan(0), Honoured, "The gradient is scaled down to this norm when it is longer."),
	integer("hidden", between(1, 4096), Honoured, "Width of the hidden layers."),
	float("target_kl", atLeast(0), Honoured, "Passes end early when the policy's divergence from the one that gathered the steps exceeds 1.5 times this; 0: never."),
)
