package run

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// bounded is what a device with memory of its own offers beside kernel.Device.
type bounded interface {
	AvailableMemory() (bytes int64, known bool)
}

// Compile refuses a program that cannot fit before anything is allocated for it. key is the setting that the program grows with, or a flag
// and its value that make it smaller, or "" where only the model's size does.
func Compile(key string, p *plan.Plan, dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	prog := p.Program()
	if err := Fits(key, dev, prog.Name, prog.Batch, LeastMemory(prog)); err != nil {
		return nil, err
	}
	return p.Compile(dev, sets...)
}

// LeastMemory is what any device needs for a program: its batch and data tensors and one shard's activations.
func LeastMemory(prog *kernel.Program) int64 {
	n := int64(prog.ShardLen)
	for _, t := range prog.Tensors {
		switch t.Space {
		case kernel.Batch:
			n += int64(t.Len()) * int64(prog.Shards())
		case kernel.Data:
			n += int64(t.Len())
		}
	}
	return 4 * n
}

// Fits says in one line that the bytes are not to be had, and what value of the key would fit where now it is n. A machine that does not
// tell passes.
func Fits(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if d, ok := dev.(bounded); ok {
		available, known := d.AvailableMemory()
		return within(key, dev.Name(), what, n, bytes, available, known)
	}
	return FitsHost(key, dev.Name(), what, n, bytes)
}

// FitsCompiled is Fits for programs that are compiled. A card has given its memory by then, and what is free is beside it; a host has only
// promised its own, and gives it when it is first written.
func FitsCompiled(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if _, ok := dev.(bounded); ok {
		return nil
	}
	return Fits(key, dev, what, n, bytes)
}

// FitsHost is Fits for what lies in the host's memory wherever programs run.
func FitsHost(key, where, what string, n int, bytes int64) error {
	available, known := AvailableMemory()
	return within(key, where, what, n, bytes, available, known)
}

func within(key, where, what string, n int, bytes, available int64, known bool) error {
	if !known || bytes <= available {
		return nil
	}
	advice := "lower the model's size"
	switch most := int64(float64(n) * 0.9 * float64(available) / float64(bytes)); {
	case key == "":
	case strings.Contains(key, " "): // a flag and its value
		advice = "use " + key
	case most > 0:
		advice = fmt.Sprintf("%s %d would fit", key, most)
	case n > 1:
		advice = "lower " + key
	}
	return fmt.Errorf("%s needs %s of memory, %s is available on %s: %s", what, mebibytes(bytes), mebibytes(available), where, advice)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// AvailableMemory is Linux's estimate of what can be taken without swapping.
func AvailableMemory() (int64, bool) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
