package agent

import "haul/internal/report"

// Report summarises the iterations since the last report, every summary_interval and at the end.
type Report struct {
	Iteration  int `json:"iteration" csv:"iteration"`
	Iterations int `json:"iterations"`

	LossAction    float64 `json:"loss_action" csv:"loss_action" tb:"train/loss_action"` // mean over labels
	AccAction     float64 `json:"acc_action" csv:"acc_action" tb:"train/acc_action"`
	LossTokenType float64 `json:"loss_token_type" csv:"loss_token_type" tb:"train/loss_token_type"` // 0 without compression, like its accuracy
	AccTokenType  float64 `json:"acc_token_type" csv:"acc_token_type" tb:"train/acc_token_type"`
	LossQ         float64 `json:"loss_q" csv:"loss_q" tb:"train/loss_q"` // mean over actions whose reward the row contains, like the next two; all 0 without method iql
	LossV         float64 `json:"loss_v" csv:"loss_v" tb:"train/loss_v"`
	MeanValue     float64 `json:"mean_value" csv:"mean_value" tb:"train/mean_value"` // of the states
	LR            float64 `json:"lr" csv:"lr" tb:"train/lr"`                         // of the last iteration
	GradNorm      float64 `json:"grad_norm" csv:"grad_norm" tb:"train/grad_norm"`    // mean, before clipping

	Since           int     `json:"since" csv:"since"` // iterations in this report
	Seconds         float64 `json:"seconds" csv:"seconds"`
	PerSecond       float64 `json:"iterations_per_second" csv:"iterations_per_second" tb:"speed/iterations_per_second"`
	TokensPerSecond float64 `json:"tokens_per_second" csv:"tokens_per_second" tb:"speed/tokens_per_second"`
	FLOPsPerSecond  float64 `json:"flops_per_second" csv:"flops_per_second"`
	SecondsLeft     float64 `json:"seconds_left"`                                             // for the remaining iterations, at this pace
	BusyShare       float64 `json:"busy_share" csv:"busy_share" tb:"speed/busy_share"`        // fraction of the time that the device worked on steps, by the GPU's own clock on a GPU
	WaitShare       float64 `json:"wait_share" csv:"wait_share" tb:"speed/loader_wait_share"` // fraction of the time that the trainer waited for rows from the host
	Memory          int64   `json:"memory_bytes" csv:"memory_bytes"`

	// requested from the device during this process's part of the iterations, including the reading
	// of the figures above
	report.Asked
}

// Test is the loss on histories of goals that are not trained on, held out or kept for validation,
// without dropout. Every test uses the same rows.
type Test struct {
	Iteration     int     `json:"iteration" csv:"iteration"`
	LossAction    float64 `json:"loss_action" csv:"loss_action" tb:"test/loss_action"`
	AccAction     float64 `json:"acc_action" csv:"acc_action" tb:"test/acc_action"`
	LossTokenType float64 `json:"loss_token_type" csv:"loss_token_type" tb:"test/loss_token_type"`
	AccTokenType  float64 `json:"acc_token_type" csv:"acc_token_type" tb:"test/acc_token_type"`
	Seconds       float64 `json:"seconds" csv:"seconds"`
	Best          bool    `json:"best" csv:"best"` // the lowest loss_action so far
}

// Summary is the result of a run.
type Summary struct {
	Iterations    int         `json:"iterations"`
	Sequences     uint64      `json:"sequences"` // number of rows learned from
	Seconds       float64     `json:"seconds"`   // of iterations, tests and evaluations, including restarts
	BestIteration int         `json:"best_iteration"`
	BestLoss      float64     `json:"best_loss_action"`     // 0 with validation_goals
	BestShare     *float64    `json:"best_share,omitempty"` // of the optimum on the validation goals
	Test          Test        `json:"test"`                 // of the last weights
	Evaluation    *Evaluation `json:"evaluation"`           // of the last weights
	HeldOut       *Evaluation `json:"held_out,omitempty"`   // of the best weights, with eval_tune
	Dir           string      `json:"dir"`
	Last          string      `json:"last"`
	Best          string      `json:"best"`
}
