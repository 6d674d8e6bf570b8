package loader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/model"
	"haul/internal/rng"
)

// testSpec samples regions of different lengths from short histories.
func testSpec() kernel.RegionSpec {
	return model.Transitions(kernel.RegionSpec{Streams: 3, Steps: 60, Horizon: 5, Tokens: 37, Compressed: true, Shortest: 5, Longest: 20, Ahead: 2, Seed: 7, Purpose: rng.Regions}, 2)
}

// testHistory returns transitions that encode their position.
func testHistory(s kernel.RegionSpec) []int32 {
	h := make([]int32, s.Streams*s.Steps)
	for i := range h {
		h[i] = int32(i%9 | i/9%9<<8 | i%5<<16 | i%2<<24)
	}
	return h
}

func testOptions(workers, depth, slabs, batch int, from uint64) Options {
	s := testSpec()
	fill, err := host.Fill(s, testHistory(s))
	if err != nil {
		panic(err)
	}
	return Options{Fill: fill, Row: s.Words(), Batch: batch, Slabs: NewSlabs(s.Words(), batch, slabs), Workers: workers, Depth: depth, From: from}
}

// differs compares a slab with batch k, made row by row, and names the first word that differs.
func differs(o Options, k int, got *kernel.Slab) error {
	s, t := testSpec(), testSpec().Tokens
	history, width := testHistory(s), s.Width()
	want := NewSlabs(o.Row, o.Batch, 1)[0]
	for r := range o.Batch {
		host.Row(&s, want.Ints[0][r*t*width:][:t*width], want.Ints[1][r*t*2:][:t*2], want.Ints[2][r*t:][:t], history, o.From+uint64(k*o.Batch+r))
	}
	for p := range want.Ints {
		for i, w := range want.Ints[p] {
			if g := got.Ints[p][i]; g != w {
				return fmt.Errorf("batch %d, part %d, word %d is %d, want %d", k, p, i, g, w)
			}
		}
	}
	return nil
}

// watched returns a loader that calls before with every row's index. before may panic or wait.
func watched(o Options, before func(g uint64)) *Loader {
	fill := o.Fill
	o.Fill = func(g uint64, row [][]int32) error {
		before(g)
		return fill(g, row)
	}
	return start(o)
}

func TestBatchesDependOnNothingButTheirNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, depth := rapid.IntRange(0, 5).Draw(t, "workers"), rapid.IntRange(0, 5).Draw(t, "depth")
		slabs, batch := rapid.IntRange(1, 5).Draw(t, "slabs"), rapid.IntRange(1, 80).Draw(t, "batch")
		o := testOptions(workers, depth, slabs, batch, rapid.Uint64Range(0, 1<<40).Draw(t, "from"))
		keep := rapid.IntRange(0, slabs-1).Draw(t, "keep") // slabs that the trainer does not return
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var held []*kernel.Slab
		for k := range 8 {
			s, err := l.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := differs(o, k, s); err != nil {
				t.Fatal(err)
			}
			if held = append(held, s); len(held) > keep {
				l.Return(held[0])
				held = held[1:]
			}
		}
		for k, s := range held { // slabs of the trainer have not changed
			if err := differs(o, 8-len(held)+k, s); err != nil {
				t.Fatalf("held: %v", err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		st := l.Stats()
		calls := int64(0)
		for _, c := range st.Ready {
			calls += c
		}
		if st.Batches != 8 || calls != 8 || l.Waited() != st.Waited || st.MeanReady() > float64(max(1, depth)) {
			t.Fatalf("stats %+v after 8 batches, depth %d", st, depth)
		}
		if workers == 0 && (st.Worked != st.Waited || st.Waited == 0 || st.Blocked != 0) {
			t.Fatalf("without workers the trainer waits for all the work: %+v", st)
		}
		if _, err := l.Next(context.Background()); !errors.Is(err, ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
	})
}

// Workers stop when Depth batches are ready or no slab is free. Depth 0 makes nothing ahead.
func TestBackpressure(t *testing.T) {
	for _, c := range []struct{ workers, depth, slabs, ahead int }{{2, 0, 3, 0}, {1, 1, 3, 1}, {2, 2, 3, 2}, {3, 9, 3, 3}, {0, 2, 3, 0}} {
		t.Run(fmt.Sprintf("%d workers, depth %d, %d slabs", c.workers, c.depth, c.slabs), func(t *testing.T) {
			var rows atomic.Int64
			o := testOptions(c.workers, c.depth, c.slabs, 64, 0)
			l := watched(o, func(uint64) { rows.Add(1) })
			defer l.Close()
			settle := func(batches int) {
				t.Helper()
				for !settled(l, c.workers) {
					runtime.Gosched()
				}
				if got := rows.Load(); got != int64(batches*o.Batch) {
					t.Fatalf("%d rows made, want %d batches of %d", got, batches, o.Batch)
				}
			}
			settle(c.ahead)
			s, err := l.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			settle(min(max(1, c.ahead)+min(c.ahead, 1), c.slabs))
			l.Return(s)
			settle(max(1, c.ahead) + min(c.ahead, 1))
			if _, err := l.Next(context.Background()); err != nil {
				t.Fatal(err)
			}
			if st := l.Stats(); c.ahead > 0 && st.Ready[c.ahead] != 2 {
				t.Errorf("every batch was ready in time, yet %+v", st)
			}
		})
	}
}

// settled reports whether every worker is blocked and none has been woken.
func settled(l *Loader, workers int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeStats.held == workers && (workers == 0 || !l.mayClaim())
}

func TestTheFirstBadRowIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := testOptions(rapid.IntRange(0, 4).Draw(t, "workers"), rapid.IntRange(0, 4).Draw(t, "depth"), rapid.IntRange(1, 4).Draw(t, "slabs"), 70, 1000)
		bad := rapid.Uint64Range(1000, 1000+70*4-1).Draw(t, "bad")
		fill, panics := o.Fill, rapid.Bool().Draw(t, "panics")
		o.Fill = func(g uint64, row [][]int32) error {
			switch {
			case g < bad:
				return fill(g, row)
			case panics:
				panic("a bad row\nand its story")
			}
			return errors.New("a bad row")
		}
		l := start(o)
		want := fmt.Sprintf("loader: batch %d, row %d (global index %d): a bad row", (bad-1000)/70, (bad-1000)%70, bad)
		for k := 0; ; k++ {
			s, err := l.Next(context.Background())
			if err == nil {
				l.Return(s)
				continue
			}
			if k != int(bad-1000)/70 || err.Error() != want {
				t.Fatalf("batch %d: %v; want %s", k, err, want)
			}
			break
		}
		if _, err := l.Next(context.Background()); err == nil || err.Error() != want {
			t.Fatalf("asked again: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatalf("Close tells %v, which Next has told", err)
		}
	})
}

func TestCloseReturnsWhatNextHasNot(t *testing.T) {
	l := watched(testOptions(2, 2, 2, 64, 0), func(uint64) { panic("no luck") })
	for !failed(l) {
		runtime.Gosched()
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("Close tells %v", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("a second Close tells %v", err)
	}
}

// TestABadRowEndsWorkersThatWait: workers without work end after a failure, before Close.
func TestABadRowEndsWorkersThatWait(t *testing.T) {
	before := runtime.NumGoroutine()
	var l *Loader
	started := make(chan struct{})
	// One slab and one range: one worker has the rows, and the others wait.
	o := testOptions(4, 1, 1, 1, 0)
	l = watched(o, func(uint64) {
		<-started
		for waiting(l) < 3 {
			runtime.Gosched()
		}
		panic("no luck")
	})
	close(started)
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Errorf("%d goroutines are left of 4", runtime.NumGoroutine()-before)
			break
		}
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("Close tells %v", err)
	}
}

// patience limits the wait of a test for an event, on a busy machine too.
const patience = 2 * time.Minute

// waiting returns the number of workers without work.
func waiting(l *Loader) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.timeStats.held
}

