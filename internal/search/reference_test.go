package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"haul/internal/vrp"
)

func some(count, n int) []*vrp.Problem {
	var out []*vrp.Problem
	for i := range count {
		out = append(out, uniform(n, uint64(i)))
	}
	return out
}

func TestReferencesAreKeptByContent(t *testing.T) {
	dir := t.TempDir()
	problems := some(12, 20)
	searched := 0
	o := ReferenceOptions{Iterations: 300, Workers: 3, Cache: dir}
	first, err := References(context.Background(), problems, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range problems {
		if want := solve(t, p, Options{Iterations: 300}).Cost; want != first[i] {
			t.Errorf("problem %d: %v, alone %v", i, first[i], want)
		}
	}
	file := filepath.Join(dir, fmt.Sprintf("references-v%d.bin", referenceVersion))
	size := func() int64 {
		st, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	if size() != 12*recordSize {
		t.Fatalf("the cache holds %d bytes", size())
	}
	// A longer set in another order searches what is new alone.
	more := some(14, 20)
	slices.Reverse(more)
	again, err := References(context.Background(), more, o)
	if err != nil || size() != 14*recordSize || again[13] != first[0] {
		t.Errorf("%d bytes, %v, %v", size(), again, err)
	}
	// Another budget, seed or problem is another reference.
	for _, change := range []func(*ReferenceOptions, *vrp.Problem){
		func(o *ReferenceOptions, _ *vrp.Problem) { o.Iterations++ },
		func(o *ReferenceOptions, _ *vrp.Problem) { o.Seed++ },
		func(o *ReferenceOptions, _ *vrp.Problem) { o.Iterations, o.Time = 0, time.Millisecond },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Capacity++ },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Demand[1]++ },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.X[2] += 1e-9 },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Open = true },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Vehicles = 19 },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.MaxDuration = 50 },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Service = make([]float64, 21) },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Depots = 2 },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Speed = 2 },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Fleet = p.Types() },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Pickup = make([]int32, 21) },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Windows = make([][]vrp.Window, 21) },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Optional = make([]bool, 21) },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Groups = []vrp.Group{{Members: []int32{1, 2}}} },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Backhauls = vrp.BackhaulsLast },
		func(_ *ReferenceOptions, p *vrp.Problem) { p.Objective = vrp.FewestVehicles },
	} {
		other, p := o, *problems[0]
		p.Demand, p.X = slices.Clone(p.Demand), slices.Clone(p.X)
		change(&other, &p)
		if other.key(&p) == o.key(problems[0]) {
			searched++
		}
	}
	if searched > 0 {
		t.Errorf("%d changes went unseen", searched)
	}
	windows := func(to float64) *vrp.Problem {
		p := *problems[0]
		p.Windows = make([][]vrp.Window, 21)
		p.Windows[3] = []vrp.Window{{From: 0, To: to}}
		return &p
	}
	once, twice := o.key(windows(50)), o.key(windows(50))
	if once == o.key(windows(math.Nextafter(50, 51))) || once != twice {
		t.Error("a window is not part of the key as it is")
	}
}

// A run that ended early, or a record cut off by a full disk, costs only what was not written.
func TestReferencesResume(t *testing.T) {
	dir := t.TempDir()
	problems := some(10, 20)
	ctx, cancel := context.WithCancel(context.Background())
	o := ReferenceOptions{Iterations: 2000, Cache: dir, Progress: func(done int) {
		if done == 4 {
			cancel()
		}
	}}
	if _, err := References(ctx, problems, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	file := filepath.Join(dir, fmt.Sprintf("references-v%d.bin", referenceVersion))
	data, err := os.ReadFile(file)
	if err != nil || len(data) != 4*recordSize {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if err := os.WriteFile(file, append([]byte("torn"), data[:len(data)-5]...), 0o600); err != nil {
		t.Fatal(err)
	}
	c := openCache(o)
	c.close()
	if len(c.costs) != 3 {
		t.Errorf("%d costs were read", len(c.costs))
	}
	o.Progress = nil
	costs, err := References(context.Background(), problems, o)
	if err != nil || slices.Contains(costs, 0) {
		t.Errorf("%v, %v", costs, err)
	}
}

// TestReferencesEndAsTheirContextDoes: who gave the context a deadline and a reason knows the first
// from its error.
func TestReferencesEndAsTheirContextDoes(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, errors.New("time is up"))
	defer cancel()
	<-ctx.Done()
	if _, err := References(ctx, some(1, 20), ReferenceOptions{Iterations: 10, Cache: t.TempDir()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestReferencesWithoutACache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	warned := 0
	o := ReferenceOptions{Iterations: 10, Cache: filepath.Join(file, "below"), Warn: func(string) { warned++ }}
	if costs, err := References(context.Background(), some(3, 5), o); err != nil || len(costs) != 3 || warned != 1 {
		t.Errorf("%v, %v, %d warnings", costs, err, warned)
	}
	bad := some(2, 5)
	bad[1].Demand[1] = 99
	if _, err := References(context.Background(), bad, o); err == nil {
		t.Error("a problem that cannot be solved has a reference")
	}
	if _, err := References(context.Background(), bad, ReferenceOptions{}); err == nil {
		t.Error("no budget was accepted")
	}
}

func TestReferencesOfAShortTime(t *testing.T) {
	problems := some(9, 20)
	o := ReferenceOptions{Iterations: 300, Workers: 1, Cache: t.TempDir(), Until: time.Now().Add(-time.Second)}
	known := func(o ReferenceOptions) (n int) {
		costs, err := References(context.Background(), problems, o)
		if err != nil || len(costs) != len(problems) {
			t.Fatal(costs, err)
		}
		for i, c := range costs {
			if math.IsNaN(c) {
				continue
			}
			if n++; c != solve(t, problems[i], Options{Iterations: 300}).Cost {
				t.Errorf("problem %d: half a search is taken for a reference", i)
			}
		}
		return n
	}
	// Two are searched in any case, so that there is a mean with an error; then two more.
	for _, want := range []int{2, 4} {
		if n := known(o); n != want {
			t.Errorf("%d costs are known after the time is over, want %d", n, want)
		}
	}
	if o.Until = time.Now().Add(time.Hour); known(o) != len(problems) {
		t.Error("an hour was not enough")
	}
}
