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

// Ranks make the same calls in the same order. Everything that decides the next call is either
// equal on all ranks (weights, validation, settings) or agreed on by them (interruption).

// LoadShared reads a checkpoint on rank 0 and sends it to all ranks, which may lack the folder.
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

// TakeMetrics returns a runner's metrics, summed over all ranks. Steps and norms, which are equal
// on all ranks, are not summed.
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

// firstBad returns the first op with a result that is not finite, on any rank.
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

// identity holds what must be equal on all ranks.
type identity struct{ Program, Settings, Device, Precision, Data string }

// sameEverywhere returns an error that names the first difference between ranks. It is called
// before any computation: once with the settings, and once when the trainer knows its data.
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

// program identifies the running build.
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
