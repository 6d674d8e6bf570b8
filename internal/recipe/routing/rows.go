package routing

import (
	"context"
	"fmt"

	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/vrp"
)

// Epoch is a row of the history: the summary of one epoch. Its first ten columns are named as in
// the original PyTorch program; its last five repeat five of them under their JSON names. Pointers
// are nil (null) if nothing was measured. Costs are per customer (CPC), averaged as MeanType says,
// except BaselineCPC, which is always an arithmetic mean. Seconds counts generation and steps,
// without validation and baseline.
type Epoch struct {
	Epoch        int      `json:"epoch" csv:"epoch"` // from 1
	Epochs       int      `json:"epochs"`
	TrainLoss    float64  `json:"train_loss" csv:"train_loss" tb:"train/loss"`
	TrainCPC     float64  `json:"train_cpc" csv:"train_cost_arithmetic" also:"train_cpc" tb:"train/cpc"`
	ValCPC       *float64 `json:"val_cpc" csv:"val_cost_arithmetic" also:"val_cpc" tb:"val/cpc"`
	LR           float64  `json:"lr" csv:"learning_rate" also:"lr" tb:"schedule/lr"`
	Temperature  float64  `json:"temperature" csv:"temperature" tb:"schedule/temperature"`
	Seconds      float64  `json:"seconds" csv:"time_per_epoch" also:"seconds" tb:"speed/epoch_seconds"`
	BaselineType string   `json:"baseline_type" csv:"baseline_type"`
	BaselineCPC  float64  `json:"baseline_cpc" csv:"baseline_value" also:"baseline_cpc" tb:"baseline/cpc"`
	MeanType     string   `json:"mean_type" csv:"mean_type"` // arithmetic or geometric

	ValSE              *float64 `json:"val_se" csv:"val_se"`
	ValGap             *float64 `json:"val_gap" csv:"val_gap" tb:"val/gap"` // a fraction, paired
	ValGapSE           *float64 `json:"val_gap_se" csv:"val_gap_se"`
	GapTo              string   `json:"gap_to" csv:"gap_to"`               // optimum or search
	GapToCPC           float64  `json:"gap_to_cpc" csv:"gap_to_cpc"`       // the reference's cost on the validation set
	GapInstances       *int     `json:"gap_instances" csv:"gap_instances"` // instances with a known reference, which the gap is a mean over; nil in rows of old versions
	Best               bool     `json:"best" csv:"best"`                   // the lowest val_cpc so far
	Entropy            float64  `json:"entropy" csv:"entropy" tb:"train/entropy"`
	EntropyCoef        float64  `json:"entropy_coef" csv:"entropy_coef" tb:"schedule/entropy_coef"`
	GradNorm           float64  `json:"grad_norm" csv:"grad_norm" tb:"train/grad_norm"` // mean, before clipping
	BaselineUpdated    bool     `json:"baseline_updated" csv:"baseline_updated"`
	PValue             *float64 `json:"p_value" csv:"p_value" tb:"baseline/p_value"`
	Instances          int64    `json:"instances" csv:"instances"`
	ValSeconds         float64  `json:"val_seconds" csv:"val_seconds"`
	BaselineSeconds    float64  `json:"baseline_seconds" csv:"baseline_seconds"`
	InstancesPerSecond float64  `json:"instances_per_second" csv:"instances_per_second" tb:"speed/instances_per_second"`
	FLOPsPerSecond     float64  `json:"flops_per_second" csv:"flops_per_second" tb:"speed/flops_per_second"`
	BusyShare          *float64 `json:"busy_share" csv:"busy_share" tb:"speed/busy_share"` // fraction of the time that the device worked on steps, by the GPU's own clock on a GPU; nil in rows of old versions
	SecondsLeft        float64  `json:"seconds_left"`                                      // at the pace of this process so far

	report.Asked // requested from the device during the epoch's steps
}

// Size is the policy's result on instances of one size. A run with a range of sizes writes it as a
// row of a separate table, and as a line of its summary.
type Size struct {
	Epoch        int     `json:"epoch" csv:"epoch"`
	Customers    int     `json:"customers" csv:"customers"`
	CPC          float64 `json:"cpc" csv:"cpc"`
	SE           float64 `json:"se" csv:"se"`
	Gap          float64 `json:"gap" csv:"gap"` // a fraction, paired
	GapSE        float64 `json:"gap_se" csv:"gap_se"`
	GapTo        string  `json:"gap_to" csv:"gap_to"`
	GapInstances int     `json:"gap_instances" csv:"gap_instances"` // instances with a known reference
}

func (s *Size) line() string {
	return fmt.Sprintf("%s: %.4f ± %.4f CPC, gap %s ± %.2f %% to %s", report.Plural(int64(s.Customers), "customer"), s.CPC, s.SE, report.Signed(100*s.Gap, 2), 100*s.GapSE, s.GapTo)
}

// Summary is the result of a run. Test figures are of the best checkpoint, on instances that were
// used neither for training nor for choosing the checkpoint.
type Summary struct {
	Epochs       int     `json:"epochs"`
	StoppedEarly bool    `json:"stopped_early"`
	Instances    uint64  `json:"instances"`
	Seconds      float64 `json:"seconds"` // of all epochs, validation included, over all restarts
	BestEpoch    int     `json:"best_epoch"`
	BestCPC      float64 `json:"best_val_cpc" tb:"val/best_cpc"`

	TestInstances int     `json:"test_instances"`
	TestCPC       float64 `json:"test_cpc" tb:"test/cpc"`
	TestSE        float64 `json:"test_se"`
	TestGap       float64 `json:"test_gap" tb:"test/gap"`
	TestGapSE     float64 `json:"test_gap_se"`
	GapTo         string  `json:"gap_to"`
	GapInstances  int     `json:"gap_instances"` // number of TestInstances with a known reference

	Sizes []Size `json:"sizes,omitempty"` // the test figures by size; nil for a single size

	Dir  string `json:"dir"`
	Last string `json:"last"`
	Best string `json:"best"`
}

// instances returns the number of tested instances as text, with the number that the gap covers.
func (s *Summary) instances() string {
	all := report.Plural(int64(s.TestInstances), "instance")
	if s.GapInstances < s.TestInstances {
		all += fmt.Sprintf(" (the gap over %s)", report.Thousands(int64(s.GapInstances)))
	}
	return all
}

// Example is a test instance with the routes of the best policy and of the reference's method.
type Example struct {
	Problem                   *vrp.Problem
	Policy, Reference         vrp.Solution
	PolicyCost, ReferenceCost float64
}

// NewExample solves the first instance of the source and pairs the solution with the policy's tour.
func NewExample(ctx context.Context, src vrp.Source, tour []int32) (*Example, error) {
	b := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 0)
	x := &Example{Problem: b.Problem(0)}
	x.Policy = x.Problem.FromVisits(tour)
	x.Problem.Name = "test instance 0"
	var err error
	if policy.ReferenceMethod(src) == policy.Optimum {
		var all []vrp.Solution
		if _, all, err = vrp.OptimalSolutions(ctx, []*vrp.Problem{x.Problem}, 1, nil); err == nil {
			x.Reference = all[0]
		}
	} else {
		var found *search.Result
		if found, err = search.Solve(ctx, x.Problem, search.Options{Iterations: policy.SearchIterations(src.N)}); err == nil {
			x.Reference = found.Solution
		}
	}
	if err != nil {
		return nil, err
	}
	x.PolicyCost, x.ReferenceCost = x.Problem.Cost(x.Policy), x.Problem.Cost(x.Reference)
	return x, nil
}
