package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"haul/internal/run"
)

// Who has waited in vain makes room in the queue for the next.
func TestAQueueForgetsWhoLeft(t *testing.T) {
	g := newGate("things", 1, 1, 10*time.Millisecond)
	leave, err := g.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	for i := range 3 {
		began := time.Now()
		if _, err := g.enter(t.Context()); err == nil || time.Since(began) < 10*time.Millisecond {
			t.Errorf("caller %d: %v after %v, without a place in the queue", i, err, time.Since(began))
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.enter(gone); err == nil || g.waiting.Load() != 0 {
		t.Errorf("%v, %d wait", err, g.waiting.Load())
	}
}

// A connection that is closed twice leaves once.
func TestAConnectionLeavesOnce(t *testing.T) {
	c := newCrowd(nil, 2, 2, func(string) bool { return false }, nil)
	for range 2 {
		if !c.enter("a") {
			t.Fatal("no room")
		}
	}
	one := &counted{Conn: dial(t, open(t, nil)), crowd: c, host: "a"}
	one.Close()
	one.Close()
	if c.held() != 1 || !c.enter("a") || c.enter("a") {
		t.Errorf("%d are in", c.held())
	}
}

// A folder that nobody is seen to hold counts as running for a while after it was written to.
func TestTheStateOfARun(t *testing.T) {
	for _, c := range []struct {
		held, ended bool
		quiet       time.Duration
		want        string
	}{
		{true, false, time.Hour, running}, {true, true, time.Hour, running}, {false, true, 0, done}, {false, true, time.Hour, done},
		{false, false, freshness - 1, running}, {false, false, freshness, stopped}, {false, false, -time.Hour, running},
	} {
		if got := stateOf(c.held, c.ended, c.quiet); got != c.want {
			t.Errorf("%+v is %s", c, got)
		}
	}
	if freshness != 15*time.Second {
		t.Errorf("a folder counts as running for %v", freshness)
	}
}

// A run of this server whose process has ended is not taken for running, however fresh its files;
// written to after that, it may be somebody's again.
func TestARunWhoseProcessEnded(t *testing.T) {
	folder := t.TempDir()
	dir := filepath.Join(folder, "one")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, run.ConfigName)
	if err := os.WriteFile(config, []byte("model: AD\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &watcher{folder: folder, hub: newHub(), log: func(string) {}, noted: map[string]bool{}, runs: map[string]*Run{}, left: map[string]time.Time{}}
	look := func(want string) {
		t.Helper()
		w.look()
		if r := w.get("one"); r == nil || r.State != want {
			t.Errorf("the run is %+v, want %s", r, want)
		}
	}
	look(running)
	w.ended("one")
	look(stopped)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(config, later, later); err != nil {
		t.Fatal(err)
	}
	look(running)
}

// A small file is read again when its size, its time or the file itself is another, and not else.
func TestChangedFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := filepath.Join(dir, "a")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	put := func(text string, at time.Time) {
		write(t, path, text)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	put("one", at)
	text, was, err := changed(root, "a", nil, 100)
	if string(text) != "one" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	look := func(name, want string) {
		t.Helper()
		text, info, err := changed(root, "a", was, 100)
		if string(text) != want || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		was = info
	}
	look("nothing happened", "")
	put("two", at.Add(time.Second))
	look("another time", "two")
	put("three", at.Add(time.Second))
	look("another size", "three")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	put("seven", at.Add(time.Second))
	look("another file of one size and time", "seven")
	if _, _, err := changed(root, "a", nil, 5); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
	if _, _, err := changed(root, "a", nil, 4); err == nil {
		t.Error("a byte longer than may be")
	}
}

// A table that was replaced, or cut below what was read, begins again; one that grew goes on.
func TestTablesAreFollowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	tab := &table{}
	follow := func(name string, rows int, fresh bool) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		_, began, err := tab.follow(func() (*os.File, error) { return os.Open(path) }, info)
		if err != nil || len(tab.Rows) != rows || began != fresh {
			t.Errorf("%s: %d rows, fresh %v, %v", name, len(tab.Rows), began, err)
		}
	}
	later := time.Now()
	put := func(text string) {
		t.Helper()
		write(t, path, text)
		later = later.Add(time.Second)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
	}
	put("epoch\n1\n2\n")
	follow("a first look", 2, true)
	put("epoch\n1\n2\n3\n")
	follow("a row more", 3, false)
	put("epoch\n1\n2\n3\n")
	follow("as long as what was read", 3, false)
	put("epoch\n7\n")
	follow("cut", 1, true)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	put("epoch\n1\n2\n3\n4\n")
	follow("replaced by a longer one", 4, true)
}

// As many accounts are kept as may be, each for the settings that it was measured with.
func TestAccountsAreKept(t *testing.T) {
	l := newLedgers()
	for i := range ledgerMost {
		l.put(fmt.Sprint(i), &account{Settings: "a"})
	}
	if l.get(&Run{Summary: Summary{Name: "0"}, text: []byte("a")}) == nil || l.get(&Run{Summary: Summary{Name: "63"}, text: []byte("a")}) == nil {
		t.Error("an account was dropped before there were too many")
	}
	if l.get(&Run{Summary: Summary{Name: "0"}, text: []byte("b")}) != nil {
		t.Error("an account of other settings was given")
	}
	l.put("another", &account{Settings: "a"})
	if n := len(l.all); n > ledgerMost || l.get(&Run{Summary: Summary{Name: "another"}, text: []byte("a")}) == nil {
		t.Errorf("%d accounts are kept", n)
	}
}

// An idle stream is written to now and then, and not at every look.
func TestIdleStreamsAreKeptAlive(t *testing.T) {
	const poll = 5 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began := time.Now()
	w, err := watch(ctx, filepath.Join(t.TempDir(), "runs"), poll, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.hub.join(1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.hub.leave(l)
	select {
	case text := <-l.queue:
		if took := time.Since(began); string(text) != ": \n\n" || took < (beatEvery-2)*poll {
			t.Errorf("%q after %v", text, took)
		}
	case <-time.After(patience):
		t.Error("nothing was written")
	}
}

// A request may ask for so much work and no more: with many places each stop is dearer.
func TestEvaluationsHaveTheirBound(t *testing.T) {
	for _, c := range []struct {
		routes, n, count int
		much             bool
	}{
		{1 << 8, 1 << 7, 1 << 7, false}, {1<<8 + 1, 1 << 7, 1 << 7, true},
		{8 * 300, 300, 4, true}, {8 * 300, 300, 3, false}, {8 * 20, 20, 1000, false}, {1, 500, 1000, false},
	} {
		if tooMuch(c.routes, c.n, c.count) != c.much {
			t.Errorf("%+v", c)
		}
	}
}

// Where the time is up, an evaluation states the gap over the instances that it has compared; one
// instance is no sample, and any other fault is told.
func TestReferencesAreThoseFoundInTime(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		known int
		err   error // of the instance behind them
		want  int
		fails bool
	}{{5, nil, 5, false}, {2, context.DeadlineExceeded, 2, false}, {4, context.DeadlineExceeded, 4, false}, {1, context.DeadlineExceeded, 0, true}, {3, other, 0, true}, {3, context.Canceled, 0, true}} {
		got, err := inTime(5, func(i int) (float64, error) {
			if i >= c.known {
				return 0, c.err
			}
			return float64(i), nil
		})
		if len(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
}

// TestKeptPagesAreBounded: by number and by size, the oldest go first, and one that is larger than
// all may be is kept alone.
func TestKeptPagesAreBounded(t *testing.T) {
	p := newPages()
	held := func() (n int) {
		for e := p.order.Front(); e != nil; e = e.Next() {
			n += len(e.Value.(*keptPage).text)
		}
		return n
	}
	var ids []string
	for i := range keepPages + 3 {
		ids = append(ids, p.keep(make([]byte, 1+i)))
		if p.bytes != held() || len(p.all) != p.order.Len() || p.order.Len() != min(i+1, keepPages) {
			t.Fatalf("after %d pages: %d bytes counted, %d held, %d pages", i+1, p.bytes, held(), p.order.Len())
		}
	}
	if p.get(ids[2]) != nil || len(p.get(ids[3])) != 4 {
		t.Error("the oldest page did not go first")
	}
	large := p.keep(make([]byte, keepPageBytes))
	if p.order.Len() != 1 || p.bytes != keepPageBytes || p.get(large) == nil {
		t.Errorf("%d pages, %d bytes beside a large one", p.order.Len(), p.bytes)
	}
	if last := p.keep([]byte("x")); p.order.Len() != 1 || p.get(last) == nil || p.bytes != 1 {
		t.Errorf("%d pages, %d bytes behind a large one", p.order.Len(), p.bytes)
	}
}

// Limits are told in the largest unit that says them whole.
func TestSizesAreTold(t *testing.T) {
	for n, want := range map[int64]string{5: "5 bytes", 1<<20 - 1: "1048575 bytes", 1 << 20: "1 MB", 512 << 20: "512 MB", 1 << 30: "1 GB", 3 << 29: "1536 MB", 2 << 30: "2 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
