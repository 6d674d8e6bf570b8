package kerneltest

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
)

// TestTwinsShareTheShapes: a device is tried by every shape, and of four twins one is by each,
// whatever the device is told to round by.
func TestTwinsShareTheShapes(t *testing.T) {
	if raced {
		t.Skip("few shapes are tried under the detector")
	}
	dev := kernel.Device(reference.New[float64](2))
	for place := range 10 {
		if !tries(dev, place) || !tries(rounded{Device: dev}, place) {
			t.Errorf("place %d is left out", place)
		}
		for _, first := range []int{0, 1, 4} {
			n := 0
			for number := range 4 {
				twin := Twin(dev, first+number)
				if tries(twin, place) {
					n++
				}
				if tries(rounded{Device: twin}, place) != tries(twin, place) {
					t.Errorf("place %d: rounding changes what twin %d is tried by", place, first+number)
				}
				if !interprets(twin) {
					t.Error("a twin of the reference does not interpret")
				}
			}
			if n != 1 {
				t.Errorf("place %d is tried by %d twins of four from %d on", place, n, first)
			}
		}
	}
}
