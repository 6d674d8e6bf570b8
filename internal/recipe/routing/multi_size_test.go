package routing

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// sizesOf are the rows of the table of sizes.
func sizesOf(h *runtest.Heard) []*Size { return runtest.Rows[Size](h) }

// TestARangeLearns: routes get shorter at both ends, which are reported apart, and the epoch's
// figures are their means.
func TestARangeLearns(t *testing.T) {
	for _, baseline := range []string{"rollout", "pomo"} {
		t.Run(baseline, func(t *testing.T) {
			cfg := lesson(t, "problem.num_customers=[6, 14]", "training.validation_instances=60", "baseline.type="+baseline)
			e, _ := whole(t, cfg, openCPU(t, 2))
			rows, sizes := epochsOf(e), sizesOf(e)
			first, last := rows[0], rows[len(rows)-1]
			untrained := startCPC(t, cfg)
			low, high := startCPC(t, cfg.Of(6)), startCPC(t, cfg.Of(14))
			if !(last.TrainCPC < 0.96*first.TrainCPC) || !(*last.ValCPC < 0.93*untrained) {
				t.Errorf("validation from %.4f to %.4f, samples from %.4f to %.4f", untrained, *last.ValCPC, first.TrainCPC, last.TrainCPC)
			}
			if len(sizes) != 2*len(rows) {
				t.Fatalf("%d records of sizes for %d epochs", len(sizes), len(rows))
			}
			for i, r := range rows {
				low, high := sizes[2*i], sizes[2*i+1]
				if low.Customers != 6 || high.Customers != 14 || low.Epoch != r.Epoch || low.GapTo != "optimum" || high.GapTo != "search" || r.GapTo != "optimum and search" {
					t.Errorf("epoch %d: %+v, %+v", r.Epoch, low, high)
				}
				if math.Abs((low.CPC+high.CPC)/2-*r.ValCPC) > 1e-12 || math.Abs((low.Gap+high.Gap)/2-*r.ValGap) > 1e-12 || *r.GapInstances != 120 {
					t.Errorf("epoch %d: %v and %v come to %v", r.Epoch, low, high, *r.ValCPC)
				}
				// Samples are of all sizes, so that their cost lies between those of the ends.
				if r.BaselineCPC < 0.7*r.TrainCPC || r.BaselineCPC > 1.3*r.TrainCPC || r.TrainCPC < high.CPC || r.TrainCPC > 1.6*low.CPC {
					t.Errorf("epoch %d: samples %.4f, baseline %.4f, ends %.4f and %.4f", r.Epoch, r.TrainCPC, r.BaselineCPC, low.CPC, high.CPC)
				}
			}
			a, b := sizes[len(sizes)-2], sizes[len(sizes)-1]
			if !(a.CPC < 0.97*low) || !(b.CPC < 0.93*high) || math.Abs((low+high)/2-untrained) > 1e-12 {
				t.Errorf("6 customers from %.4f to %.4f, 14 from %.4f to %.4f", low, a.CPC, high, b.CPC)
			}
			s := e.Ending.Row.(*Summary)
			if len(s.Sizes) != 2 || s.TestInstances != 120 || math.Abs((s.Sizes[0].CPC+s.Sizes[1].CPC)/2-s.TestCPC) > 1e-12 {
				t.Errorf("summary %+v", s)
			}
		})
	}
}

// TestARangeOfOneSizeIsThatSize: bit for bit, and in what it tells.
func TestARangeOfOneSizeIsThatSize(t *testing.T) {
	plain, want := whole(t, tiny(t), openCPU(t, 1))
	ranged, got := whole(t, tiny(t, "problem.num_customers=[5, 5]"), openCPU(t, 2))
	if diff := cmp.Diff(want.Tensors, got.Tensors); diff != "" {
		t.Error(diff)
	}
	if len(sizesOf(ranged)) != 0 || len(ranged.Records) != len(plain.Records) {
		t.Errorf("%d records, %d of them sizes; a plain run has %d", len(ranged.Records), len(sizesOf(ranged)), len(plain.Records))
	}
}

// standIn is a runner that notes its steps.
type standIn struct {
	kernel.Runner
	name  int
	state kernel.State
	sums  map[string]float64
	steps int64
	bad   bool // its next gradient is not finite, and it stands still
	log   *[]int
}

