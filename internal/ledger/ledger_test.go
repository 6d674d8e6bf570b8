package ledger_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/doctor"
	"haul/internal/kernel"
	"haul/internal/ledger"
	"haul/internal/recipe"
)

// settings returns a step that is small enough for a test, with batch and shards of different size.
func settings(t *testing.T, baseline string) *config.Config {
	t.Helper()
	c, err := config.Load("tiny_1", []string{"training.batch_size=36", "model.hidden_dim=32", "model.num_layers=1", "baseline.type=" + baseline})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func measure(t *testing.T, baseline string, workers int) (*ledger.Ledger, *kernel.Program) {
	t.Helper()
	dev, err := device.Open("cpu", device.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	step, err := recipe.Step(dev, settings(t, baseline))
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Measure(t.Context(), dev, step.Runner, step.Program, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l, step.Program
}

func TestStagesAddUpToTheStep(t *testing.T) {
	for _, baseline := range []string{config.BaselineRollout, config.BaselinePOMO, config.BaselineEMA} {
		for _, workers := range []int{1, 2} {
			l, _ := measure(t, baseline, workers)
			var stages, ops, idle float64
			for _, s := range l.Stages {
				stages += s.Seconds
				if s.Stage == ledger.Idle {
					idle = s.Seconds
				}
			}
			for _, o := range l.Ops {
				ops += o.Seconds
			}
			whole := l.Wall * float64(workers)
			if math.Abs(stages-whole) > 0.02*whole {
				t.Errorf("%s, %d workers: stages add up to %v s, the step offered %v s", baseline, workers, stages, whole)
			}
			if math.Abs(ops+idle-stages) > 1e-9*whole {
				t.Errorf("%s, %d workers: ops and idle time %v s, stages %v s", baseline, workers, ops+idle, stages)
			}
			if l.PerStep.Launches != 1 || l.PerStep.CopiesIn+l.PerStep.CopiesOut+l.PerStep.Allocations != 0 {
				t.Errorf("a step on the CPU forks once, copies and allocates nothing; counted %+v", l.PerStep)
			}
			if l.Peak <= 0 || l.Stream <= 0 || l.Actions < 11 || l.Actions > 20 {
				t.Errorf("roof %v FLOP/s and %v B/s, %v decode steps", l.Peak, l.Stream, l.Actions)
			}
		}
	}
}

func TestOpsFindTheirStage(t *testing.T) {
	for _, c := range []struct {
		baseline string
		want     []ledger.Stage // in the order of recording, without repetitions
	}{
		{config.BaselineRollout, []ledger.Stage{ledger.Generate, ledger.Baseline, ledger.Encode, ledger.Decode, ledger.Baseline, ledger.Backward, ledger.Optimizer}},
		{config.BaselinePOMO, []ledger.Stage{ledger.Generate, ledger.Encode, ledger.Decode, ledger.Baseline, ledger.Backward, ledger.Optimizer}},
	} {
		_, prog := measure(t, c.baseline, 1)
		var got []ledger.Stage
		for _, s := range ledger.Stages(prog) {
			if len(got) == 0 || got[len(got)-1] != s {
				got = append(got, s)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.baseline, diff)
		}
	}
}

// novel is an op that other packages do not know.
type novel struct {
	in, out []*kernel.Tensor
}

func (o *novel) Kind() string      { return "novel" }
func (o *novel) Cost() kernel.Cost { return kernel.Cost{} }
func (o *novel) Args(f func(*kernel.Tensor, kernel.Access)) {
	for _, t := range o.in {
		f(t, kernel.Read)
	}
	for _, t := range o.out {
		f(t, kernel.Write)
	}
}

// simulated declares a new stage.
type simulated struct{ novel }

func (o *simulated) Stage() kernel.Stage { return "simulate" }

// decided declares a stage of the forward pass.
type decided struct{ novel }

func (o *decided) Stage() kernel.Stage { return kernel.StageDecode }

func TestUnknownOpsFindTheirStage(t *testing.T) {
	made := func(space kernel.Space, set int) *kernel.Tensor {
		return &kernel.Tensor{Space: space, Set: set, Shape: []int{1}, Stride: 1}
	}
	x, h, frozen, choice, dw := made(kernel.Shard, 0), made(kernel.Shard, 0), made(kernel.Shard, 0), made(kernel.Shard, 0), made(kernel.Grad, 0)
	w, w1 := made(kernel.Weight, 0), made(kernel.Weight, 1)
	ops := []kernel.Op{
		&simulated{novel{out: []*kernel.Tensor{x}}},
		&novel{in: []*kernel.Tensor{x, w}, out: []*kernel.Tensor{h}},
		&novel{in: []*kernel.Tensor{x, w1}, out: []*kernel.Tensor{frozen}},
		&decided{novel{in: []*kernel.Tensor{frozen}, out: []*kernel.Tensor{made(kernel.Shard, 0)}}},
		&decided{novel{in: []*kernel.Tensor{h}, out: []*kernel.Tensor{choice}}},
		&novel{in: []*kernel.Tensor{choice}, out: []*kernel.Tensor{dw}},
		&simulated{novel{in: []*kernel.Tensor{frozen, dw}}},
	}
	p := &kernel.Program{Batch: 1, Shard: 1, PerShard: ops, Once: []kernel.Op{&novel{}}}
	want := []ledger.Stage{"simulate", ledger.Encode, ledger.Baseline, ledger.Baseline, ledger.Decode, ledger.Backward, "simulate", ledger.Optimizer}
	if diff := cmp.Diff(want, ledger.Stages(p)); diff != "" {
		t.Error(diff)
	}
	profile := &kernel.Profile{Program: p, Workers: 1, Wall: 8}
	for i := range 8 {
		profile.Spans = append(profile.Spans, kernel.Span{Op: i, Start: time.Duration(i), End: time.Duration(i + 1)})
	}
	var booked []ledger.Stage
	for _, s := range ledger.New(profile, kernel.Roof{}, 0).Stages {
		booked = append(booked, s.Stage)
	}
	if diff := cmp.Diff([]ledger.Stage{ledger.Encode, ledger.Decode, ledger.Baseline, "simulate", ledger.Backward, ledger.Optimizer}, booked); diff != "" {
		t.Error(diff)
	}
}

// made returns a profile of a program with one op of known work on two workers. One of them is
// idle half of the time.
func made() *kernel.Profile {
	x := &kernel.Tensor{Name: "x", Space: kernel.Shard, Shape: []int{4, 8}, Stride: 8}
	w := &kernel.Tensor{Name: "w", Space: kernel.Weight, Shape: []int{16, 8}, Stride: 8, ID: 1}
	y := &kernel.Tensor{Name: "y", Space: kernel.Shard, Shape: []int{4, 16}, Stride: 16, ID: 2}
	prog := &kernel.Program{Name: "made", Batch: 6, Shard: 4, PerShard: []kernel.Op{&kernel.Linear{Y: y, X: x, W: w}}}
	return &kernel.Profile{Program: prog, Workers: 2, Wall: 10 * time.Microsecond, Plain: 8 * time.Microsecond, Spans: []kernel.Span{
		{Op: 0, Worker: 0, Shard: 0, Start: 0, End: 10 * time.Microsecond},
		{Op: 0, Worker: 1, Shard: 1, Start: 0, End: 5 * time.Microsecond},
		{Op: kernel.Idle, Worker: 1, Shard: -1, Start: 5 * time.Microsecond, End: 10 * time.Microsecond},
	}}
}

func TestFiguresOfAnOp(t *testing.T) {
	// 6 of 8 rows: 2·6·8·16 operations in 15 µs of two workers, 7.5 µs on both together.
	l := ledger.New(made(), kernel.Roof{FLOPs: 1e9, Bytes: 1e12}, 0)
	op := l.Ops[0]
	if op.FLOPs != 1536 || op.Calls != 2 || op.Bound != "arithmetic" || math.Abs(op.Rate-1536/7.5e-6) > 1 ||
		math.Abs(op.Roof-1.536e-6/7.5e-6) > 1e-9 || math.Abs(op.Share-0.75) > 1e-9 {
		t.Errorf("booked %+v", op)
	}
	if last := l.Stages[len(l.Stages)-1]; last.Stage != ledger.Idle || math.Abs(last.Share-0.25) > 1e-9 {
		t.Errorf("idle time booked as %+v", last)
	}
	if math.Abs(l.Overhead-0.25) > 1e-9 {
		t.Errorf("overhead %v, want 0.25", l.Overhead)
	}
	if memory := ledger.New(made(), kernel.Roof{FLOPs: 1e12, Bytes: 1e6}, 0).Ops[0]; memory.Bound != "memory" {
		t.Errorf("bound by %s on a device with slow memory", memory.Bound)
	}
	if bare := ledger.New(made(), kernel.Roof{}, 0).Ops[0]; bare.Roof != 0 || bare.Bound != "" {
		t.Errorf("a roof nobody measured: %+v", bare)
	}
}

func TestLargestCostsComeFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := made()
		cut := time.Duration(rapid.IntRange(1, 9999).Draw(t, "ns"))
		p.Spans[1].End, p.Spans[2].Start = cut, cut
		l := ledger.New(p, kernel.Roof{}, 0)
		sum := 0.0
		for _, s := range l.Stages {
			sum += s.Share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares add up to %v", sum)
		}
		words := l.Largest(3)
		if len(words) != 2 || strings.Contains(words[0], "nothing to run") {
			t.Fatalf("the op's %v of 20 µs must come before idle time: %q", 10*time.Microsecond+cut, words)
		}
	})
}

