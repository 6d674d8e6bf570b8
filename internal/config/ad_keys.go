package config

import "math"

// adKeys is the schema of an in-context agent's run. As in keys.go, every key except include has a
// line in configs/ad_default.yaml and, if it has an effect, a field in AD, in the same order. Texts
// must describe what the program does.
var adKeys = newSchema(
	include(),
	text("model", Honoured, "AD: the agent that is trained on learning histories. A file with this key holds settings of AD.", RecipeAD),

	integer("tf_n_embd", upTo(1, mostWidth), Honoured, "D, the width of a token's embedding; a multiple of tf_n_head."),
	integer("tf_n_layer", between(1, 1000), Honoured, "Layers of the transformer."),
	integer("tf_n_head", upTo(1, mostWidth), Honoured, "Heads of the attention."),
	integer("tf_n_kv_head", upTo(0, mostWidth), Honoured, "Heads of keys and values, each shared by a group of the tf_n_head heads of queries (grouped-query attention, Ainslie et al. 2023), so that an agent's cache of its context is smaller by as much. It divides tf_n_head; 0 means as many, 1 is multi-query attention."),
	integer("tf_n_inner", atLeast(0), NoEffect, "The feed-forward layers are 4 times tf_n_embd wide; tf_dim_feedforward sets another width."),
	integer("tf_dim_feedforward", upTo(0, 4*mostWidth), Honoured, "Width of the feed-forward layers; 0 is 4 times tf_n_embd."),
	float("tf_dropout", fraction, Honoured, "Dropout of the attention and feed-forward outputs while training; off in tests and in use."),
	float("tf_attn_dropout", fraction, Honoured, "Dropout of the attention's weights while training; off in tests and in use."),
	text("tf_positions", Honoured, "How tokens are given positions: learned (a table of n_transit embeddings) or rotary (queries and keys are rotated by their positions, Su et al. 2021, so that attention depends on the distance of two tokens, without learned weights).", PositionsLearned, PositionsRotary),
	boolean("flash_attn", NoEffect, "Attention never writes its weights to memory, so there is nothing to switch on."),

	integer("n_transit", between(1, 1<<16), Honoured, "The longest context in tokens, which is the length of the position table. Positions begin at 0 again after pruning."),
	boolean("use_compressed_context", Honoured, "true: the context is a previous and a current region, and the agent learns to end a region; false: the context is the latest transitions, at most n_transit, and a full context drops its oldest episode."),
	integer("compress_interval", between(1, 1<<16), Honoured, "Transitions of the longest region. No effect without use_compressed_context."),
	integer("compress_min", between(0, 1<<16), Honoured, "Transitions of the shortest region: lengths are drawn from compress_min and every further whole episode up to compress_interval. 0, or compress_interval itself, makes all regions that long."),
	integer("region_ahead", between(0, 1<<16), Honoured, "The most episodes left out between the previous and the current region; 0 makes them adjacent."),
	boolean("last_observation", Honoured, "true: a token also holds the observation before the last action. If an episode ends with its task, one token then shows where the reward was earned."),
	boolean("rename", Honoured, "true: in every training sequence, things that differ only by name (in XLand-MiniGrid objects) swap names at random, so that an agent learns what they do and not which they are. Tests keep the names."),

	integer("train_n_stream", upTo(0, mostRows), Honoured, "Number of streams per goal to train on, from the first; for imported histories 0 means all."),
	integer("train_source_timesteps", atLeast(0), Honoured, "Number of transitions per stream to train on, from the first; for imported histories 0 means all."),
	text("labels", Honoured, "What an agent learns to do: actions (what the learner did: algorithm distillation); best (the best action in hindsight over the whole history: decision-pretrained transformer; the histories must hold it); found (the learner's action until the context has shown a reward, then the best one); seek (in rooms: until then a shortest way to a cell that the context has not shown, then the best one); auto (found if the histories hold best actions, or best if all their rewards are equal; else actions).", LabelsAuto, LabelsActions, LabelsBest, LabelsFound, LabelsSeek),
	text("method", Honoured, "How an agent learns to act: imitate (the labels, whatever their rewards) or iql (implicit Q-learning in context: values of actions are learned from rewards, and an action is imitated more the better it was than expected). iql runs on a CPU only.", MethodImitate, MethodIQL),
	float("iql_discount", fraction, Honoured, "Discount of later rewards per step, also across the ends of episodes. This key and the next three have no effect without method iql."),
	float("iql_expectile", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Expectile of the actions' values that is a state's value: 0.5 is their mean, near 1 their best."),
	float("iql_beta", upTo(0, 1000), Honoured, "Weight of an imitated action: exp(iql_beta times its advantage), at most 100; 0 imitates all actions alike. Rewards are divided by the world's largest."),
	float("iql_weight", moreThan(0), Honoured, "Weight of the values' losses beside that of the actions."),
	integer("num_workers", between(0, 1024), Honoured, "With --data host: workers that collate batches (--workers overrides it); with 0 the trainer does it. The order of the samples does not depend on it. No effect if the histories are on the device."),
	integer("prefetch", between(0, 1024), Honoured, "With --data host: batches that are collated ahead of the trainer."),

	integer("train_timesteps", atLeast(1), Honoured, "Iterations of the run, each with one update; the schedule ends with the last."),
	integer("train_batch_size", upTo(1, mostRows), Honoured, "Sequences in a batch."),
	integer("gradient_parts", between(1, 64), Honoured, gradientParts),
	integer("gradient_accumulation_steps", between(1, 1<<16), Honoured, "Batches whose gradients are averaged for one update."),
	text("mixed_precision", Differently, "On a GPU: no computes in fp32; bf16 in bf16 with fp32 sums and weights; fp16 runs as bf16, which has fp32's range and needs no loss scaling. The CPU computes in fp32 unless --precision says otherwise.", PrecisionFull, PrecisionFP16, PrecisionBF16),
	float("lr", moreThan(0), Honoured, "AdamW's rate after warm-up, before the cosine lowers it."),
	float("min_lr", atLeast(0), Honoured, "Final learning rate of the cosine schedule."),
	integer("num_warmup_steps", atLeast(0), Honoured, "Iterations over which the rate rises linearly to lr."),
	float("beta1", fraction, Honoured, "Decay of AdamW's first moment."),
	float("beta2", fraction, Honoured, "Decay of AdamW's second moment."),
	float("adam_eps", moreThan(0), Honoured, "Added to the root of AdamW's second moment."),
	float("weight_decay", atLeast(0), Honoured, "AdamW's decoupled weight decay."),
	float("gradient_clip_norm", moreThan(0), Honoured, "The gradient is scaled down to this norm when it is longer."),
	float("label_smoothing", fraction, Honoured, "Share of a label's weight that is spread over all of its head's classes, actions and token types alike."),
	float("average_decay", bounds{lo: 0, hi: 1, below: true}, Honoured, "d of a moving mean of the weights, updated every average_interval iterations: mean = d*mean + (1-d)*weights, at first the plain mean of all so far. Tests and agents use the mean and the best checkpoint holds it; training continues from the weights themselves. 0: no mean."),
	integer("average_interval", atLeast(1), Honoured, "Iterations between updates of that mean."),
	boolean("dynamics", NoEffect, actionsOnly),
	float("dynamics_strength", atLeast(0), NoEffect, actionsOnly),
	integer("seed", between(0, math.MaxInt64), Honoured, "Seed of every sample, mask and initial weight, and of the agents in use."),

	integer("summary_interval", atLeast(1), Honoured, "Iterations between points of the training curves."),
	integer("eval_interval", atLeast(1), Honoured, "Iterations between tests of loss and accuracy on held-out goals' histories."),
	integer("gen_interval", atLeast(1), Honoured, "Iterations between evaluations in context: agents that act on held-out goals."),
	integer("ckpt_interval", atLeast(1), Honoured, "Iterations between checkpoints."),
	integer("test_batch_size", upTo(1, mostRows), Honoured, "Sequences in a test."),
	integer("eval_episodes", upTo(1, mostRows), Honoured, "Episodes that an agent plays in an evaluation in context."),
	integer("eval_agents", upTo(1, mostRows), Honoured, "Agents on each held-out goal in an evaluation in context."),
	float("eval_temperature", between(1e-3, 1e3), Honoured, "Temperature at which those agents sample their actions and the ends of regions."),
	float("eval_search", between(0, 1e3), Honoured, "Temperature while an agent's context holds no reward above the world's lowest, so that it searches at one temperature and uses what it found at another; 0 means eval_temperature."),
	boolean("eval_tune", Honoured, "true: a run ends by testing its best weights on the held-out goals, at the temperatures that earned most on the validation goals (0.4, 0.7 or 1 with a reward in the context, and 0.7, 1 or 1.3 without); haul eval does the same. No effect without validation_goals."),
	integer("validation_goals", atLeast(0), Honoured, "Number of training goals that are kept for validation instead: nothing is learned from them, the run's tests and evaluations use them, and the best checkpoint is the one whose agents earn most there, so that held-out goals are used for no choice. With 0, tests and evaluations use the held-out goals, and the checkpoint with the lowest loss there is the best."),
)

const actionsOnly = "The agent learns actions and the ends of regions; it does not predict states or rewards."