func (s *standIn) Run() error {
	s.state.Instances += 4
	if !s.bad {
		s.state.Step++
	}
	s.steps++
	*s.log = append(*s.log, s.name)
	return nil
}
func (s *standIn) State() (kernel.State, error)   { return s.state, nil }
func (s *standIn) SetState(st kernel.State) error { s.state = st; return nil }
func (s *standIn) TakeMetrics() (kernel.Metrics, error) {
	m := kernel.Metrics{Steps: s.steps, GradNorm: float64(s.steps), Sums: kernel.SumsOf(s.sums)}
	if s.bad {
		m.BadStep = 7
	}
	s.steps = 0
	return m, nil
}

func newStandIns(log *[]int, sizes ...int) (*multiSizeStep, []*standIn) {
	l := &multiSizeStep{seed: 5, batch: 4, most: sizes[len(sizes)-1]}
	var all []*standIn
	for _, n := range sizes {
		s := &standIn{name: n, log: log, sums: map[string]float64{kernel.SumRows: 4, plan.SumCost: float64(8 * n), plan.SumBaseline: float64(4 * n), plan.SumLogCost: 4 * math.Log(float64(2*n)), kernel.SumDecodes: 1}}
		all = append(all, s)
		l.programs = append(l.programs, &sizeProgram{Runner: s, customers: n, own: 4, work: func(instances, decodes int64) int64 { return instances*int64(n) + decodes }})
	}
	return l, all
}

