package routing

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// roomy is a device with so much memory.
type roomy struct {
	kernel.Device
	bytes int64
}

func (r roomy) AvailableMemory() (int64, bool) { return r.bytes, true }
func (r roomy) StoreMemory(l *kernel.Layout, train bool) int64 {
	return r.Device.(kernel.Sizer).StoreMemory(l, train)
}
func (r roomy) Arenas() int                { return r.Device.(kernel.Sizer).Arenas() }
func (r roomy) Kept(p *kernel.Program) int { return r.Device.(kernel.Sizer).Kept(p) }

// needs returns the memory of a step that is computed in the given number of parts.
func needs(t *testing.T, dev kernel.Device, c *config.Config, parts int) int64 {
	t.Helper()
	own := *c
	own.Training.GradientParts = parts
	m, err := policy.NewNetwork(&own)
	if err != nil {
		t.Fatal(err)
	}
	p, err := recordStep(dev, m, &own, nil)
	if err != nil {
		t.Fatal(err)
	}
	return run.LeastMemory(dev, p.Program())
}

// without is settings without the number of parts.
func without(t *testing.T, s *runtest.State, parts int) *runtest.State {
	t.Helper()
	line := fmt.Sprintf("gradient_parts: %d\n", parts)
	if !strings.Contains(s.Settings, line) {
		t.Fatalf("the run's settings lack %q:\n%s", line, s.Settings)
	}
	own := *s
	own.Settings = strings.Replace(s.Settings, line, "", 1)
	own.Progress.Device = kernel.State{Instances: s.Progress.Device.Instances, Step: s.Progress.Device.Step, Scalars: s.Progress.Device.Scalars}
	return &own
}

// TestPartsAreTheWholeStep: on a CPU no bit of a run depends on the number of parts per step. This
// covers all sums over instances: gradients, a running mean of costs, and reported sums.
func TestPartsAreTheWholeStep(t *testing.T) {
	for name, sets := range map[string][]string{
		"rollout": {"model.transformer_dropout=0.1", "training_advanced.entropy_coef=0.05"},
		"ema":     {"baseline.type=ema"},
		"leaders": append([]string{"training_advanced.optimizer=muon"}, leaders...),
		"sizes":   {"problem.num_customers=[5, 7]"},
	} {
		t.Run(name, func(t *testing.T) {
			sets = append([]string{"training.batch_size=720", "training.num_epochs=1", "training.num_batches_per_epoch=2", "training.validation_instances=2"}, sets...)
			dev := openCPU(t, 2)
			heard, state := whole(t, tiny(t, sets...), dev)
			for _, parts := range []int{2, 3, 45, 60} {
				if parts == 60 && name == "leaders" {
					continue // 720 has no 60 parts of whole groups of eight
				}
				h, s := whole(t, tiny(t, append([]string{fmt.Sprintf("training.gradient_parts=%d", parts)}, sets...)...), dev)
				runtest.Same(t, without(t, state, 1), without(t, s, parts))
				runtest.SameRecords(t, heard.Records, h.Records)
			}
		})
	}
}

// TestPartsFitTheMemory: a run takes as few parts as fit, says so once, keeps the number, and goes
// on with it. One byte decides.
func TestPartsFitTheMemory(t *testing.T) {
	sets := []string{"training.batch_size=1440", "training.num_epochs=1", "training.num_batches_per_epoch=1", "training.validation_instances=2"}
	cpu := openCPU(t, 1)
	c := tiny(t, sets...)
	of := map[int]int64{}
	for _, parts := range []int{1, 2, 3, 60} {
		of[parts] = needs(t, cpu, c, parts)
	}
	_, want := whole(t, tiny(t, sets...), cpu)
	for _, k := range []struct {
		bytes int64
		parts int
	}{{of[1], 1}, {of[1] - 1, 2}, {of[2], 2}, {of[2] - 1, 3}, {of[3], 3}} {
		o := options(tiny(t, sets...), roomy{cpu, k.bytes})
		h := &runtest.Heard{}
		o.Dir, o.Listener = runtest.OpenDir(t, runtest.Folder(t), false), h
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		runtest.Same(t, without(t, want, 1), without(t, runtest.Load(t, o.Dir.Last()), k.parts))
		said := strings.Join(h.Notes, "\n")
		note := fmt.Sprintf("a step is computed in %d parts of %d instances, one after another, since in one train needs ", k.parts, 1440/k.parts)
		if strings.Contains(said, note) != (k.parts > 1) || strings.Count(said, "a step is computed") > 1 {
			t.Errorf("%d parts: said %q", k.parts, said)
		}
		// more epochs with the number left open: it is the run's, wherever there is more memory now
		more := tiny(t, append(sets, "training.num_epochs=2")...)
		o.Dir.Close()
		o.Settings, o.Device, o.Resume, o.Dir = more, cpu, true, runtest.OpenDir(t, o.Dir.Path(), true)
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		without(t, runtest.Load(t, o.Dir.Last()), k.parts)
	}
	// what is set is kept, and refused where it does not fit
	for parts, want := range map[int]string{1: "training.batch_size ", 2: ""} {
		o := options(tiny(t, append(sets, fmt.Sprintf("training.gradient_parts=%d", parts))...), roomy{cpu, of[2]})
		o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
		if err := run.Run(t.Context(), o); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d parts: %v", parts, err)
		}
	}
	// where no number is enough, the whole step is refused
	o := options(tiny(t, sets...), roomy{cpu, of[60] - 1})
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := run.Run(t.Context(), o); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "train needs ") {
		t.Errorf("too little for any number of parts: %v", err)
	}
}

// TestRanksAgreeOnParts: where one rank is short of memory, all cut the step alike.
func TestRanksAgreeOnParts(t *testing.T) {
	sets := []string{"training.batch_size=1440", "training.num_epochs=1", "training.num_batches_per_epoch=1", "training.validation_instances=2"}
	_, want := whole(t, tiny(t, sets...), openCPU(t, 1))
	half := tiny(t, append(sets, "training.batch_size=720")...)
	dir, h := runtest.OpenDir(t, runtest.Folder(t), false), &runtest.Heard{}
	err := runtest.Ranks(t.Context(), t, 2, dir, false, h, func(rank int) run.Options {
		dev := roomy{openCPU(t, 1), 1 << 40}
		if rank == 1 {
			dev.bytes = needs(t, dev, half, 1) - 1
		}
		return options(tiny(t, sets...), dev)
	})
	if err != nil {
		t.Fatal(err)
	}
	runtest.Same(t, without(t, want, 1), without(t, runtest.Load(t, dir.Last()), 2))
	if said := strings.Join(h.Notes, "\n"); !strings.Contains(said, "a step is computed in 2 parts") {
		t.Errorf("said %q", said)
	}
}

// TestPartsMustBeEqual: a number that does not divide the batch, or its groups, is refused in one
// line.
func TestPartsMustBeEqual(t *testing.T) {
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"training.batch_size=12", "training.gradient_parts=5"}, "training.batch_size: a batch of 12 does not cut into 5 equal parts: use a multiple of 5, or fewer parts"},
		{append([]string{"training.batch_size=96", "training.gradient_parts=5"}, leaders...), "training.batch_size: a batch of 96 in groups of 8 does not cut into 5 equal parts: use a multiple of 40, or fewer parts"},
	} {
		o := options(tiny(t, c.sets...), openCPU(t, 1))
		o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
		if err := run.Run(t.Context(), o); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v", c.sets, err)
		}
	}
}
