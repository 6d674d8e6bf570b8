package cuda

import (
	"errors"
	"time"

	"haul/internal/cu"
)

// stopwatch times one replay in many by two events on the stream: how long the card worked,
// whatever the host did meanwhile.
type stopwatch struct {
	begin, end cu.Event
	runs       int
	timed      bool
}

// timeEvery is how many replays pass between two that are timed.
const timeEvery = 16

// replay queues the graph. On the context's thread.
func (r *runner) replay() error {
	w := &r.watch
	timed := w.runs%timeEvery == 0
	w.runs++
	if !timed {
		return r.launch()
	}
	if err := r.d.ctx.Record(w.begin, r.d.stream); err != nil {
		return err
	}
	if err := r.launch(); err != nil {
		return err
	}
	w.timed = true
	return r.d.ctx.Record(w.end, r.d.stream)
}

// launch queues the pieces of a step; where a peer needs the host, up to there. Nothing is
// exchanged before an update is whole.
func (r *runner) launch() error {
	for range r.prog.Share.Runs() - 1 {
		if err := r.piece.Launch(r.d.stream); err != nil {
			return err
		}
	}
	if r.piece != nil && !r.updates() {
		return r.piece.Launch(r.d.stream)
	}
	if err := r.exec.Launch(r.d.stream); err != nil || r.onHost == nil {
		return err
	}
	return r.onHost.out(r.d)
}

// StepTime is how long the card took for the last step that was timed, one in sixteen; false before
// the first.
func (r *runner) StepTime() (d time.Duration, ok bool, err error) {
	if !r.watch.timed {
		return 0, false, nil
	}
	err = r.d.ctx.Do(func() error {
		ms, err := r.d.ctx.Elapsed(r.watch.begin, r.watch.end)
		d = time.Duration(float64(ms) * float64(time.Millisecond))
		return err
	})
	return d, err == nil, err
}

// open and close run on the context's thread.
func (w *stopwatch) open(c *cu.Context) (err error) {
	if w.begin, err = c.NewEvent(); err != nil {
		return err
	}
	w.end, err = c.NewEvent()
	return err
}

func (w *stopwatch) close(c *cu.Context) error {
	var errs []error
	for _, e := range []cu.Event{w.begin, w.end} {
		if e != 0 {
			errs = append(errs, c.FreeEvent(e))
		}
	}
	*w = stopwatch{}
	return errors.Join(errs...)
}
