package serve

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/ledger"
	"haul/internal/recipe"
	"haul/internal/run"
)

// ledgers are the measured steps, by run.
type ledgers struct {
	mu  sync.Mutex    // guards all
	one chan struct{} // a single measurement at a time: two would measure each other
	all map[string]*account
}

// account is a run's step, taken apart here.
type account struct {
	*ledger.Ledger
	Settings string `json:"-"` // what was measured
	Note     string `json:"note"`
}

func newLedgers() *ledgers {
	return &ledgers{one: make(chan struct{}, 1), all: map[string]*account{}}
}

// ledgerBatch is the rows of a measured step at most: shares of time hardly depend on more, and
// memory does.
const ledgerBatch = 128

// measureLedger takes the step of a run's settings apart on this machine's CPU, as haul profile
// does.
func (s *Server) measureLedger(_ http.ResponseWriter, r *http.Request) (*account, error) {
	found, err := s.findRun(r)
	if err != nil {
		return nil, err
	}
	l := s.ledgers
	if was := l.get(found); was != nil {
		return was, nil
	}
	done, err := s.clients.enter(s.address(r), "measurements", 4)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), s.limits.Search)
	defer cancel()
	select {
	case l.one <- struct{}{}:
		defer func() { <-l.one }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if was := l.get(found); was != nil { // measured while this one waited
		return was, nil
	}
	out, err := measure(ctx, found)
	if err != nil {
		return nil, err
	}
	l.put(found.Name, out)
	return out, nil
}

// ledgerMost is how many accounts are kept.
const ledgerMost = 64

func (l *ledgers) put(name string, a *account) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) >= ledgerMost {
		clear(l.all)
	}
	l.all[name] = a
}

// get is the account of a run as its settings are; nil where it was not measured.
func (l *ledgers) get(found *Run) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.all[found.Name]; was != nil && was.Settings == string(found.text) {
		return was
	}
	return nil
}

// measure replays a few steps.
func measure(ctx context.Context, found *Run) (out *account, err error) {
	settings, err := config.ParseAny(found.Model, found.Name, found.text)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the settings of %s cannot be used: %v", found.Name, err)
	}
	kind, err := recipe.Find(found.Model)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	rows, _ := strconv.Atoi(found.Settings[kind.About().Batch])
	out = &account{Settings: string(found.text), Note: "measured here on the CPU, from initial weights"}
	if rows > ledgerBatch {
		out.Note += fmt.Sprintf("; %d rows per step in place of %d", ledgerBatch, rows)
		set := fmt.Sprintf("%s=%d", kind.About().Batch, ledgerBatch)
		if settings, err = config.ParseSet(found.Model, found.Name, found.text, []string{set}); err != nil {
			return nil, err
		}
	}
	dev, err := device.Open("cpu", device.Options{})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	step, err := kind.Step(dev, settings)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the step of %s cannot be measured: %v", found.Name, err)
	}
	defer step.Close()
	stop := context.AfterFunc(ctx, func() { run.Stop(step.Runner) })
	defer stop()
	if out.Ledger, err = ledger.Measure(ctx, dev, step.Runner, step.Program, 3, nil); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	out.Program = found.Name
	return out, nil
}
