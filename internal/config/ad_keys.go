package config

import "math"

// adKeys is the schema of an in-context agent's run. As in keys.go, every key but include needs a
// line in configs/ad_default.yaml and, unless it is without effect, a field in AD, in this order,
// and an explanation must be true of the program.
var adKeys = newSchema(
	include(),
	text("model", Honoured, "AD: the agent that learns from learning histories. A file with this key is known as its settings.", RecipeAD),

	integer("tf_n_embd", upTo(1, mostWidth), Honoured, "D, the width of a token's embedding; a multiple of tf_n_head."),
	integer("tf_n_layer", between(1, 1000), Honoured, "Layers of the transformer."),
	integer("tf_n_head", upTo(1, mostWidth), Honoured, "Heads of the attention."),
	integer("tf_n_inner", atLeast(0), NoEffect, "The feed-forward layers are 4 times tf_n_embd wide; tf_dim_feedforward sets another width."),
	integer("tf_dim_feedforward", upTo(0, 4*mostWidth), Honoured, "Width of the feed-forward layers; 0 is 4 times tf_n_embd."),
	float("tf_dropout", fraction, Honoured, "Dropout of the attention and feed-forward outputs while training; off in tests and in use."),
	float("tf_attn_dropout", fraction, Honoured, "Dropout of the attention's weights while training; off in tests and in use."),
	text("tf_positions", Honoured, "How a token knows its place in the context: learned, a table of n_transit embeddings, or rotary: queries and keys turn with their positions (Su et al. 2021), so that attention sees how far apart two tokens are, and nothing is learned of it.", PositionsLearned, PositionsRotary),
	boolean("flash_attn", NoEffect, "Attention never writes its weights to memory, so there is nothing to switch on."),

	integer("n_transit", between(1, 1<<16), Honoured, "The longest context in tokens, which is the length of the position table. Positions begin at 0 again after pruning."),
	boolean("use_compressed_context", Honoured, "true: the context is a previous and a current region, and the agent learns to end a region; false: the latest transitions, n_transit at most; when they are that many the oldest episode goes."),
	integer("compress_interval", between(1, 1<<16), Honoured, "Transitions of the longest region. No effect without use_compressed_context."),
	integer("compress_min", between(0, 1<<16), Honoured, "Transitions of the shortest region: lengths are drawn from compress_min and every further whole episode up to compress_interval. 0, or compress_interval itself, makes all regions that long."),
	integer("region_ahead", between(0, 1<<16), Honoured, "The most episodes left out between the previous and the current region; 0 makes them adjacent."),
	boolean("last_observation", Honoured, "true: a token also tells what was observed before the last action. Where an episode ends with its task, an agent learns from it in one token where it was paid."),
	boolean("rename", Honoured, "true: in every sequence to learn from, things that differ by name alone (in XLand-MiniGrid objects) swap names by chance, so that an agent learns what they do and not which they are. Tests have the names as they are."),

	integer("train_n_stream", upTo(0, mostRows), Honoured, "Streams of each goal that are trained on, from the first; 0, of imported histories, takes all."),
	integer("train_source_timesteps", atLeast(0), Honoured, "Transitions of each stream that are trained on, from the first; 0, of imported histories, takes all."),
	text("labels", Honoured, "What an agent learns to do: actions, what the learner did (algorithm distillation), or best, the action that the whole history holds best in hindsight (decision-pretrained transformer), of histories that have it; found: the learner's action until the context has shown a reward, then the best; seek, in rooms: until then a shortest way to a cell that the context has not shown, then the best.", LabelsActions, LabelsBest, LabelsFound, LabelsSeek),
	text("method", Honoured, "How an agent learns to act: imitate (the labels, whatever they were paid), or iql, implicit Q-learning in context: values of actions are learned from rewards, and what was done is imitated by how much better it was than expected. iql runs on a CPU alone.", MethodImitate, MethodIQL),
	float("iql_discount", fraction, Honoured, "What a reward one step later counts, across the ends of episodes. No effect without method iql, as the three keys that follow."),
	float("iql_expectile", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "Which expectile of the actions' values is a state's: 0.5 their mean, near 1 their best."),
	float("iql_beta", upTo(0, 1000), Honoured, "An action weighs exp(iql_beta times its advantage) where it is imitated, at most 100; 0 imitates all alike. Rewards count as shares of the world's largest."),
	float("iql_weight", moreThan(0), Honoured, "Weight of the values' losses beside that of the actions."),
	integer("num_workers", between(0, 1024), Honoured, "With --data host: workers that collate batches, --workers in its place; 0 leaves it to the trainer. The order of the samples does not depend on it. No effect where the histories live on the device."),
	integer("prefetch", between(0, 1024), Honoured, "With --data host: batches that are collated ahead of the trainer."),

	integer("train_timesteps", atLeast(1), Honoured, "Iterations of the run, an update each; the schedule ends with the last."),
	integer("train_batch_size", upTo(1, mostRows), Honoured, "Sequences in a batch."),
	integer("gradient_parts", between(1, 64), Honoured, gradientParts),
	integer("gradient_accumulation_steps", between(1, 1<<16), Honoured, "Batches whose gradients are averaged for one update."),
	text("mixed_precision", Differently, "On a GPU: no computes in fp32; bf16 in bf16 with fp32 sums and weights; fp16 runs as bf16, which has fp32's range and needs no loss scaling. The CPU computes in fp32 unless --precision says otherwise.", PrecisionFull, PrecisionFP16, PrecisionBF16),
	float("lr", moreThan(0), Honoured, "AdamW's rate after warm-up, before the cosine lowers it."),
	float("min_lr", atLeast(0), Honoured, "Where the cosine ends."),
	integer("num_warmup_steps", atLeast(0), Honoured, "Iterations over which the rate rises linearly to lr."),
	float("beta1", fraction, Honoured, "Decay of AdamW's first moment."),
	float("beta2", fraction, Honoured, "Decay of AdamW's second moment."),
	float("adam_eps", moreThan(0), Honoured, "Added to the root of AdamW's second moment."),
	float("weight_decay", atLeast(0), Honoured, "AdamW's decoupled weight decay."),
	float("gradient_clip_norm", moreThan(0), Honoured, "The gradient is scaled down to this norm when it is longer."),
	float("label_smoothing", fraction, Honoured, "Share of a label's weight that is spread over all of its head's classes, actions and token types alike."),
	float("average_decay", bounds{lo: 0, hi: 1, below: true}, Honoured, "d of a moving mean of the weights, moved every average_interval iterations: mean = d*mean + (1-d)*weights, and the plain mean of all until then. It is what tests and agents judge and the best checkpoint holds; training goes on from the weights themselves. 0: no mean."),
	integer("average_interval", atLeast(1), Honoured, "Iterations between moves of that mean."),
	boolean("dynamics", NoEffect, actionsOnly),
	float("dynamics_strength", atLeast(0), NoEffect, actionsOnly),
	integer("seed", between(0, math.MaxInt64), Honoured, "Seed of every sample, mask and initial weight, and of the agents in use."),

	integer("summary_interval", atLeast(1), Honoured, "Iterations between points of the training curves."),
	integer("eval_interval", atLeast(1), Honoured, "Iterations between tests of loss and accuracy on held-out goals' histories."),
	integer("gen_interval", atLeast(1), Honoured, "Iterations between evaluations in context: agents that act on held-out goals."),
	integer("ckpt_interval", atLeast(1), Honoured, "Iterations between checkpoints."),
	integer("test_batch_size", upTo(1, mostRows), Honoured, "Sequences in a test."),
	integer("eval_episodes", upTo(1, mostRows), Honoured, "Episodes that an agent lives through in an evaluation in context."),
	integer("eval_agents", upTo(1, mostRows), Honoured, "Agents on each held-out goal in an evaluation in context."),
	float("eval_temperature", between(1e-3, 1e3), Honoured, "Temperature at which those agents sample their actions and the ends of regions."),
	float("eval_search", between(0, 1e3), Honoured, "The temperature in its place while an agent's context holds no reward above the world's lowest, so that it searches at one temperature and uses what it found at another; 0 is eval_temperature."),
	boolean("eval_tune", Honoured, "true: a run ends with its best weights on the goals held out, at the temperatures that earned most on the goals kept for validation (of 0.4, 0.7 and 1 while a reward is in the context, and 0.7, 1 and 1.3 while none is), and haul eval tunes likewise. No effect without validation_goals."),
	integer("validation_goals", atLeast(0), Honoured, "Goals to learn from that are kept for validation instead: nothing is learned from them, the run's tests and evaluations are made on them, and the best checkpoint is the one whose agents earn most there, so that the goals held out choose nothing. With 0 they are made on the goals held out, and the lowest loss there is the best."),
)

const actionsOnly = "The agent learns actions and the ends of regions; it does not predict states or rewards."
