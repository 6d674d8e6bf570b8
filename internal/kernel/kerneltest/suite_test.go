package kerneltest_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/kerneltest"
	"haul/internal/kernel/reference"
)

// In float64 the suite compares the reference with itself under another shard size.
func TestReference64(t *testing.T) {
	kerneltest.Run(t, func(*testing.T) kernel.Device {
		return kerneltest.Twin(reference.New[float64](2), 0)
	})
}

// In float32, with every sum a plain running one, the reference is the least precise device that is
// still honest: the bounds must let it pass.
func TestReference32(t *testing.T) {
	kerneltest.Run(t, func(*testing.T) kernel.Device {
		return kerneltest.Twin(reference.New[float32](2), 1)
	})
}

// The bounds of fewer bits let a device pass that rounds every operand and every Compact tensor to
// bf16.
func TestReferenceRounded(t *testing.T) {
	const unit = 0x1p-8
	kerneltest.RunRounded(t, unit, func(*testing.T) kernel.Device { return kerneltest.Twin(reference.NewRounded[float32](2, unit), 2) })
}
