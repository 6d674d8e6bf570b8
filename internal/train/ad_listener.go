package train

import "haul/internal/env/darkroom"

// ADListener hears what an agent's run does. All calls come one at a time; a listener that takes long holds the run up, so
// Tick should do next to nothing.
type ADListener interface {
	// Start comes once, when everything is compiled and before the first iteration.
	Start(ADInfo)
	// Tick comes at most ten times a second while iterations run.
	Tick(ADProgress)
	// Report comes every summary_interval iterations, and at the end.
	Report(ADReport)
	// Test comes every eval_interval iterations, and at the end.
	Test(ADTest)
	// Evaluated comes every gen_interval iterations, and at the end.
	Evaluated(*ADEvaluation)
	// Note is something worth a line.
	Note(text string)
	// Done comes once, when the run has ended by itself.
	Done(ADSummary)
}

// ADInfo says what is about to run.
type ADInfo struct {
	Name       string        `json:"config"`
	Model      string        `json:"model"` // "AD"
	Parameters int           `json:"parameters"`
	Device     string        `json:"device"`
	Precision  string        `json:"precision"`
	Paths      []string      `json:"paths"`
	Memory     int64         `json:"memory_bytes"` // at most what the run holds: each program counts its weights
	Data       string        `json:"data"`         // device or host: where the histories live
	DataBytes  int64         `json:"data_bytes"`
	Room       darkroom.Room `json:"room"`
	Goals      int           `json:"goals"`   // to learn from
	Streams    int           `json:"streams"` // of all those goals
	Tokens     int           `json:"tokens"`  // in a row
	Batch      int           `json:"batch_size"`
	Parts      int           `json:"gradient_accumulation_steps"`
	Shard      int           `json:"shard_size"`
	Workers    int           `json:"workers"` // that make rows; 0 with the histories on the device
	Iterations int           `json:"iterations"`
	FLOPs      int64         `json:"flops_per_iteration"` // by formula
	Dir        string        `json:"dir"`
	Last       string        `json:"last"`
	Best       string        `json:"best"`
	Resumed    bool          `json:"resumed"`
	Done       int           `json:"iterations_done"` // what was told of later ones belongs to a history that did not happen
}

// ADProgress is where the run stands.
type ADProgress struct {
	Iteration, Iterations int
	PerSecond             float64 // iterations, since the last event
	WaitShare             float64 // of that time, spent waiting for rows from the host
}

// ADReport is what the iterations since the last report came to.
type ADReport struct {
	Iteration  int     `json:"iteration"`
	Iterations int     `json:"iterations"`
	Since      int     `json:"since"` // iterations reported on
	Seconds    float64 `json:"seconds"`

	LossAction    float64 `json:"loss_action"` // mean over labels
	AccAction     float64 `json:"acc_action"`
	LossTokenType float64 `json:"loss_token_type"` // 0 without compression, as is its accuracy
	AccTokenType  float64 `json:"acc_token_type"`
	LR            float64 `json:"lr"`        // of the last iteration
	GradNorm      float64 `json:"grad_norm"` // mean, before clipping

	PerSecond       float64 `json:"iterations_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	FLOPsPerSecond  float64 `json:"flops_per_second"`
	SecondsLeft     float64 `json:"seconds_left"` // of iterations, at this pace

	// What the device was asked for during this process's part of those iterations, reading the figures above included.
	Launches    int64 `json:"launches"`
	Waits       int64 `json:"waits"`
	CopiesIn    int64 `json:"copies_in"`
	CopiesOut   int64 `json:"copies_out"`
	Allocations int64 `json:"allocations"`

	BusyShare float64 `json:"busy_share"` // of the time the device worked on steps, by its own clock on a card
	WaitShare float64 `json:"wait_share"` // of the time the trainer waited for rows from the host
	Memory    int64   `json:"memory_bytes"`
}

// ADTest is the loss on held-out goals' histories, without dropout; the rows are the same at every test.
type ADTest struct {
	Iteration     int     `json:"iteration"`
	LossAction    float64 `json:"loss_action"`
	AccAction     float64 `json:"acc_action"`
	LossTokenType float64 `json:"loss_token_type"`
	AccTokenType  float64 `json:"acc_token_type"`
	Seconds       float64 `json:"seconds"`
	Best          bool    `json:"best"` // the lowest loss_action so far
}

// ADSummary is how a run ended.
type ADSummary struct {
	Iterations    int           `json:"iterations"`
	Sequences     uint64        `json:"sequences"` // rows learned from
	Seconds       float64       `json:"seconds"`   // of iterations, tests and evaluations, over all restarts
	BestIteration int           `json:"best_iteration"`
	BestLoss      float64       `json:"best_loss_action"`
	Test          ADTest        `json:"test"`       // of the last weights
	Evaluation    *ADEvaluation `json:"evaluation"` // likewise
	Dir           string        `json:"dir"`
	Last          string        `json:"last"`
	Best          string        `json:"best"`
}

// silentAD is the listener of a run that nobody watches.
type silentAD struct{}

func (silentAD) Start(ADInfo)            {}
func (silentAD) Tick(ADProgress)         {}
func (silentAD) Report(ADReport)         {}
func (silentAD) Test(ADTest)             {}
func (silentAD) Evaluated(*ADEvaluation) {}
func (silentAD) Note(string)             {}
func (silentAD) Done(ADSummary)          {}
