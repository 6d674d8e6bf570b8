package runtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"haul/internal/comm"
	"haul/internal/kernel"
	"haul/internal/run"
)

// Ranks trains on n ranks, which are goroutines of the test, and returns the first error of Run. It
// returns after every rank has ended. options must return a different device for each rank, because
// a device serves one goroutine.
func Ranks(ctx context.Context, t testing.TB, n int, dir *run.Dir, resume bool, heard *Heard, options func(rank int) run.Options) error {
	t.Helper()
	said := make(chan error, n)
	for _, w := range comm.Local(n) {
		o := options(w.Number())
		o.World, o.Resume, o.Dir = w, resume, dir
		if w.Number() == 0 {
			o.Listener = heard
		} else {
			o.Dir = run.JoinDir(dir.Path())
		}
		go func() {
			err := run.Run(ctx, o)
			if err == nil {
				err = w.Close() // fails if a rank has made fewer calls than the others
			}
			said <- err // sent before the other ranks report this failure
			if stopped := new(run.Interrupted); err != nil && !errors.As(err, &stopped) {
				w.Fail(err)
			}
		}()
	}
	var first error
	for i := range n {
		err := <-said
		stopped := new(run.Interrupted)
		switch {
		case i == 0:
			first = err
		case (err == nil) != (first == nil) || err != nil && errors.As(err, &stopped) != errors.As(first, &stopped):
			t.Errorf("ranks end differently: %v and %v", first, err)
		}
	}
	return first
}

// RanksAreOneProcess: runs of 2 and 4 ranks leave and report the same as a single process, bit for
// bit. So does a run that is stopped on four ranks and resumed on two, then on one.
func RanksAreOneProcess(t *testing.T, c Case) {
	whole, want := Whole(t, c.options(t, c.Settings, c.Device(t, 2)))
	devices := make([]kernel.Device, 4)
	for i := range devices {
		devices[i] = c.Device(t, 1)
	}
	options := func(rank int) run.Options { return c.options(t, c.Settings, devices[rank]) }
	for _, n := range []int{2, 4} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			dir, heard := OpenDir(t, Folder(t), false), &Heard{}
			if err := Ranks(t.Context(), t, n, dir, false, heard, options); err != nil {
				t.Fatal(err)
			}
			Same(t, want, Load(t, dir.Last()))
			SameRecords(t, whole.Records, heard.Records)
		})
	}
	t.Run("four, two, one", func(t *testing.T) {
		counter := &Counting{Device: devices[0]}
		Whole(t, c.options(t, c.Settings, counter))
		path, heard := Folder(t), &Heard{}
		dir := OpenDir(t, path, false)
		stopped := new(run.Interrupted)
		for i, n := range []int{4, 2} {
			ctx, cancel := context.WithCancel(t.Context())
			cut := func(rank int) run.Options {
				o := options(rank)
				if rank == 0 {
					o.Device = &Counting{Device: devices[0], StopAt: counter.Runs/3 - counter.Runs/4*i, Stop: cancel}
				}
				return o
			}
			err := Ranks(ctx, t, n, dir, i > 0, heard, cut)
			cancel()
			if err != nil && !errors.As(err, &stopped) {
				t.Fatal(err)
			}
		}
		dir.Close()
		again := options(0)
		again.Dir, again.Resume, again.Listener = OpenDir(t, path, true), true, heard
		if err := run.Run(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		Same(t, want, Load(t, again.Dir.Last()))
		SameRecords(t, whole.Records, heard.Records)
	})
}
