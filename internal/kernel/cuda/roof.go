package cuda

import (
	"errors"
	"time"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// The geometry of src/bench/peak.cu: blocks of peakThreads, peakTurns products a thread and round.
const (
	peakThreads = 256
	peakTurns   = 8 * 8
)

// peakWork is the operations of one round of the multiply-add loop, for a thread.
var peakWork = map[bind.Precision]float64{
	bind.FP32: peakTurns * 2,
	bind.TF32: peakTurns * 16 * 8 * 8 * 2 / 32,
	bind.BF16: peakTurns * 16 * 8 * 16 * 2 / 32,
}

// roofSlice is how long one measurement should last, and roofRounds how many there are; the best
// counts.
const (
	roofSlice  = 2 * time.Millisecond
	roofRounds = 8
)

// roofBytes bounds the working set: past the caches a larger one is no slower.
const roofBytes = 1 << 30

// Roof runs the multiply-add loop of the device's precision and sums of vectors that together fill
// the working set.
func (d *Device) Roof(workingSet int) (roof kernel.Roof, err error) {
	quads := max(1024, min(workingSet, roofBytes)/32)
	x, err := d.alloc(16 * quads)
	if err != nil {
		return roof, err
	}
	defer func() { err = errors.Join(err, x.free()) }()
	y, err := d.alloc(16 * quads)
	if err != nil {
		return roof, err
	}
	defer func() { err = errors.Join(err, y.free()) }()
	blocks := 4 * d.sms // all at once on the card, whatever registers the loop takes
	loop := bind.Launch{Module: "peak", Kernel: "peak_" + string(d.precision), Grid: bind.Dim3{blocks, 1, 1}, Block: bind.Dim3{peakThreads, 1, 1}}
	rate, err := d.fastest(loop, func(rounds int) []any { return []any{y.at, bind.I32(rounds), float32(1), float32(0)} })
	if err != nil {
		return roof, err
	}
	sweep := bind.Launch{Module: "peak", Kernel: "peak_move", Grid: bind.Dim3{min(2*blocks, bind.Ceil(quads, peakThreads)), 1, 1}, Block: bind.Dim3{peakThreads, 1, 1}}
	passes, err := d.fastest(sweep, func(rounds int) []any { return []any{y.at, x.at, bind.I32(quads), bind.I32(rounds)} })
	if err != nil {
		return roof, err
	}
	roof.FLOPs = rate * float64(blocks*peakThreads) * peakWork[d.precision]
	roof.Bytes = passes * 48 * float64(quads)
	return roof, nil
}

// fastest is the most rounds a second that the kernel reached.
func (d *Device) fastest(l bind.Launch, args func(rounds int) []any) (rate float64, err error) {
	err = d.ctx.Do(func() error {
		f, err := d.function(l)
		if err != nil {
			return err
		}
		for rounds, left := 1, roofRounds; left > 0; {
			took, err := d.timeLaunch(f, l, args(rounds))
			if err != nil {
				return err
			}
			if took < roofSlice.Seconds() && rounds < 1<<24 {
				rounds *= 2
				continue
			}
			rate = max(rate, float64(rounds)/took)
			left--
		}
		return nil
	})
	return rate, err
}

// timeLaunch runs the kernel once between two events. On the context's thread.
func (d *Device) timeLaunch(f cu.Function, l bind.Launch, args []any) (seconds float64, err error) {
	packed, err := cu.PackArgs(args...)
	if err != nil {
		return 0, err
	}
	var marks [2]cu.Event
	for i := range marks {
		if marks[i], err = d.ctx.NewEvent(); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, d.ctx.FreeEvent(marks[i])) }()
	}
	geometry := cu.Geometry{Grid: l.Grid, Block: l.Block}
	if err := errors.Join(d.ctx.Record(marks[0], d.stream), d.ctx.Launch(f, geometry, d.stream, packed), d.ctx.Record(marks[1], d.stream)); err != nil {
		return 0, err
	}
	ms, err := d.ctx.Elapsed(marks[0], marks[1])
	return float64(ms) / 1e3, err
}
