// Package ledger measures the cost of a training step for `haul bench step` and `haul lab`: time
// per op and per stage, arithmetic and memory traffic compared with the device's measured roofline,
// launches, waits, copies, allocations, and idle time of workers.
//
// Every moment of every worker counts exactly once. The stages of a step add up to its wall time
// times the number of workers; a test allows 2 %. Time outside of ops is idle time.
package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"haul/internal/kernel"
)

// Ledger is the account of one step. Seconds of stages and ops are summed over workers: a step of
// 10 ms on two workers has 20 ms.
type Ledger struct {
	Program  string          `json:"program"`
	Device   string          `json:"device"`
	Workers  int             `json:"workers"`
	Batch    int             `json:"batch_size"`
	Shards   int             `json:"shards"`
	Plain    float64         `json:"step_seconds"`         // median of steps without instruments
	Wall     float64         `json:"instrumented_seconds"` // wall time of the instrumented step
	Overhead float64         `json:"overhead"`             // of the instruments, as a fraction
	Peak     float64         `json:"peak_flops"`           // measured next to the step; 0: not measured
	Stream   float64         `json:"peak_bytes_per_second"`
	Actions  float64         `json:"decode_steps_per_route"`
	Memory   int64           `json:"memory_bytes"`
	Stages   []Line          `json:"stages"` // in the order of a step
	Ops      []Line          `json:"ops"`    // sorted by time, largest first
	PerStep  Counts          `json:"per_step"`
	Copies   []kernel.Copies `json:"copies"` // across the bus since the device was opened, by content; a step has none

	profile *kernel.Profile
	stageOf []Stage
	work    []kernel.Cost // of the whole batch, by op
}

// Line is the account of a stage, or of the ops with one name in a stage.
type Line struct {
	Stage   Stage   `json:"stage"`
	Op      string  `json:"op,omitempty"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"worker_seconds"`
	Share   float64 `json:"share"` // fraction of all workers' time
	FLOPs   int64   `json:"flops"`
	Bytes   int64   `json:"bytes"`                   // the least that must be moved
	Rate    float64 `json:"flops_per_second"`        // FLOPs per second, if all workers had this rate
	Roof    float64 `json:"share_of_roof,omitempty"` // fraction of the roofline at this ratio of FLOPs to bytes
	Bound   string  `json:"bound,omitempty"`         // the limit of the roofline at this ratio: arithmetic or memory
}

// Counts holds the requests to the device per plain step, and the allocations on Go's heap
// meanwhile.
type Counts struct {
	Launches    float64 `json:"launches"`
	Waits       float64 `json:"waits"`
	CopiesIn    float64 `json:"copies_in"`
	CopiesOut   float64 `json:"copies_out"`
	BytesIn     float64 `json:"bytes_in"`
	BytesOut    float64 `json:"bytes_out"`
	Allocations float64 `json:"device_allocations"`
	HeapObjects float64 `json:"heap_objects"`
	HeapBytes   float64 `json:"heap_bytes"`
}

// rounds is the number of instrumented steps. The one with the median wall time is used, so that a
// short load on the machine does not distort the account.
const rounds = 5

// warmupSteps is the number of steps before the measurement.
const warmupSteps = 2

// each returns the number of plain steps per instrumented step.
func each(steps int) int { return (steps + rounds - 1) / rounds }

// Measure replays the step about 2·steps times: first to count requests, then next to instrumented
// steps. r must be a kernel.Profiler. Measure checks the context between steps. progress may be
// nil.
func Measure(ctx context.Context, dev kernel.Device, r kernel.Runner, prog *kernel.Program, steps int, progress func(done, of int)) (*Ledger, error) {
	profiler, ok := r.(kernel.Profiler)
	if !ok {
		return nil, fmt.Errorf("%s cannot time its ops", dev.Name())
	}
	steps = max(steps, 1)
	done := 0
	beat := func(n int) error { // called after n more steps
		if done += n; progress != nil {
			progress(done, warmupSteps+steps+rounds*each(steps))
		}
		return ctx.Err()
	}
	for range warmupSteps { // fills caches, trains branch predictors, raises a GPU's clock rate
		if err := r.Run(); err != nil {
			return nil, err
		}
		if err := beat(1); err != nil {
			return nil, err
		}
	}
	if _, err := r.TakeMetrics(); err != nil {
		return nil, err
	}
	counts, err := count(dev, r, steps, beat)
	if err != nil {
		return nil, err
	}
	m, err := r.TakeMetrics()
	if err != nil {
		return nil, err
	}
	if m.BadStep != 0 {
		return nil, errors.New("the step's gradient is not finite: there is nothing to measure")
	}
	roof, err := roofOf(dev, prog)
	if err != nil {
		return nil, err
	}
	p, err := median(profiler, steps, beat)
	if err != nil {
		return nil, err
	}
	actions := 0.0
	if rows := m.Sum(kernel.SumRows); rows > 0 {
		actions = m.Sum(kernel.SumDecodes) / rows
	}
	l := New(p, roof, actions)
	l.Device, l.PerStep, l.Memory, l.Copies = dev.Name(), counts, r.Memory(), dev.Counters().Tagged()
	return l, nil
}

// count runs plain steps and returns their requests and allocations per step.
func count(dev kernel.Device, r kernel.Runner, steps int, beat func(int) error) (Counts, error) {
	var before, after runtime.MemStats
	var objects, bytes uint64 // of steps only: progress may allocate too
	was := *dev.Counters()
	for range steps {
		runtime.ReadMemStats(&before)
		if err := r.Run(); err != nil {
			return Counts{}, err
		}
		runtime.ReadMemStats(&after)
		objects, bytes = objects+after.Mallocs-before.Mallocs, bytes+after.TotalAlloc-before.TotalAlloc
		if err := beat(1); err != nil {
			return Counts{}, err
		}
	}
	is := *dev.Counters()
	per := func(n int64) float64 { return float64(n) / float64(steps) }
	return Counts{Launches: per(is.Launches - was.Launches), Waits: per(is.Waits - was.Waits),
		CopiesIn: per(is.CopiesIn - was.CopiesIn), CopiesOut: per(is.CopiesOut - was.CopiesOut),
		BytesIn: per(is.BytesIn - was.BytesIn), BytesOut: per(is.BytesOut - was.BytesOut),
		Allocations: per(is.Allocations - was.Allocations),
		HeapObjects: per(int64(objects)), HeapBytes: per(int64(bytes))}, nil
}

// roofOf measures the device's roofline for a working set as large as one shard's activations.
func roofOf(dev kernel.Device, prog *kernel.Program) (kernel.Roof, error) {
	if d, ok := dev.(kernel.Roofed); ok {
		return d.Roof(4 * prog.ShardLen)
	}
	return kernel.Roof{}, nil
}

// median profiles several steps and returns the one with the median wall time. Its plain time is
// the median of the plain times.
func median(r kernel.Profiler, steps int, beat func(int) error) (*kernel.Profile, error) {
	all := make([]*kernel.Profile, rounds)
	for i := range all {
		var err error
		if all[i], err = r.Profile(each(steps)); err != nil {
			return nil, err
		}
		if err := beat(each(steps)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b *kernel.Profile) int { return cmp.Compare(a.Plain, b.Plain) })
	plain := all[rounds/2].Plain
	slices.SortFunc(all, func(a, b *kernel.Profile) int { return cmp.Compare(a.Wall, b.Wall) })
	p := all[rounds/2]
	p.Plain = plain
	return p, nil
}
