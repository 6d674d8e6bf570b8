package runtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"haul/internal/run"
)

// pieces cuts a run into many, each ended by its time, and wants the state, the records and the end
// of the run that was never cut: schedules follow the updates that are planned and not those of a
// process.
func (c Case) pieces(t *testing.T) {
	counter := &Counting{Device: c.Device(t, 2)}
	full, want := Whole(t, c.options(t, c.Settings, counter))
	path, told := Folder(t), &Heard{}
	each := max(c.First+2, counter.Runs/8)
	for piece := 0; ; piece++ {
		if piece > 40 {
			t.Fatal("a run of 40 pieces is not over")
		}
		// The deadline is far, and has the run wait for its updates as one that is near does; the replay
		// decides when time is up.
		far, end := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Hour), run.ErrTimeUp)
		ctx, cancel := context.WithCancelCause(far)
		o := c.options(t, c.Settings, &Counting{Device: counter.Device, StopAt: each, Stop: func() { cancel(run.ErrTimeUp) }})
		o.Dir, o.Resume, o.Listener = OpenDir(t, path, piece > 0), piece > 0, told
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
		each += each / 4 // an evaluation that a piece has no room for is begun anew by the next
		if !errors.As(err, &stopped) || !stopped.TimeUp || stopped.Dir != path || stopped.Total < 1 || stopped.Updates > stopped.Total {
			t.Fatalf("piece %d ended with %v", piece, err)
		}
	}
	Same(t, want, Load(t, OpenDir(t, path, true).Last()))
	SameRecords(t, full.Records, told.Records)
	if told.Ending == nil || told.Ending.Title == "" {
		t.Error("the last piece has told of no end")
	}
}
