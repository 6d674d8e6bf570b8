// Package cpu runs Haul's ops on CPU cores. An op is a Go driver of its family's folder that walks
// a shard and calls primitives of isa; run replays what they bound.
package cpu

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/attention"
	"haul/internal/kernel/cpu/dense"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/optimizer"
	"haul/internal/kernel/cpu/routing"
	"haul/internal/kernel/cpu/run"
	"haul/internal/kernel/cpu/sequence"
)

// Device is the CPU, and Options say how to open it.
type (
	Device  = run.Device
	Options = run.Options
)

// SetVariable names the environment variable that forces an instruction set where nobody names one.
const SetVariable = isa.SetVariable

// Sets names the instruction sets this processor can run, fastest first.
func Sets() []string { return isa.Sets() }

// TileSets names the instruction sets this processor can multiply in bf16 with, fastest first.
func TileSets() []string { return isa.TileSets() }

// HasBF16 reports whether this processor multiplies in bf16 by itself.
func HasBF16() bool { return isa.HasBF16() }

// PerformanceCores is how many workers the fast cores of this processor serve.
func PerformanceCores() int { return run.PerformanceCores() }

// Open starts the workers of a device that has the ops of all families.
func Open(o Options) (*Device, error) {
	return run.Open(o, run.Ops{Bind: bindAny, Once: optimizer.Bind})
}

// families are those of ops. A family's function reports false for an op of another.
var families = []func(*run.Binder, kernel.Op) (do func(*run.Worker), known bool, err error){
	dense.Bind, attention.Bind, routing.Bind, sequence.Bind,
}

// bindAny returns what a worker does for an op, over its shard.
func bindAny(b *run.Binder, op kernel.Op) (func(*run.Worker), error) {
	for _, family := range families {
		if do, known, err := family(b, op); known {
			return do, err
		}
	}
	return nil, fmt.Errorf("the CPU has no op %s", op.Kind())
}
