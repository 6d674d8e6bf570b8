package train

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// card is a device with memory of its own, which compiling takes from.
type card struct {
	kernel.Device
	free int64
}

func (c *card) AvailableMemory() (int64, bool) { return c.free, true }

func (c *card) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r, err := c.Device.Compile(p, sets)
	if err == nil {
		c.free -= r.Memory()
	}
	return r, err
}

// TestRunMayFillACard: what a run has taken of a card is not asked for a second time, and what it cannot have is refused before it is taken.
func TestRunMayFillACard(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	e, _ := wholeAD(t, ADOptions{Config: tinyAD(t), Device: openReference(), History: h, Data: DataDevice})
	filled := &card{openReference(), e.info.Memory + 1024}
	wholeAD(t, ADOptions{Config: tinyAD(t), Device: filled, History: h, Data: DataDevice})
	if filled.free != 1024 {
		t.Errorf("a run of %d bytes left %d of a card with 1024 more", e.info.Memory, filled.free)
	}
	small := &card{openReference(), e.info.Memory / 3}
	err := RunAD(t.Context(), ADOptions{Config: tinyAD(t), Device: small, History: h, Data: DataDevice, Dir: openDir(t, setup(t), false)})
	if err == nil || !strings.Contains(err.Error(), "is available on reference") {
		t.Errorf("a third of the memory: %v", err)
	}
}

// crowded is a card with little free, whatever is compiled.
type crowded struct {
	kernel.Device
	free int64
}

func (c crowded) AvailableMemory() (int64, bool) { return c.free, true }

// TestHistoriesGoWhereTheyFit: left to itself a run keeps its histories on the device, or on the host where the device has no room for them.
func TestHistoriesGoWhereTheyFit(t *testing.T) {
	h, cfg := writeHistory(t, tinyHistory), tinyAD(t, "train_n_stream=3", "train_source_timesteps=120")
	l, err := newLessons(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newAgentModel(cfg, l.room.Size)
	if err != nil {
		t.Fatal(err)
	}
	need := leastMemory(recordAD(openReference(), m, cfg, l, true).plan.Program())
	for free, want := range map[int64]string{need: DataDevice, need - 1: DataHost} {
		if e, _ := wholeAD(t, ADOptions{Config: cfg, Device: crowded{openReference(), free}, History: h, Data: DataAuto}); e.info.Data != want {
			t.Errorf("%d bytes free of %d needed: the histories are on the %s", free, need, e.info.Data)
		}
	}
}

// TestHostMemoryIsAskedFor: what the host could never hold is refused in one line before it is reserved.
func TestHostMemoryIsAskedFor(t *testing.T) {
	if _, known := availableMemory(); !known {
		t.Skip("this system does not tell what memory is free")
	}
	h := writeHistory(t, tinyHistory)
	a, _ := trainedAgent(t, openReference(), h)
	for _, episodes := range []int{1 << 45, math.MaxInt} {
		if _, err := a.Evaluate(t.Context(), ADEvalOptions{History: h, Episodes: episodes}); err == nil || !strings.Contains(err.Error(), "keeping the return of every episode needs") {
			t.Errorf("%d episodes: %v", episodes, err)
		}
	}
	if _, err := MakeHistories(t.Context(), HistoryOptions{Config: smallData(t, "total_source_timesteps=1000000000"), Path: filepath.Join(t.TempDir(), "x.hist"), Devices: make([]kernel.Device, 1<<20)}); err == nil || !strings.Contains(err.Error(), "learners' histories needs") {
		t.Errorf("2^20 learners of 10^9 steps: %v", err)
	}
	if _, err := CompileADStep(openReference(), tinyAD(t, "train_n_stream=1000000000", "train_source_timesteps=1000000000"), nil); err == nil || !strings.Contains(err.Error(), "standing in for learning histories needs") {
		t.Errorf("a step of 10^18 transitions: %v", err)
	}
	cfg := tinyAD(t)
	l, err := newLessons(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newAgentModel(cfg, l.room.Size)
	if err != nil {
		t.Fatal(err)
	}
	dev := openReference()
	store, err := dev.NewStore(m.Layout(), true)
	if err != nil {
		t.Fatal(err)
	}
	p, r, err := compileAD(dev, m, cfg, l, store, DataHost)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := newFeed(r, p, l, 0, 1, 1<<40); err == nil || !strings.Contains(err.Error(), "batches ahead needs") {
		t.Errorf("a depth of 2^40: %v", err)
	}
}
