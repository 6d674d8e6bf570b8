package train

import "haul/internal/env/cvrp"

// Listener hears what a run does. All calls come one at a time; a listener that takes long holds
// the run up, so Tick should do next to nothing.
type Listener interface {
	// Start comes once, when everything is compiled and before the first step.
	Start(Info)
	// Tick comes at most ten times a second while steps run.
	Tick(Progress)
	// Epoch comes after each epoch, when its checkpoint is on disk.
	Epoch(EpochReport)
	// Note is something worth a line: long preparations, a resumed run on another device.
	Note(text string)
	// Done comes once, when the run has ended by itself.
	Done(Summary)
}

// Info says what is about to run.
type Info struct {
	Name       string   `json:"config"`     // the settings' name
	Model      string   `json:"model"`      // "GT+RL"
	Parameters int      `json:"parameters"` // learned numbers
	Device     string   `json:"device"`
	Precision  string   `json:"precision"`
	Paths      []string `json:"paths"`        // kernels, graph, what routes are built on
	Memory     int64    `json:"memory_bytes"` // at most what the run holds: each program counts its weights
	Customers  int      `json:"customers"`
	Batch      int      `json:"batch_size"`
	Shard      int      `json:"shard_size"` // instances a worker runs through the whole step at a time
	Starts     int      `json:"starts"`
	Baseline   string   `json:"baseline_type"`
	Steps      int      `json:"steps_per_epoch"`
	Epochs     int      `json:"epochs"`
	StepFLOPs  int64    `json:"flops_per_step"` // by formula, with the lengths that routes usually have
	Dir        string   `json:"dir"`
	Last       string   `json:"last"` // paths of the checkpoints
	Best       string   `json:"best"`
	Resumed    bool     `json:"resumed"`
	EpochsDone int      `json:"epochs_done"` // rows past this epoch belong to a history that did not happen
	StepsDone  int      `json:"steps_done"`  // of the epoch under way
}

// Progress is where the epoch stands. Epoch counts from 1.
type Progress struct {
	Epoch, Epochs      int
	Step, Steps        int
	InstancesPerSecond float64
}

// EpochReport is what an epoch came to. Pointers are nil (null) where nothing was measured.
// Costs are per customer (CPC), by the mean that MeanType names, except baseline_cpc, which is always arithmetic.
type EpochReport struct {
	Epoch     int     `json:"epoch"` // from 1
	Epochs    int     `json:"epochs"`
	Seconds   float64 `json:"seconds"` // generation and steps
	Instances int64   `json:"instances"`

	TrainCPC  float64 `json:"train_cpc"`
	TrainLoss float64 `json:"train_loss"`
	Entropy   float64 `json:"entropy"`
	GradNorm  float64 `json:"grad_norm"` // mean, before clipping
	MeanType  string  `json:"mean_type"` // arithmetic or geometric

	ValCPC     *float64 `json:"val_cpc"`
	ValSE      *float64 `json:"val_se"`
	ValGap     *float64 `json:"val_gap"` // a fraction, paired
	ValGapSE   *float64 `json:"val_gap_se"`
	GapTo      string   `json:"gap_to"`     // optimum or savings
	GapToCPC   float64  `json:"gap_to_cpc"` // its cost on the validation set
	ValSeconds float64  `json:"val_seconds"`
	Best       bool     `json:"best"` // the lowest val_cpc so far

	BaselineCPC     float64  `json:"baseline_cpc"`
	BaselineType    string   `json:"baseline_type"`
	BaselineUpdated bool     `json:"baseline_updated"`
	PValue          *float64 `json:"p_value"`
	BaselineSeconds float64  `json:"baseline_seconds"`

	LR          float64 `json:"lr"`
	Temperature float64 `json:"temperature"`
	EntropyCoef float64 `json:"entropy_coef"`

	InstancesPerSecond float64 `json:"instances_per_second"`
	FLOPsPerSecond     float64 `json:"flops_per_second"`
	SecondsLeft        float64 `json:"seconds_left"` // at the pace of this process so far

	// What the device was asked for during the epoch's steps.
	Launches    int64 `json:"launches"`
	Waits       int64 `json:"waits"`
	CopiesIn    int64 `json:"copies_in"`
	CopiesOut   int64 `json:"copies_out"`
	Allocations int64 `json:"allocations"`
}

// Summary is how a run ended. Test figures are of the best checkpoint, on instances that neither
// trained nor picked it.
type Summary struct {
	Epochs       int     `json:"epochs"`
	StoppedEarly bool    `json:"stopped_early"`
	Instances    uint64  `json:"instances"`
	Seconds      float64 `json:"seconds"` // of all epochs, validation included, over all restarts
	BestEpoch    int     `json:"best_epoch"`
	BestCPC      float64 `json:"best_val_cpc"`

	TestInstances int     `json:"test_instances"`
	TestCPC       float64 `json:"test_cpc"`
	TestSE        float64 `json:"test_se"`
	TestGap       float64 `json:"test_gap"`
	TestGapSE     float64 `json:"test_gap_se"`
	GapTo         string  `json:"gap_to"`

	Dir  string `json:"dir"`
	Last string `json:"last"`
	Best string `json:"best"`

	Example Example `json:"-"`
}

// Example is one test instance, routed by the best policy and by the method that GapTo names.
type Example struct {
	Problem                   *cvrp.Problem
	Policy, Reference         cvrp.Solution
	PolicyCost, ReferenceCost float64
}

// silent is the listener of a run that nobody watches.
type silent struct{}

func (silent) Start(Info)        {}
func (silent) Tick(Progress)     {}
func (silent) Epoch(EpochReport) {}
func (silent) Note(string)       {}
func (silent) Done(Summary)      {}