func TestTextNamesEveryStage(t *testing.T) {
	l, _ := measure(t, config.BaselineRollout, 2)
	var b bytes.Buffer
	if err := l.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1. ", "2. ", "3. ", "generate", "encode", "decode", "baseline", "backward", "optimizer", "idle", "of roof", "instruments:", "launches 1,"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if n := len(l.Summary()); n != 3 {
		t.Errorf("the summary has %d lines", n)
	}
}

func TestTraceIsReadBack(t *testing.T) {
	l, _ := measure(t, config.BaselineRollout, 2)
	for _, gpu := range []bool{false, true} {
		var b bytes.Buffer
		if err := l.WriteTrace(&b, gpu); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			TraceEvents []struct {
				Ph, Cat, Name string
				TS, Dur       float64
			}
		}
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		ops, steps := 0, 0
		for _, e := range doc.TraceEvents {
			switch {
			case e.Name == "ProfilerStep#0" && e.Cat == "user_annotation":
				steps++
				if math.Abs(e.Dur-1e6*l.Wall) > 1 {
					t.Errorf("the step lasts %v µs, the ledger says %v s", e.Dur, l.Wall)
				}
			case e.Cat == "cpu_op" && !gpu, e.Cat == "kernel" && gpu:
				ops++
			}
		}
		calls := 0
		for _, o := range l.Ops {
			calls += o.Calls
		}
		if steps != 1 || ops != calls {
			t.Errorf("the trace has %d steps and %d ops, the ledger 1 and %d", steps, ops, calls)
		}
		trace, err := doctor.Read(&b)
		if err != nil {
			t.Fatalf("the doctor cannot read it: %v", err)
		}
		report, err := doctor.Diagnose(trace)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(report.StepMS-1e3*l.Wall) > 0.01 {
			t.Errorf("the doctor reads a step of %v ms, the ledger says %v s", report.StepMS, l.Wall)
		}
	}
}

