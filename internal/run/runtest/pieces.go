package runtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"haul/internal/run"
)

// pieces divides a run into many processes, each ended by a time limit. State, records and summary
// must equal those of an undivided run: schedules depend on the planned updates only.
func (c Case) pieces(t *testing.T) {
	counter := &Counting{Device: c.Device(t, 2)}
	full, want := Whole(t, c.options(t, c.Settings, counter))
	path, events := Folder(t), &Heard{}
	each := max(c.First+2, counter.Runs/8)
	for piece := 0; ; piece++ {
		if piece > 40 {
			t.Fatal("a run of 40 pieces is not over")
		}
		// The deadline is far, but makes the run wait for its updates as a near one does. The
		// replay decides when time is over.
		far, end := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Hour), run.ErrTimeUp)
		ctx, cancel := context.WithCancelCause(far)
		o := c.options(t, c.Settings, &Counting{Device: counter.Device, StopAt: each, Stop: func() { cancel(run.ErrTimeUp) }})
		o.Dir, o.Resume, o.Listener = OpenDir(t, path, piece > 0), piece > 0, events
		err := run.Run(ctx, o)
		cancel(nil)
		end()
		o.Dir.Close()
		if err == nil {
			if piece < 3 {
				t.Fatalf("the run was over in %d pieces: it was not cut", piece+1)
			}
			break
		}
		stopped := new(run.Interrupted)
		each += each / 4 // an evaluation that did not complete is repeated by the next process
		if !errors.As(err, &stopped) || !stopped.TimeUp || stopped.Dir != path || stopped.Total < 1 || stopped.Updates > stopped.Total {
			t.Fatalf("piece %d ended with %v", piece, err)
		}
	}
	Same(t, want, Load(t, OpenDir(t, path, true).Last()))
	SameRecords(t, full.Records, events.Records)
	if events.Ending == nil || events.Ending.Title == "" {
		t.Error("the last piece has told of no end")
	}
}
