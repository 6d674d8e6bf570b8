// Package ledger says what a step cost: time by op and by stage, arithmetic and bytes against the
// device's measured roof, launches, waits, copies, allocations, and the time in which a worker had
// nothing to do.
//
// What a reader could break: every moment of every worker is booked exactly once. The stages of a
// step add up to its wall time times its workers, and a test holds them to 2 %; time that belongs
// to no op is idle, not lost.
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

// Ledger is one step's account. Seconds of stages and ops are of workers: on two cores a step of 10
// ms has 20 ms to give.
type Ledger struct {
	Program  string          `json:"program"`
	Device   string          `json:"device"`
	Workers  int             `json:"workers"`
	Batch    int             `json:"batch_size"`
	Shards   int             `json:"shards"`
	Plain    float64         `json:"step_seconds"`         // median, without instruments
	Wall     float64         `json:"instrumented_seconds"` // of the step that was taken apart
	Overhead float64         `json:"overhead"`             // of the instruments, a fraction
	Peak     float64         `json:"peak_flops"`           // measured beside the step; 0: not measured
	Stream   float64         `json:"peak_bytes_per_second"`
	Actions  float64         `json:"decode_steps_per_route"`
	Memory   int64           `json:"memory_bytes"`
	Stages   []Line          `json:"stages"` // in the order of a step
	Ops      []Line          `json:"ops"`    // most time first
	PerStep  Counts          `json:"per_step"`
	Copies   []kernel.Copies `json:"copies"` // across the bus since the device was opened, by what they carried; a step makes none

	profile *kernel.Profile
	stageOf []Stage
	work    []kernel.Cost // of the whole batch, by op
}

// Line is what a stage, or one kind of op in it, took.
type Line struct {
	Stage   Stage   `json:"stage"`
	Op      string  `json:"op,omitempty"`
	Calls   int     `json:"calls"`
	Seconds float64 `json:"worker_seconds"`
	Share   float64 `json:"share"` // of all workers' time
	FLOPs   int64   `json:"flops"`
	Bytes   int64   `json:"bytes"`                   // the fewest it must move
	Rate    float64 `json:"flops_per_second"`        // at that pace on all workers
	Roof    float64 `json:"share_of_roof,omitempty"` // of what this mix of arithmetic and bytes allows
	Bound   string  `json:"bound,omitempty"`         // which side of the roof that is: arithmetic or memory
}

// Counts are what the device was asked for in a plain step, and what the program took from Go's
// heap meanwhile.
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

// rounds is how many steps are taken apart. The one with the median wall time is kept, so that a
// moment in which the machine was busy elsewhere does not become the account.
const rounds = 5

// warm is how many steps go before.
const warm = 2

// each is how many plain steps a round takes beside the one that it takes apart.
func each(steps int) int { return (steps + rounds - 1) / rounds }

// Measure replays the step about 2·steps times: first counting, then between instrumented steps.
// The runner must be a kernel.Profiler. The context is heeded between steps; progress, which may be
// nil, hears how far it is.
func Measure(ctx context.Context, dev kernel.Device, r kernel.Runner, prog *kernel.Program, steps int, progress func(done, of int)) (*Ledger, error) {
	profiler, ok := r.(kernel.Profiler)
	if !ok {
		return nil, fmt.Errorf("%s cannot time its ops", dev.Name())
	}
	steps = max(steps, 1)
	done := 0
	beat := func(n int) error { // n more steps are done
		if done += n; progress != nil {
			progress(done, warm+steps+rounds*each(steps))
		}
		return ctx.Err()
	}
	for range warm { // caches, branch predictors, a GPU's clock
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

// count runs plain steps and divides what they asked for.
func count(dev kernel.Device, r kernel.Runner, steps int, beat func(int) error) (Counts, error) {
	var before, after runtime.MemStats
	var objects, bytes uint64 // of steps alone: who hears of progress may allocate too
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

// roofOf measures the device's roof in a working set as large as one shard's activations.
func roofOf(dev kernel.Device, prog *kernel.Program) (kernel.Roof, error) {
	if d, ok := dev.(kernel.Roofed); ok {
		return d.Roof(4 * prog.ShardLen)
	}
	return kernel.Roof{}, nil
}

// median profiles several times and keeps the step in the middle, with the middle of the plain
// medians.
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