// TestSizesAreDrawnBySeedAndStep: every size about as often, and from any step on the same.
func TestSizesAreDrawnBySeedAndStep(t *testing.T) {
	var log, again []int
	l, all := newStandIns(&log, 10, 20, 40)
	if err := l.SetState(kernel.State{}); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := l.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if s, _ := l.State(); s.Instances != 12000 || s.Step != 3000 {
		t.Errorf("after 3000 steps of 4 the state is %+v", s)
	}
	count := map[int]int{}
	for _, n := range log {
		count[n]++
	}
	for _, s := range all {
		if c := count[s.name]; c < 900 || c > 1100 {
			t.Errorf("size %d was drawn %d times of 3000", s.name, c)
		}
	}
	l, _ = newStandIns(&again, 10, 20, 40)
	if err := l.SetState(kernel.State{Instances: 4 * 1000, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := l.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(log[1000:1050], again); diff != "" {
		t.Errorf("resumed after step 1000, other sizes are drawn: %s", diff)
	}
}

// TestSumsOfSizes: costs per customer are the same at every size here, and so is their mean.
func TestSumsOfSizes(t *testing.T) {
	var log []int
	l, all := newStandIns(&log, 10, 20, 40)
	for _, s := range all {
		s.steps = 1
	}
	m, err := l.TakeMetrics()
	if err != nil {
		t.Fatal(err)
	}
	rows := m.Sum(kernel.SumRows)
	for name, c := range map[string][2]float64{
		"cost per customer":      {m.Sum(plan.SumCost) / rows / 40, 2},
		"baseline":               {m.Sum(plan.SumBaseline) / rows / 40, 1},
		"geometric mean of cost": {math.Exp(m.Sum(plan.SumLogCost)/rows) / 40, 2},
		"rows":                   {rows, 12},
		"steps":                  {float64(m.Steps), 3},
		"norms":                  {m.GradNorm, 3},
		"work":                   {m.Sum(sumWork), 4*(10+20+40) + 3},
	} {
		if math.Abs(c[0]-c[1]) > 1e-9 {
			t.Errorf("%s: %v, not %v", name, c[0], c[1])
		}
	}
	all[0].bad = true
	if m, _ := l.TakeMetrics(); m.BadStep != 7 {
		t.Errorf("the first size's bad step is told as %d", m.BadStep)
	}
}

// TestABadStepEndsTheDraw: the other sizes must not continue from a state whose last step was left
// out, and FirstBad must ask the runner that made the bad step.
func TestABadStepEndsTheDraw(t *testing.T) {
	var log []int
	l, all := newStandIns(&log, 10, 20)
	if err := l.SetState(kernel.State{}); err != nil {
		t.Fatal(err)
	}
	all[1].bad = true
	for range 40 {
		if err := l.Run(); err != nil {
			t.Fatal(err)
		}
	}
	first := -1
	for i, n := range log {
		if n == 20 && first < 0 {
			first = i
		}
		if first >= 0 && n != 20 {
			t.Fatalf("step %d is of size %d, after the bad one of size 20 in step %d", i, n, first)
		}
	}
	if first < 1 || l.programs[l.at].customers != 20 {
		t.Errorf("sizes %v", log)
	}
}

// TestARangeThatDiverges: a run with several sizes reports divergence like any other run.
func TestARangeThatDiverges(t *testing.T) {
	o := options(tiny(t, "problem.num_customers=[4, 6]", "training.learning_rate=1e30", "training_advanced.warmup_steps=0"), openCPU(t, 1))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	err := run.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "not finite") || !strings.Contains(err.Error(), "training.learning_rate") {
		t.Error(err)
	}
}

// TestARangeOnTheReference: the plain meaning of every op, with one store under several programs,
// gives the figures of the CPU.
func TestARangeOnTheReference(t *testing.T) {
	cfg := tiny(t, "problem.num_customers=[4, 6]", "training.num_epochs=1", "training.batch_size=4", "training.validation_instances=6", "baseline.eval_batches=1")
	got, _ := whole(t, cfg, openCPU(t, 1))
	want, _ := whole(t, cfg, reference.New[float64](2))
	a, b := epochsOf(want)[0], epochsOf(got)[0]
	// sums of float32 on the one side; choices are drawn by the same numbers
	for name, v := range map[string][2]float64{"train": {a.TrainCPC, b.TrainCPC}, "validation": {*a.ValCPC, *b.ValCPC}, "norm": {a.GradNorm, b.GradNorm}, "work": {a.FLOPsPerSecond * a.Seconds, b.FLOPsPerSecond * b.Seconds}} {
		if math.Abs(v[0]/v[1]-1) > 1e-3 || v[0] == 0 {
			t.Errorf("%s: %v by the reference, %v on the CPU", name, v[0], v[1])
		}
	}
}

// TestEvalOfAnotherSize: a policy is evaluated on the size of the flags, or else on the largest of
// its training. Sizes outside the limits are refused.
func TestEvalOfAnotherSize(t *testing.T) {
	cfg := tiny(t, "problem.num_customers=[4, 6]", "training.num_epochs=1")
	dev := openCPU(t, 1)
	o := options(cfg, dev)
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	path := o.Dir.Best()
	for asked, want := range map[any]int{nil: 6, 4: 4, 9: 9, 1: 1} {
		flags := evalFlags{"count": 5}
		if asked != nil {
			flags["customers"] = asked
		}
		r, err := evaluate(t.Context(), evaluation(t, dev, path, flags))
		if err != nil || r.Object().(*Evaluated).Customers != want || r.Object().(*Evaluated).Gap < -1e-6 {
			t.Errorf("--customers %v: %v, %+v", asked, err, r)
		}
	}
	for _, asked := range []int{0, -1, mostCustomers + 1} {
		if _, err := evaluate(t.Context(), evaluation(t, dev, path, evalFlags{"customers": asked})); err == nil || !strings.Contains(err.Error(), "--customers is") {
			t.Errorf("--customers %d: %v", asked, err)
		}
	}
}

// TestThePageNamesTheColumnsOfSizes: docs/formats.md has the columns of the table of sizes, in
// order.
func TestThePageNamesTheColumnsOfSizes(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "`size`, "+sizesName+"\n")
	section, _, _ := strings.Cut(rest, "\n### ")
	var want []string
	for f := range reflect.TypeFor[Size]().Fields() {
		want = append(want, f.Tag.Get("json"), f.Tag.Get("csv"))
	}
	var got []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); strings.HasPrefix(line, "| `") {
			got = append(got, strings.Trim(cells[1], " `"), strings.Trim(cells[2], " `"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestASizeIsWrittenInPercent of its reference.
func TestASizeIsWrittenInPercent(t *testing.T) {
	s := Size{Customers: 20, CPC: 0.31, SE: 0.002, Gap: 0.05, GapSE: 0.001, GapTo: "optimum"}
	if got, want := s.line(), "20 customers: 0.3100 ± 0.0020 CPC, gap +5.00 ± 0.10 % to optimum"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
