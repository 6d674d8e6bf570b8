package config

import (
	"math"
	"slices"
)

// gtKeys is the schema of a routing run. Every key has a line in configs/default.yaml and, if it
// has an effect, a field in Config, in the same order; a test compares the three. Texts must
// describe what the program does: change both in one commit.
var gtKeys = newSchema(slices.Concat([]Entry{
	include(),
	text("working_dir_path", NoEffect, "Haul writes to --out, or to a new folder under runs/."),
}, problemKeys(), []Entry{
	integer("training.num_batches_per_epoch", atLeast(1), Honoured, "Steps in an epoch. Each step draws its own instances; none is used twice."),
	integer("training.batch_size", upTo(1, mostRows), Honoured, "Instances in a step."),
	integer("training.gradient_parts", between(0, 64), Honoured, gradientPartsOrFit),
	integer("training.num_epochs", atLeast(1), Honoured, "Epochs in the run; the schedules end with the last."),
	float("training.learning_rate", moreThan(0), Honoured, "The optimizer's rate after warm-up, before the schedule lowers it."),
	integer("training.validation_frequency", atLeast(1), Honoured, "Epochs between validations."),
	integer("training.validation_instances", upTo(2, mostInstances), Honoured, "Instances in the fixed validation set."),
	text("training.validation_decode", Honoured, "Decoder for validation and test instances: greedy (one route), pomo (the best over every first customer) or pomo8 (also under the 8 symmetries). With model.start_views the routes are sampled, because such a policy is used that way. A resumed run may change it.", "greedy", "pomo", "pomo8"),
	boolean("training.use_geometric_mean", Honoured, "Report costs as geometric instead of arithmetic means; the history's mean_type says which. Learning is the same."),

	integer("model.input_dim", between(3, 3), Differently, "Always 3: x, y, demand/capacity. The model adds the depot flag itself."),
	integer("model.hidden_dim", upTo(1, mostWidth), Honoured, "d, the width of a node's embedding; a multiple of num_heads."),
	integer("model.num_heads", upTo(1, mostWidth), Honoured, "Heads of the encoder's attention and of the decoder's glimpse."),
	integer("model.num_layers", between(1, 1000), Honoured, "Layers of the encoder."),
	float("model.transformer_dropout", fraction, Honoured, "Dropout after the attention and feed-forward outputs in training; off in validation and in the baseline. Shipped files use 0."),
	integer("model.feedforward_multiplier", between(1, 1000), Honoured, "Width of the gated feed-forward layer, as a multiple of hidden_dim."),
	float("model.pointer_distance", atLeast(0), Honoured, "How strongly near nodes are preferred from the beginning: this number times the logarithm of the distance is subtracted from the pointer's score, before tanh. 0: no preference except what is learned."),
	boolean("model.pointer_pairs", Honoured, "true: a learned score of every pair of nodes is added to the pointer's score, before tanh, so that the place and the load of a vehicle do not act only through the few heads of the glimpse."),
	boolean("model.start_views", Honoured, "true: the policy chooses the first customer of start s as if the vehicle were at customer s, instead of being forced to begin there, because most customers are not at an end of a good route. This applies to training and to decoders that sample routes from every customer; greedy routes are forced to begin there. Needs baseline.type pomo."),

	integer("model_gat.gat_hidden_dim", atLeast(1), NoEffect, unusedGAT),
	integer("model_gat.gat_edge_dim", atLeast(1), NoEffect, unusedGAT),
	integer("model_gat.gat_layers", atLeast(1), NoEffect, unusedGAT),
	float("model_gat.gat_dropout", fraction, NoEffect, unusedGAT),
	float("model_gat.gat_negative_slope", atLeast(0), NoEffect, unusedGAT),

	boolean("training_advanced.use_adaptive_temperature", Honoured, "true: the temperature follows the validation results, within [temp_min, temp_start]; false: cosine from temp_start to temp_min."),
	float("training_advanced.temp_start", between(1e-3, 1e3), Honoured, "Temperature of the training samples at the start; the highest it takes."),
	float("training_advanced.temp_min", between(1e-3, 1e3), Honoured, "The lowest temperature; equal to temp_start, it is constant."),
	float("training_advanced.temp_adaptation_rate", fraction, Honoured, "r of the adaptive temperature: T(1-r) after a gain, T(1+r) otherwise."),
	float("training_advanced.entropy_coef", atLeast(0), Honoured, "Weight of the entropy bonus at the start."),
	float("training_advanced.entropy_min", atLeast(0), Honoured, "Weight of the entropy bonus at the end, reached by cosine."),
	text("training_advanced.optimizer", Honoured, "adamw, or muon: Muon updates weight matrices in square blocks, with steps about equally long in every direction, and AdamW updates the rest. Muon needs fewer steps, at the same learning rate.", "adamw", "muon"),
	float("training_advanced.weight_decay", atLeast(0), Honoured, "Decoupled weight decay, AdamW's and Muon's."),
	float("training_advanced.gradient_clip_norm", moreThan(0), Honoured, "The gradient is scaled down to this norm when it is longer."),
	float("training_advanced.adam_beta1", fraction, Honoured, "Decay of AdamW's first moment."),
	float("training_advanced.adam_beta2", fraction, Honoured, "Decay of AdamW's second moment."),
	float("training_advanced.adam_eps", moreThan(0), Honoured, "Added to the root of AdamW's second moment."),
	boolean("training_advanced.use_lr_scheduling", Honoured, "false: the learning rate stays constant after warm-up, whatever scheduler_type says."),
	text("training_advanced.scheduler_type", Honoured, "cosine (falls epoch by epoch towards min_lr, which the epoch after the last would have), linear (constant, then falling linearly towards min_lr in the last decay_share of the run) or constant.", "cosine", "linear", "constant"),
	float("training_advanced.min_lr", atLeast(0), Honoured, "Final learning rate of the cosine and the linear schedule."),
	float("training_advanced.decay_share", bounds{lo: 0, hi: 1, above: true}, Honoured, "linear: share of the planned epochs, at the end, in which the learning rate falls; with 1 it falls from the beginning."),
	integer("training_advanced.warmup_steps", atLeast(0), Honoured, "Steps over which the learning rate rises linearly to learning_rate."),
	float("training_advanced.average_decay", bounds{lo: 0, hi: 1, below: true}, Honoured, "d of a moving mean of the weights, updated after every epoch: mean = d*mean + (1-d)*weights, at first the plain mean of all epochs so far. Validation uses the mean and the best checkpoint holds it; training continues from the weights themselves. 0: no mean."),
	boolean("training_advanced.use_early_stopping", Honoured, "true: stop when validation no longer improves."),
	integer("training_advanced.early_stopping_patience", atLeast(1), Honoured, "Validations in a row without an improvement before the run stops."),
	float("training_advanced.early_stopping_delta", atLeast(0), Honoured, "Smallest drop in validation CPC that counts as an improvement."),
	boolean("training_advanced.compile.enabled", NoEffect, replayed),
	text("training_advanced.compile.mode", NoEffect, replayed),

	float("gat_training.learning_rate", moreThan(0), NoEffect, unusedGAT),
	float("gat_training.temp_start", moreThan(0), NoEffect, unusedGAT),
	float("gat_training.temp_min", moreThan(0), NoEffect, unusedGAT),
	float("gat_training.temp_adaptation_rate", fraction, NoEffect, unusedGAT),
	float("gat_training.entropy_coef", atLeast(0), NoEffect, unusedGAT),
	float("gat_training.entropy_min", atLeast(0), NoEffect, unusedGAT),
	float("gat_training.gradient_clip_norm", moreThan(0), NoEffect, unusedGAT),
	integer("gat_training.early_stopping_patience", atLeast(1), NoEffect, unusedGAT),
	boolean("gat_training.use_adaptive_temperature", NoEffect, unusedGAT),

	text("baseline.type", Honoured, "What is subtracted from a sampled cost: rollout (greedy route of a frozen policy), pomo (mean over the instance's starts) or ema (moving mean of batch means).", "rollout", "pomo", "ema"),
	integer("baseline.eval_batches", upTo(1, mostRows), Honoured, "rollout: the fixed evaluation set has this many times batch_size instances."),
	float("baseline.ema_decay", fraction, Honoured, "ema: weight of the past; the first batch initialises the mean."),
	integer("baseline.starts", upTo(0, mostCustomers), Honoured, "pomo: starts per instance, each for another customer: forced to begin there, or viewed from there (model.start_views). 0: one per customer."),
	text("baseline.advantage", Honoured, "Weight of a route in the loss: difference (length minus baseline), or with pomo also standard (divided by the standard deviation over the instance's starts) or preference (Preference Optimization: pairs of starts are compared, and only which one is shorter counts).", "difference", "standard", "preference"),
	float("baseline.preference_alpha", moreThan(0), Honoured, "preference: how quickly a pair counts less once its shorter route is the likelier one; the paper uses 0.03."),
	float("baseline.leader_weight", atLeast(0), Honoured, "preference: pairs with the instance's shortest route count 1 plus this times as much as others, because best-of-starts decoding keeps only that route. For a second run, from trained weights. 0: all pairs count the same."),
	boolean("baseline.leader_alone", Honoured, "preference: leader_weight counts only where no other route is as short as the shortest. If two starts find equally short routes, losing one of them does not change the best route; so each start learns to find what the others do not. The weight may then be much larger, for example 1000. For a second run, from trained weights."),
	float("baseline.leader_margin", atLeast(0), Honoured, "preference: scales leader_weight by the lead of the shortest route over the next one, in units of this share of its length (for example 0.01), at most five times, because that is what losing it costs. 0: every leader counts the same."),
	integer("baseline.symmetries", either(1, 8), Honoured, "preference: 8 uses every instance under the 8 symmetries of the square and compares the routes of all eight with each other, with one leader of all and one per symmetry; for a policy that is used with pomo8. batch_size, which must be a multiple of 8, and all counts of instances count each of the eight. 1: each instance once."),
	boolean("baseline.update.enabled", Honoured, "rollout: false keeps the initial policy as the baseline for the whole run."),
	integer("baseline.update.frequency", atLeast(1), Honoured, "rollout: epochs between the tests that may replace the frozen policy."),
	boolean("baseline.update.significance_test", Honoured, "rollout: true asks for a lower mean and a one-sided paired t-test; false for a lower mean only."),
	float("baseline.update.p_value", bounds{lo: 0, hi: 1, above: true, below: true}, Honoured, "rollout: the t-test passes below this p."),
	integer("baseline.update.warmup_epochs", atLeast(0), Honoured, "rollout: no replacement before this many epochs."),

	integer("experiment.random_seed", between(0, math.MaxInt64), Honoured, "Seed of every instance, sample, mask and initial weight."),
	boolean("experiment.use_advanced_features", NoEffect, "Each feature under training_advanced has its own switch or neutral value."),
	boolean("experiment.strict_validation", Honoured, "true: the validator checks every validation route on the host; false skips this."),

	float("inference.default_temperature", between(1e-3, 1e3), Honoured, "Temperature of sampled decoding in eval and solve."),
	integer("inference.max_steps_multiplier", between(2, 1000), NoEffect, "The rules of a route allow at most 2N steps, a return after every customer: every rollout ends within 2N steps, so no value from 2 on changes anything."),

	boolean("gpu.enabled", NoEffect, "--device chooses; auto times the candidates on this machine."),
	text("gpu.device", NoEffect, "--device chooses; auto times the candidates on this machine."),
	boolean("gpu.mixed_precision", NoEffect, "--precision chooses; the CPU computes in fp32 unless it says otherwise."),
	float("gpu.memory_fraction", bounds{lo: 0, hi: 1, above: true}, NoEffect, "The memory of a step is known before the run: it is reported and checked, and no more is taken."),
	boolean("gpu.pin_memory", NoEffect, onDevice),
	boolean("gpu.non_blocking", NoEffect, onDevice),
	integer("gpu.gradient_accumulation_steps", atLeast(1), NoEffect, "A batch is cut into shards, so a large one needs no accumulation: raise training.batch_size instead."),
	integer("gpu.num_workers", atLeast(0), NoEffect, onDevice),
	integer("gpu.prefetch_factor", atLeast(0), NoEffect, onDevice),

	text("logging.level", NoEffect, "Notes go to standard error; --json prints objects on standard output."),
	text("logging.format", NoEffect, "Notes go to standard error; --json prints objects on standard output."),

	integer("benchmark.scaling.distance_scale", atLeast(1), NoEffect, "Costs are floats, exact solver included; no integer scale is needed."),
})...)

// Reasons that several keys share.
const (
	unusedGAT = "Used by GAT+RL (--model GAT+RL), not by GT+RL."
	replayed  = "Haul records every step once and replays it, so there is nothing to switch on."
	onDevice  = "Instances are generated on the device that learns from them, so there is no data to load or copy."
)

// gradientPartsOrFit is the text of the key of routing.
const gradientPartsOrFit = "Number of equal parts in which a batch is computed, one after another; their gradients are added up before the update, and each part needs correspondingly less memory. 0: the fewest that fit the memory of the GPU or the machine; a run reports the number and writes it into its settings. On a GPU the order of the sums is fixed by the number: with N parts the weights are the same, bit for bit, on one rank, two, four, up to N; with 1 the order of a sum over ranks is NCCL's. On a CPU no weight depends on it. Must divide training.batch_size."

// gradientParts is the text of the key of the agent.
const gradientParts = "On a GPU: number of parts in which the gradient of a batch is computed, one after another; they are added up in a fixed order. With N parts the weights are the same, bit for bit, on one rank, two, four, up to N; with 1 the order of a sum over ranks is NCCL's. On a CPU it has no effect, and a run says so: its weights never depend on the number of ranks."
