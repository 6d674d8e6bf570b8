package runtest

import (
	"testing"

	"haul/internal/kernel"
)

// Watched is a device that records the programs and controls it receives, and lets a test change
// the values that the host reads.
type Watched struct {
	kernel.Device
	Programs []*kernel.Program
	Controls map[string][]kernel.Control // by the program's name, in the order of the calls
	// Tamper, if not nil, changes the values that the host reads of a tensor.
	Tamper func(p *kernel.Program, t *kernel.Tensor, values any)
}

// Watch returns a Watched device for dev.
func Watch(dev kernel.Device) *Watched {
	return &Watched{Device: dev, Controls: map[string][]kernel.Control{}}
}

// Compile records the program.
func (w *Watched) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	w.Programs = append(w.Programs, p)
	r, err := w.Device.Compile(p, sets)
	if err != nil {
		return nil, err
	}
	return watchedRunner{r, w, p}, nil
}

type watchedRunner struct {
	kernel.Runner
	w *Watched
	p *kernel.Program
}

func (r watchedRunner) SetControl(c kernel.Control) error {
	r.w.Controls[r.p.Name] = append(r.w.Controls[r.p.Name], c)
	return r.Runner.SetControl(c)
}

func (r watchedRunner) ReadBatch(t *kernel.Tensor, dst any) error {
	err := r.Runner.ReadBatch(t, dst)
	if err == nil && r.w.Tamper != nil {
		r.w.Tamper(r.p, t, dst)
	}
	return err
}

// Op returns the only op of type O in a list.
func Op[O kernel.Op](t testing.TB, ops []kernel.Op) O {
	t.Helper()
	found := Ops[O](ops)
	if len(found) != 1 {
		t.Fatalf("%d ops of type %T, want one", len(found), *new(O))
	}
	return found[0]
}

// Ops returns the ops of type O.
func Ops[O kernel.Op](ops []kernel.Op) (found []O) {
	for _, op := range ops {
		if o, ok := op.(O); ok {
			found = append(found, o)
		}
	}
	return found
}
