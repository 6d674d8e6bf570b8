package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"

	"haul/internal/comm"
	"haul/internal/device"
	"haul/internal/kernel"
)

// What a reader could break: ranks make the same calls in the same order. Everything that
// decides what a rank does next is either the same number on all of them (weights, validation,
// settings) or has been agreed on (interruption).

// LoadShared reads a checkpoint once, on rank 0, for all ranks: the others need not see the folder.
func LoadShared(w *comm.World, path, recipe string) (*Checkpoint, error) {
	if w == nil {
		return Load(path, recipe)
	}
	var text []byte
	var failed error
	if w.Number() == 0 {
		if text, failed = os.ReadFile(path); failed == nil {
			text = append([]byte{1}, text...)
		}
	}
	text, err := w.Broadcast(text)
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, fmt.Errorf("load checkpoint %s: %w", path, bare(failed))
	case len(text) == 0:
		return nil, fmt.Errorf("load checkpoint %s: rank 0 cannot read it: %w", path, fs.ErrNotExist)
	}
	return Decode(path, recipe, text[1:])
}

// TakeMetrics takes a runner's sums over all ranks. What is the same everywhere, steps and norms,
// is not added.
func TakeMetrics(w *comm.World, r kernel.Runner) (kernel.Metrics, error) {
	m, err := r.TakeMetrics()
	if err != nil || w == nil {
		return m, err
	}
	names := m.Sums.Names()
	values := make([]float64, len(names))
	for i, n := range names {
		values[i] = m.Sums.Of(n)
	}
	err = w.Sum(values)
	m.Sums = kernel.NewSums(names, values)
	return m, err
}

// firstBad asks all ranks which op went wrong: it may have been with another's rows.
func (r *run) firstBad() (string, error) {
	op, err := r.trainer.Runner().FirstBad()
	if err != nil {
		return op, err
	}
	all, err := r.World.Gather([]byte(op))
	for rank, text := range all {
		if len(text) > 0 && r.World != nil {
			return fmt.Sprintf("%s (rank %d)", text, rank), err
		} else if len(text) > 0 {
			return string(text), err
		}
	}
	return "", err
}

// identity is what ranks must have in common.
type identity struct{ Program, Settings, Device, Precision, Data string }

// sameEverywhere compares ranks before anything is computed and names the first that differs: once
// by their settings, and once more when the trainer knows what it reads.
func (r *run) sameEverywhere() error {
	if r.World == nil {
		return nil
	}
	yaml, err := r.Settings.YAML()
	if err != nil {
		return err
	}
	own := identity{Program: program(), Settings: string(yaml), Device: device.Kind(r.Device.Name()), Precision: Precision(r.Device)}
	if r.trainer != nil {
		state, err := json.Marshal(r.trainer.State())
		if err != nil {
			return err
		}
		own.Data = string(state)
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all, err := r.World.Gather(text)
	if err != nil {
		return err
	}
	for rank, text := range all[1:] {
		if bytes.Equal(text, all[0]) {
			continue
		}
		var first, other identity
		if err := firstOf(func() error { return json.Unmarshal(all[0], &first) }, func() error { return json.Unmarshal(text, &other) }); err != nil {
			return err
		}
		return fmt.Errorf("rank %d differs from rank 0: %s", rank+1, difference(&first, &other))
	}
	return nil
}

// program is the build that runs.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	out := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" || s.Key == "GOARCH" {
			out += " " + s.Value
		}
	}
	return out
}

func difference(a, b *identity) string {
	switch {
	case a.Program != b.Program:
		return fmt.Sprintf("it is another build (%s, not %s): start the same file everywhere", b.Program, a.Program)
	case a.Device != b.Device:
		return fmt.Sprintf("it computes on %s, rank 0 on %s: bits would differ", b.Device, a.Device)
	case a.Precision != b.Precision:
		return fmt.Sprintf("it computes in %s, rank 0 in %s: bits would differ", b.Precision, a.Precision)
	case a.Data != b.Data:
		return "it reads other data: give every rank the same file"
	}
	la, lb := strings.Split(a.Settings, "\n"), strings.Split(b.Settings, "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return fmt.Sprintf("it was started with %q, rank 0 with %q", strings.TrimSpace(lb[i]), strings.TrimSpace(la[i]))
		}
	}
	return "it was started with other settings"
}
