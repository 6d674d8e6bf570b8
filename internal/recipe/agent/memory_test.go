package agent

import (
	"math"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world/history"
)

// gpuMemory is a GPU: a device with separate memory, from which compiling allocates.
type gpuMemory struct {
	kernel.Device
	free int64
}

func (c *gpuMemory) AvailableMemory() (int64, bool) { return c.free, true }

func (c *gpuMemory) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r, err := c.Device.Compile(p, sets)
	if err == nil {
		c.free -= r.Memory()
	}
	return r, err
}

// A run's memory is checked without counting what the run has already allocated, and too large an
// allocation is refused before it is made.
func TestRunMayFillAGPU(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	e, _ := trained(t, tinyAD(t), openReference(), h, DataDevice)
	filled := &gpuMemory{openReference(), e.Info.Memory + 1024}
	trained(t, tinyAD(t), filled, h, DataDevice)
	if filled.free != 1024 {
		t.Errorf("a run of %d bytes left %d of a card with 1024 more", e.Info.Memory, filled.free)
	}
	small := &gpuMemory{openReference(), e.Info.Memory / 3}
	o := options(tinyAD(t), small, h, DataDevice)
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	err := run.Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "is available on reference") {
		t.Errorf("a third of the memory: %v", err)
	}
}

// crowded is a device whose memory is always almost full.
type crowded struct {
	kernel.Device
	free int64
}

func (c crowded) AvailableMemory() (int64, bool) { return c.free, true }

// parts returns the dataset, model and store that a step is recorded from and compiled with.
func parts(t *testing.T, dev kernel.Device, h *history.Rooms, cfg *config.AD) (*dataset, *model.AD, kernel.Store) {
	t.Helper()
	l, err := newDataset(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(cfg, l.space)
	if err != nil {
		t.Fatal(err)
	}
	store, err := dev.NewStore(m.Layout(), true)
	if err != nil {
		t.Fatal(err)
	}
	return l, m, store
}

// TestHistoriesGoWhereTheyFit: left to itself a run keeps its histories on the device, or on the
// host where the device has no room for them.
func TestHistoriesGoWhereTheyFit(t *testing.T) {
	h, cfg := writeHistory(t, tinyHistory), tinyAD(t, "train_n_stream=3", "train_source_timesteps=120")
	l, m, _ := parts(t, openReference(), h, cfg)
	step, err := recordStep(openReference(), m, cfg, l, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	need := run.LeastMemory(openReference(), step.plan.Program())
	for free, want := range map[int64]bool{need: false, need - 1: true} {
		if e, _ := trained(t, cfg, crowded{openReference(), free}, h, DataAuto); viewOf(e).host != want {
			t.Errorf("%d bytes free of %d needed: the histories are on the host: %v", free, need, !want)
		}
	}
}

// TestHistoriesTooLargeForTheGPUAreAdvisedToStayOnTheHost: a smaller batch would not help them.
func TestHistoriesTooLargeForTheGPUAreAdvisedToStayOnTheHost(t *testing.T) {
	h, cfg := writeHistory(t, tinyHistory), tinyAD(t)
	dev := openReference()
	l, m, store := parts(t, dev, h, cfg)
	least := func(onDevice bool) int64 {
		p, err := recordStep(dev, m, cfg, l, onDevice, nil)
		if err != nil {
			t.Fatal(err)
		}
		return run.LeastMemory(dev, p.plan.Program())
	}
	with, without := least(true), least(false)
	if with <= without {
		t.Fatalf("%d bytes with the histories, %d without", with, without)
	}
	for free, advised := range map[int64]bool{with - 1: true, without: true, without - 1: false} {
		_, _, err := compileStep(crowded{dev, free}, m, cfg, l, store, DataDevice, nil)
		if err == nil || strings.Contains(err.Error(), "--data host") != advised || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes free, advised %v: %v", free, advised, err)
		}
	}
}

// TestHostMemoryIsAskedFor: what the host could never hold is refused in one line before it is
// reserved.
func TestHostMemoryIsAskedFor(t *testing.T) {
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell what memory is free")
	}
	h := writeHistory(t, tinyHistory)
	a, _ := trainedAgent(t, openReference(), h)
	for _, episodes := range []int{1 << 45, math.MaxInt} {
		if _, err := a.Evaluate(t.Context(), EvalOptions{History: h, Episodes: episodes}); err == nil || !strings.Contains(err.Error(), "keeping the return of every episode needs") {
			t.Errorf("%d episodes: %v", episodes, err)
		}
	}
	if _, err := CompileStep(openReference(), tinyAD(t, "train_n_stream=1000000", "train_source_timesteps=1000000000"), nil); err == nil || !strings.Contains(err.Error(), "standing in for learning histories needs") {
		t.Errorf("a step of 10^15 transitions: %v", err)
	}
	cfg := tinyAD(t)
	dev := openReference()
	l, m, store := parts(t, dev, h, cfg)
	p, r, err := compileStep(dev, m, cfg, l, store, DataHost, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := newFeed(r, p, l, 0, 1, 1<<40); err == nil || !strings.Contains(err.Error(), "batches ahead needs") {
		t.Errorf("a depth of 2^40: %v", err)
	}
}
