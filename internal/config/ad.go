package config

// AD holds the settings that train and evaluate an in-context agent. The yaml tags are the keys of
// ad_keys.go. Name is the file's base name without its extension.
type AD struct {
	Name string `yaml:"-"`

	Model string `yaml:"model"`

	NEmbd          int     `yaml:"tf_n_embd"`
	NLayer         int     `yaml:"tf_n_layer"`
	NHead          int     `yaml:"tf_n_head"`
	NKVHead        int     `yaml:"tf_n_kv_head"`       // as written; 0 means NHead
	DimFeedforward int     `yaml:"tf_dim_feedforward"` // as written; FeedForward replaces 0
	Dropout        float64 `yaml:"tf_dropout"`
	AttnDropout    float64 `yaml:"tf_attn_dropout"`
	Positions      string  `yaml:"tf_positions"`

	NTransit             int  `yaml:"n_transit"`
	UseCompressedContext bool `yaml:"use_compressed_context"`
	CompressInterval     int  `yaml:"compress_interval"`
	CompressMin          int  `yaml:"compress_min"` // as written; ShortestRegion replaces 0
	RegionAhead          int  `yaml:"region_ahead"`
	LastObservation      bool `yaml:"last_observation"`
	Rename               bool `yaml:"rename"`

	TrainNStream         int     `yaml:"train_n_stream"`
	TrainSourceTimesteps int     `yaml:"train_source_timesteps"`
	Labels               string  `yaml:"labels"`
	Method               string  `yaml:"method"`
	IQLDiscount          float64 `yaml:"iql_discount"`
	IQLExpectile         float64 `yaml:"iql_expectile"`
	IQLBeta              float64 `yaml:"iql_beta"`
	IQLWeight            float64 `yaml:"iql_weight"`
	NumWorkers           int     `yaml:"num_workers"`
	Prefetch             int     `yaml:"prefetch"`

	TrainTimesteps            int     `yaml:"train_timesteps"`
	TrainBatchSize            int     `yaml:"train_batch_size"`
	GradientParts             int     `yaml:"gradient_parts"`
	GradientAccumulationSteps int     `yaml:"gradient_accumulation_steps"`
	MixedPrecision            string  `yaml:"mixed_precision"`
	LR                        float64 `yaml:"lr"`
	MinLR                     float64 `yaml:"min_lr"`
	NumWarmupSteps            int     `yaml:"num_warmup_steps"`
	Beta1                     float64 `yaml:"beta1"`
	Beta2                     float64 `yaml:"beta2"`
	AdamEps                   float64 `yaml:"adam_eps"`
	WeightDecay               float64 `yaml:"weight_decay"`
	GradientClipNorm          float64 `yaml:"gradient_clip_norm"`
	LabelSmoothing            float64 `yaml:"label_smoothing"`
	AverageDecay              float64 `yaml:"average_decay"`
	AverageInterval           int     `yaml:"average_interval"`
	Seed                      uint64  `yaml:"seed"`

	SummaryInterval int     `yaml:"summary_interval"`
	EvalInterval    int     `yaml:"eval_interval"`
	GenInterval     int     `yaml:"gen_interval"`
	CkptInterval    int     `yaml:"ckpt_interval"`
	TestBatchSize   int     `yaml:"test_batch_size"`
	EvalEpisodes    int     `yaml:"eval_episodes"`
	EvalAgents      int     `yaml:"eval_agents"`
	EvalTemperature float64 `yaml:"eval_temperature"`
	EvalSearch      float64 `yaml:"eval_search"`
	EvalTune        bool    `yaml:"eval_tune"`
	ValidationGoals int     `yaml:"validation_goals"`
}

// The values of tf_positions.
const (
	PositionsLearned = "learned"
	PositionsRotary  = "rotary"
)

// The values of labels.
const (
	LabelsActions = "actions"
	LabelsBest    = "best"
	LabelsFound   = "found"
	LabelsSeek    = "seek"
	LabelsAuto    = "auto" // best actions if the histories contain them, else actions
)

// The values of method.
const (
	MethodImitate = "imitate"
	MethodIQL     = "iql"
)

// The values of mixed_precision.
const (
	PrecisionFull = "no"
	PrecisionFP16 = "fp16"
	PrecisionBF16 = "bf16"
)

// regionMarks is the number of tokens of a compressed context besides transitions: a start and an
// end marker of each of the two regions.
const regionMarks = 4