// TestPairsAreScoredOnce: the actual number of steps of routes changes the work of decoding, but
// not that of the scores of pairs, which are computed before the first step.
func TestPairsAreScoredOnce(t *testing.T) {
	const b, n, s, d, steps = 4, 9, 3, 8, 7.5
	tensor := func(shape ...int) *kernel.Tensor {
		return &kernel.Tensor{Space: kernel.Shard, Shape: shape, Stride: shape[len(shape)-1]}
	}
	decoder := kernel.Decoder{Proj: tensor(b, n, 3*d), Pointer: tensor(b, n, d), Graph: tensor(b, d), Context: tensor(d),
		Instances: kernel.Instances{PosX: tensor(b, n), PosY: tensor(b, n), Nodes: tensor(b, n)}, Pair: tensor(b, n, 2*d), PairContext: tensor(d)}
	actions := tensor(b, s, 2*n)
	prog := &kernel.Program{Batch: b, Shard: b, PerShard: []kernel.Op{
		&kernel.Rollout{Decoder: decoder, Actions: actions, Steps: tensor(b, s), Length: tensor(b, s), LogProb: tensor(b, s), Entropy: tensor(b, s)},
		&kernel.RolloutGrad{Decoder: decoder, DProj: tensor(b, n, 3*d), DPointer: tensor(b, n, d), DGraph: tensor(b, d), DContext: tensor(d),
			DPair: tensor(b, n, 2*d), DPairContext: tensor(d), Actions: actions, Steps: tensor(b, s), Adv: tensor(b, s)}}}
	l := ledger.New(&kernel.Profile{Program: prog, Workers: 1, Wall: 3, Spans: []kernel.Span{{Op: 0, End: 1}, {Op: 1, Start: 1, End: 3}}}, kernel.Roof{}, steps)
	const want = 2*b*n*(n+1)*d + b*s*steps*3*2*n*d
	for i, times := range []int64{3, 1} { // the gradient took longest and is first
		if got := l.Ops[i].FLOPs; got != times*want {
			t.Errorf("%s: %d operations, want %d", l.Ops[i].Op, got, times*int64(want))
		}
	}
}
