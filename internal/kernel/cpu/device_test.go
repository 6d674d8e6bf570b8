package cpu_test

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/kerneltest"
)

// Every instruction set passes the suite with shards so small that a batch outnumbers the lanes:
// the fastest by all shapes; the others, and the fastest with shards as they are in use and workers
// that run at the same moment, by some.
func TestDevice(t *testing.T) {
	suite := func(name string, twin int, o cpu.Options) {
		t.Run(name, func(t *testing.T) {
			if o.ShardRows == 0 {
				kerneltest.AllCores(t)
			}
			kerneltest.Run(t, func(t *testing.T) kernel.Device { return opened(t, o, twin) })
		})
	}
	for i, set := range cpu.Sets() {
		if testing.Short() && i > 0 { // under the race detector one set shows all that workers share
			return
		}
		suite(set, i, cpu.Options{Set: set, Workers: 2, ShardRows: 24})
	}
	suite("shards in use", len(cpu.Sets()), cpu.Options{Workers: 2})
}

// opened is a device that the suite closes: the first of a list is tried by all shapes.
func opened(t *testing.T, o cpu.Options, number int) kernel.Device {
	t.Helper()
	dev, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if number == 0 {
		return dev
	}
	return kerneltest.Twin(dev, number)
}

// TestEmulates: products in bf16 are emulated by plain Go, by whatever has no bf16 of its own, and
// by nothing in fp32.
func TestEmulates(t *testing.T) {
	for _, c := range []struct {
		o    cpu.Options
		want bool
	}{
		{cpu.Options{Set: "go"}, false},
		{cpu.Options{Set: "go", Precision: "bf16"}, true},
		{cpu.Options{Precision: "bf16"}, !cpu.HasBF16()},
	} {
		dev, err := cpu.Open(c.o)
		if err != nil {
			t.Fatal(err)
		}
		if dev.Emulates() != c.want {
			t.Errorf("%+v: emulated is %v", c.o, dev.Emulates())
		}
	}
}

// TestRefusalsNameTheVariable: who gets an unknown set refused learns whether a setting or the
// environment named it; a setting comes first.
func TestRefusalsNameTheVariable(t *testing.T) {
	t.Setenv(cpu.SetVariable, "nosuch")
	for _, precision := range []string{"fp32", "bf16"} {
		if _, err := cpu.Open(cpu.Options{Precision: precision}); err == nil || !strings.HasPrefix(err.Error(), cpu.SetVariable+": ") {
			t.Errorf("%s: %v does not begin with %s", precision, err, cpu.SetVariable)
		}
		if _, err := cpu.Open(cpu.Options{Precision: precision, Set: "other"}); err == nil || strings.Contains(err.Error(), cpu.SetVariable) {
			t.Errorf("%s: %v names %s", precision, err, cpu.SetVariable)
		}
	}
}

// Rollouts of many starts, as wide as a model's, whole tensors compared.
func TestStarts(t *testing.T) {
	kerneltest.RunStarts(t, 0, 21, func(t *testing.T) kernel.Device { return opened(t, cpu.Options{Workers: 2}, 0) })
}

// Likewise in bf16, by tiles, by dot products of pairs, and by fp32 arithmetic on rounded operands.
func TestDeviceBF16(t *testing.T) {
	for i, set := range cpu.TileSets() {
		if testing.Short() && i > 0 {
			return
		}
		if set == "avx512" && slices.Contains(cpu.TileSets(), "avx512_bf16") {
			continue // the same
		}
		t.Run(set, func(t *testing.T) {
			kerneltest.RunNearest(t, 0x1p-8, func(t *testing.T) kernel.Device {
				return opened(t, cpu.Options{Set: set, Precision: "bf16", Workers: 2, ShardRows: 24}, i)
			})
		})
	}
}

// Muon's products are fp32's in fp32; in bf16 they round their operands to the nearest where tiles
// multiply them, and are fp32's elsewhere.
func TestMuon(t *testing.T) {
	try := func(name string, unit float64, o cpu.Options) {
		t.Run(name, func(t *testing.T) {
			kerneltest.RunMuon(t, unit, func(t *testing.T) kernel.Device { return opened(t, o, 0) })
		})
	}
	try("fp32", 0, cpu.Options{Workers: 2, ShardRows: 24})
	for i, set := range cpu.TileSets() {
		unit := 0.0
		if set == "amx" {
			unit = 0x1p-8
		}
		try("bf16/"+set, unit, cpu.Options{Set: set, Precision: "bf16", Workers: 2, ShardRows: 24})
		if testing.Short() && i > 0 || unit == 0 {
			return // the products of every further set are those of fp32, which TestDevice has tried
		}
	}
}