// FeedForward returns the width of the feed-forward layers.
func (c *AD) FeedForward() int {
	if c.DimFeedforward == 0 {
		return 4 * c.NEmbd
	}
	return c.DimFeedforward
}

// Tokens returns the length of the longest context: two whole regions with their markers, or the
// length of the position table if the context is not compressed.
func (c *AD) Tokens() int {
	if c.UseCompressedContext {
		return 2*c.CompressInterval + regionMarks
	}
	return c.NTransit
}

// ShortestRegion returns the least number of transitions in a region.
func (c *AD) ShortestRegion() int {
	if c.CompressMin == 0 {
		return c.CompressInterval
	}
	return c.CompressMin
}

// YAML returns all keys that have an effect. ParseAD parses it to an equal AD.
func (c *AD) YAML() ([]byte, error) { return marshal(c) }

// Recipe returns RecipeAD.
func (c *AD) Recipe() string { return RecipeAD }

// Title returns the name of the settings.
func (c *AD) Title() string { return c.Name }

// Named returns a copy with another name.
func (c *AD) Named(name string) Settings {
	own := *c
	own.Name = name
	return &own
}

// conflicts returns the faults of combinations of keys, if each value is valid by itself.
func (c *AD) conflicts() []conflict {
	var out []conflict
	if c.NEmbd%c.NHead != 0 {
		out = append(out, clash([]string{"tf_n_embd", "tf_n_head"},
			"tf_n_embd %d is not divisible by tf_n_head %d", c.NEmbd, c.NHead))
	}
	if c.NKVHead > 0 && c.NHead%c.NKVHead != 0 {
		out = append(out, clash([]string{"tf_n_head", "tf_n_kv_head"},
			"tf_n_head %d is not divisible by tf_n_kv_head %d", c.NHead, c.NKVHead))
	}
	if c.UseCompressedContext {
		out = append(out, c.regionConflicts()...)
	} else if c.TrainSourceTimesteps > 0 && c.NTransit > c.TrainSourceTimesteps {
		out = append(out, clash([]string{"n_transit", "train_source_timesteps"},
			"n_transit %d is over train_source_timesteps %d: no stream holds such a context", c.NTransit, c.TrainSourceTimesteps))
	}
	if c.NumWarmupSteps > c.TrainTimesteps {
		out = append(out, clash([]string{"num_warmup_steps", "train_timesteps"},
			"num_warmup_steps %d is over train_timesteps %d: the run would end before its warm-up", c.NumWarmupSteps, c.TrainTimesteps))
	}
	if c.MinLR > c.LR {
		out = append(out, clash([]string{"min_lr", "lr"},
			"min_lr %g is over lr %g, which it is reached from", c.MinLR, c.LR))
	}
	if c.Method == MethodIQL && c.Labels != LabelsActions && c.Labels != LabelsAuto {
		out = append(out, clash([]string{"method", "labels"},
			"method iql learns from what was done and paid, not from labels %s: set labels to %s", c.Labels, LabelsActions))
	}
	// Samples are numbered by a 64-bit counter from the start of the run.
	if total := float64(c.TrainTimesteps) * float64(c.TrainBatchSize) * float64(c.GradientAccumulationSteps); total >= 1<<62 {
		out = append(out, clash([]string{"train_timesteps", "train_batch_size", "gradient_accumulation_steps"},
			"training asks for %.3g samples in all, more than can be numbered", total))
	}
	return out
}

// regionConflicts returns the faults of the settings of a compressed context.
func (c *AD) regionConflicts() []conflict {
	var out []conflict
	if c.CompressMin > c.CompressInterval {
		out = append(out, clash([]string{"compress_min", "compress_interval"},
			"compress_min %d is over compress_interval %d, the longest region", c.CompressMin, c.CompressInterval))
	}
	if c.Tokens() > c.NTransit {
		out = append(out, clash([]string{"compress_interval", "n_transit", "use_compressed_context"},
			"two regions of compress_interval %d need %d positions, over n_transit %d, the position table", c.CompressInterval, c.Tokens(), c.NTransit))
	}
	if c.TrainSourceTimesteps > 0 && 2*c.CompressInterval > c.TrainSourceTimesteps {
		out = append(out, clash([]string{"compress_interval", "train_source_timesteps", "use_compressed_context"},
			"two regions of compress_interval %d are over train_source_timesteps %d: no stream holds them", c.CompressInterval, c.TrainSourceTimesteps))
	}
	return out
}
