package train

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// roomy is what a device with memory of its own offers beside kernel.Device.
type roomy interface {
	AvailableMemory() (bytes int64, known bool)
}

// keyBatch is the key that routing's programs grow with.
const keyBatch = "training.batch_size"

// compile refuses a program that cannot fit before anything is allocated for it.
func compile(p *plan.Plan, dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	return compileFor(keyBatch, p, dev, sets...)
}

// compileFor is compile for a program that grows with another key.
func compileFor(key string, p *plan.Plan, dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	prog := p.Program()
	if err := fitsFor(key, dev, prog.Name, prog.Batch, leastMemory(prog)); err != nil {
		return nil, err
	}
	return p.Compile(dev, sets...)
}

// leastMemory is what any device needs for a program: its batch and data tensors and one shard's activations.
func leastMemory(prog *kernel.Program) int64 {
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

// fits says in one line that the bytes are not to be had, and what batch would fit. A machine that does not tell passes.
func fits(dev kernel.Device, what string, batch int, bytes int64) error {
	return fitsFor(keyBatch, dev, what, batch, bytes)
}

func fitsFor(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if d, ok := dev.(roomy); ok {
		available, known := d.AvailableMemory()
		return within(key, dev.Name(), what, n, bytes, available, known)
	}
	return fitsHost(key, dev.Name(), what, n, bytes)
}

// fitsCompiled is fitsFor for programs that are compiled. A card has given its memory by then, and what is free is beside it; a host has only
// promised its own, and gives it when it is first written.
func fitsCompiled(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if _, ok := dev.(roomy); ok {
		return nil
	}
	return fitsFor(key, dev, what, n, bytes)
}

// fitsHost is fitsFor for what lies in the host's memory wherever programs run.
func fitsHost(key, where, what string, n int, bytes int64) error {
	available, known := availableMemory()
	return within(key, where, what, n, bytes, available, known)
}

func within(key, where, what string, n int, bytes, available int64, known bool) error {
	if !known || bytes <= available {
		return nil
	}
	advice := "lower the model's size"
	if n > 1 {
		advice = "lower " + key
	}
	if most := int64(float64(n) * 0.9 * float64(available) / float64(bytes)); most > 0 {
		advice = fmt.Sprintf("%s %d would fit", key, most)
	}
	return fmt.Errorf("%s needs %s of memory, %s is available on %s: %s", what, mebibytes(bytes), mebibytes(available), where, advice)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// availableMemory is Linux's estimate of what can be taken without swapping.
func availableMemory() (int64, bool) {
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
