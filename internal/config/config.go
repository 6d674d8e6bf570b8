// Package config parses settings: it merges a user's YAML file over the embedded defaults, and
// --set over both, and checks keys, types and ranges. All commands that train or explain settings
// call it. Every error is one line that names the file and line, or the --set argument, of the
// fault.
//
// There are four recipes, which are recognized by a file's keys (recipe.go): routing with a graph
// transformer (keys.go, Config) or with a graph attention network (gat_keys.go, Config), the
// in-context agent (ad_keys.go, AD), and its learning histories (ppo_keys.go, PPO). The other files
// do not depend on any key except include.
package config

// Config holds the settings of a routing run. The yaml tags are the keys of keys.go. Name is the
// file's base name without its extension; run folders are named after it. Keys without an effect
// are checked and then dropped: they have no field, are not written, and cannot make two runs
// differ.
//
// The pointers are nil for GT+RL; GAT+RL sets them.
type Config struct {
	Name string `yaml:"-"`

	Network     *string      `yaml:"network"`
	Problem     Problem      `yaml:"problem"`
	Training    Training     `yaml:"training"`
	Model       Model        `yaml:"model"`
	GAT         *GAT         `yaml:"model_gat"`
	Advanced    Advanced     `yaml:"training_advanced"`
	GATTraining *GATTraining `yaml:"gat_training"`
	Baseline    Baseline     `yaml:"baseline"`
	Experiment  Experiment   `yaml:"experiment"`
	Inference   Inference    `yaml:"inference"`
}

// Training holds the length of a run, its batch and its learning rate.
type Training struct {
	NumBatchesPerEpoch  int     `yaml:"num_batches_per_epoch"`
	BatchSize           int     `yaml:"batch_size"`
	GradientParts       int     `yaml:"gradient_parts"`
	NumEpochs           int     `yaml:"num_epochs"`
	LearningRate        float64 `yaml:"learning_rate"`
	ValidationFrequency int     `yaml:"validation_frequency"`
	ValidationInstances int     `yaml:"validation_instances"`
	ValidationDecode    string  `yaml:"validation_decode"`
	UseGeometricMean    bool    `yaml:"use_geometric_mean"`
}

// Model holds the sizes of the network and the options of the graph transformer's encoder.
type Model struct {
	InputDim              int     `yaml:"input_dim"`
	HiddenDim             int     `yaml:"hidden_dim"`
	NumHeads              int     `yaml:"num_heads"`
	NumLayers             int     `yaml:"num_layers"`
	TransformerDropout    float64 `yaml:"transformer_dropout"`
	FeedforwardMultiplier int     `yaml:"feedforward_multiplier"`
	PointerDistance       float64 `yaml:"pointer_distance"`
	PointerPairs          bool    `yaml:"pointer_pairs"`
	StartViews            bool    `yaml:"start_views"`
}

// Advanced is the section training_advanced: optimizer, schedules, early stopping.
type Advanced struct {
	UseAdaptiveTemperature bool    `yaml:"use_adaptive_temperature"`
	TempStart              float64 `yaml:"temp_start"`
	TempMin                float64 `yaml:"temp_min"`
	TempAdaptationRate     float64 `yaml:"temp_adaptation_rate"`
	EntropyCoef            float64 `yaml:"entropy_coef"`
	EntropyMin             float64 `yaml:"entropy_min"`
	Optimizer              string  `yaml:"optimizer"`
	WeightDecay            float64 `yaml:"weight_decay"`
	GradientClipNorm       float64 `yaml:"gradient_clip_norm"`
	AdamBeta1              float64 `yaml:"adam_beta1"`
	AdamBeta2              float64 `yaml:"adam_beta2"`
	AdamEps                float64 `yaml:"adam_eps"`
	UseLRScheduling        bool    `yaml:"use_lr_scheduling"`
	SchedulerType          string  `yaml:"scheduler_type"`
	MinLR                  float64 `yaml:"min_lr"`
	DecayShare             float64 `yaml:"decay_share"`
	WarmupSteps            int     `yaml:"warmup_steps"`
	AverageDecay           float64 `yaml:"average_decay"`
	UseEarlyStopping       bool    `yaml:"use_early_stopping"`
	EarlyStoppingPatience  int     `yaml:"early_stopping_patience"`
	EarlyStoppingDelta     float64 `yaml:"early_stopping_delta"`
}

// Baseline configures the value that REINFORCE subtracts. Type is one of the Baseline* constants.
type Baseline struct {
	Type        string  `yaml:"type"`
	EvalBatches int     `yaml:"eval_batches"`
	EMADecay    float64 `yaml:"ema_decay"`
	Starts      int     `yaml:"starts"` // as written; Config.Starts replaces 0
	Advantage   string  `yaml:"advantage"`

	PreferenceAlpha float64        `yaml:"preference_alpha"`
	LeaderWeight    float64        `yaml:"leader_weight"`
	LeaderAlone     bool           `yaml:"leader_alone"`
	LeaderMargin    float64        `yaml:"leader_margin"`
	Symmetries      int            `yaml:"symmetries"` // 1 or 8
	Update          BaselineUpdate `yaml:"update"`
}

// The values of baseline.advantage.
const (
	AdvantageDifference = "difference"
	AdvantageStandard   = "standard"
	AdvantagePreference = "preference"
)

// The values of baseline.type.
const (
	BaselineRollout = "rollout"
	BaselinePOMO    = "pomo"
	BaselineEMA     = "ema"
)

// The values of training_advanced.optimizer.
const (
	OptimizerAdamW = "adamw"
	OptimizerMuon  = "muon"
)

// The values of training_advanced.scheduler_type.
const (
	SchedulerCosine   = "cosine"
	SchedulerLinear   = "linear"
	SchedulerConstant = "constant"
)

// The values of problem.distribution.
const (
	DistributionGrid    = "grid"
	DistributionUniform = "uniform"
)

// BaselineUpdate configures when a rollout baseline is replaced by the policy.
type BaselineUpdate struct {
	Enabled          bool    `yaml:"enabled"`
	Frequency        int     `yaml:"frequency"`
	SignificanceTest bool    `yaml:"significance_test"`
	PValue           float64 `yaml:"p_value"`
	WarmupEpochs     int     `yaml:"warmup_epochs"`
}

// Experiment holds the seed and whether routes are checked by the validator.
type Experiment struct {
	RandomSeed       uint64 `yaml:"random_seed"`
	StrictValidation bool   `yaml:"strict_validation"`
}

// Inference configures sampled decoding.
type Inference struct {
	DefaultTemperature float64 `yaml:"default_temperature"`
}

// Starts returns the number of routes per instance in training: 1 unless the baseline is pomo.
func (c *Config) Starts() int {
	switch {
	case c.Baseline.Type != BaselinePOMO:
		return 1
	case c.Baseline.Starts == 0:
		return c.Problem.NumCustomers()
	default:
		return c.Baseline.Starts
	}
}

// YAML returns all keys that have an effect. Parse parses it to an equal Config.
func (c *Config) YAML() ([]byte, error) { return marshal(c) }

// Recipe returns RecipeGT or RecipeGAT.
func (c *Config) Recipe() string {
	if c.Network != nil {
		return *c.Network
	}
	return RecipeGT
}

// Title returns the name of the settings.
func (c *Config) Title() string { return c.Name }

// Named returns a copy with another name.
func (c *Config) Named(name string) Settings {
	own := *c
	own.Name = name
	return &own
}