func failed(l *Loader) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// No goroutine remains after any end of a run.
func TestEndingAtAnyMoment(t *testing.T) {
	before := runtime.NumGoroutine()
	rapid.Check(t, func(t *rapid.T) {
		stop := uint64(rapid.IntRange(0, 400).Draw(t, "stop"))
		byClose := rapid.Bool().Draw(t, "by Close")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		reached := make(chan struct{})
		var once atomic.Bool
		l := watched(testOptions(rapid.IntRange(0, 4).Draw(t, "workers"), rapid.IntRange(0, 3).Draw(t, "depth"), rapid.IntRange(1, 3).Draw(t, "slabs"), 50, 0), func(g uint64) {
			if g >= stop && once.CompareAndSwap(false, true) {
				close(reached)
			}
		})
		ended := make(chan error)
		go func() {
			<-reached
			if byClose {
				ended <- l.Close()
				return
			}
			cancel()
			ended <- nil
		}()
		for k := 0; ; k++ {
			s, err := l.Next(ctx)
			if err == nil {
				if err := differs(l.options, k, s); err != nil {
					t.Fatal(err)
				}
				l.Return(s)
				continue
			}
			if !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			break
		}
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Fatal(err)
		}
	})
	// a goroutine may still run shortly after it has signalled its end
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// A cancelled call does not change the order of batches.
func TestCancelledAndAskedAgain(t *testing.T) {
	for _, workers := range []int{0, 2} {
		hold := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		o := testOptions(workers, 0, 2, 64, 0)
		var calls atomic.Int64
		l := watched(o, func(uint64) {
			if calls.Add(1) == 1 {
				cancel()
				if workers > 0 {
					<-hold
				}
			}
		})
		if _, err := l.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("%d workers: %v", workers, err)
		}
		close(hold)
		for k := range 3 {
			s, err := l.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := differs(o, k, s); err != nil {
				t.Errorf("%d workers: %v", workers, err)
			}
			l.Return(s)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABatchAllocatesNothing(t *testing.T) {
	for _, workers := range []int{0, 1, 3} {
		l, err := New(testOptions(workers, 2, 3, 64, 0))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		if n := testing.AllocsPerRun(200, func() {
			s, err := l.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			l.Return(s)
		}); n != 0 {
			t.Errorf("%d workers: %v allocations a batch", workers, n)
		}
		cancel()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMisuse(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o *Options)
		want  string
	}{
		"rows":     {func(o *Options) { o.Fill = nil }, "loader: nothing says what a row holds"},
		"batch":    {func(o *Options) { o.Batch = 0 }, "loader: a batch of 0 rows; at least one is needed"},
		"no slabs": {func(o *Options) { o.Slabs = nil }, "loader: no slab to fill; at least one is needed"},
		"workers":  {func(o *Options) { o.Workers = -1 }, "loader: -1 workers and 1 batches ahead; neither can be less than 0"},
		"twice":    {func(o *Options) { o.Slabs[1] = o.Slabs[0] }, "loader: slab 1 is nil or given twice"},
		"parts":    {func(o *Options) { o.Slabs[1].Ints = o.Slabs[1].Ints[:2] }, "loader: slab 1 has 2 parts; a row has 3"},
		"length":   {func(o *Options) { o.Batch = 5 }, "loader: part 0 of slab 0 has 888 words; 5 rows of 222 need 1110"},
	} {
		o := testOptions(1, 1, 2, 4, 0)
		c.spoil(&o)
		if _, err := New(o); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for _, workers := range []int{0, 1} {
		o := testOptions(workers, 1, 1, 4, 0)
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "all 1 slabs are with the trainer") {
			t.Errorf("no slab left: %v", err)
		}
		l.Return(o.Slabs[0])
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a slab could be given back twice")
				}
			}()
			l.Return(o.Slabs[0])
		}()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The agent's batches: 1,024 rows of 164 tokens.
func BenchmarkLoader(b *testing.B) {
	s := model.Transitions(kernel.RegionSpec{Streams: 7300, Steps: 1000, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 80, Longest: 80, Ahead: 4, Seed: 7, Purpose: rng.Regions}, 2)
	fill, err := host.Fill(s, testHistory(s))
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{0, 1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			const batch = 1024
			l, err := New(Options{Fill: fill, Row: s.Words(), Batch: batch, Slabs: NewSlabs(s.Words(), batch, 4), Workers: workers, Depth: 2})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			b.ReportAllocs()
			for b.Loop() {
				slab, err := l.Next(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				l.Return(slab)
			}
			b.ReportMetric(float64(b.N)*batch/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}
