package history

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/world"
)

// paidLearners are sound: whole episodes, in which each task's learners are paid more and more.
func paidLearners() learners {
	l := newLearners()
	for i := range l.dones {
		l.rewards[i] = float32(i % 30 / 10)
		l.dones[i] = uint8(i % 2)
	}
	return l
}

// TestSummaryFindsWhatIsWrong: each thing that would keep an agent from learning is named, with how
// much of the file it spoils, and nothing else is.
func TestSummaryFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name     string
		spoil    func(l *learners)
		constant []string
		want     []string
	}{
		{"nothing", func(*learners) {}, nil, nil},
		{"a field that never changes", func(l *learners) {
			for i := range l.observations {
				l.observations[i][1] = 2
			}
		}, []string{"o1"}, nil},
		{"a field that changes once", func(l *learners) {
			for i := range l.observations {
				l.observations[i] = [2]uint8{uint8((i + 1) / len(l.observations)), 3}
			}
		}, []string{"o1"}, nil},
		{"one action", func(l *learners) { clear(l.actions) }, nil, []string{"every action is 0: there is no choice to learn"}},
		{"another one action", func(l *learners) {
			for i := range l.actions {
				l.actions[i] = 2
			}
		}, nil, []string{"every action is 2: there is no choice to learn"}},
		{"a task that never pays", func(l *learners) { clear(l.rewards[60:120]) }, nil, []string{"in 1 of 4 tasks the learners are never paid: nothing shows what is good there"}},
		{"a task in which no step costs", func(l *learners) {
			for i := range l.rewards {
				l.rewards[i] -= 2
			}
			clear(l.rewards[60:120])
		}, nil, []string{"in 1 of 4 tasks the learners end no better than they began"}},
		{"no reward at all", func(l *learners) { clear(l.rewards) }, nil, []string{"every reward is 0: there is nothing to learn from"}},
		{"learners that get worse", func(l *learners) {
			for i := range 120 {
				l.rewards[i] = float32(2 - i%30/10)
			}
		}, nil, []string{"in 2 of 4 tasks the learners end no better than they began"}},
		{"a stream that is cut", func(l *learners) { l.dones[89] = 0 }, nil,
			[]string{"1 of 8 streams ends within an episode: what that episode has paid so far counts as its return"}},
		{"streams that are cut", func(l *learners) { l.dones[29], l.dones[239] = 0, 0 }, nil, []string{"2 of 8 streams end within an episode"}},
		{"ten episodes", func(l *learners) {
			for i := range 30 {
				l.dones[i] = uint8(i % 3 / 2)
			}
		}, nil, nil},
		{"nine episodes", func(l *learners) {
			for i := range 30 {
				l.dones[i] = uint8(i % 3 / 2)
			}
			l.dones[2] = 0
		}, nil, []string{"1 of 8 streams has fewer than 10 episodes: little is learned in them"}},
		{"one task", func(l *learners) { clear(l.tasks) }, nil, []string{"one task: an agent learns how learning goes from many, and is tested on others"}},
	} {
		l := paidLearners()
		c.spoil(&l)
		h, err := imported(t, saveFolder(t, l.arrays()))
		if err != nil {
			t.Fatal(err)
		}
		s := Summarize(h)
		if !slices.Equal(s.Constant, c.constant) || s.Labels {
			t.Errorf("%s: constant fields %q, labels %v", c.name, s.Constant, s.Labels)
		}
		if len(s.Wrong) != len(c.want) {
			t.Errorf("%s: %q, want %q", c.name, s.Wrong, c.want)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(s.Wrong[i], want) {
				t.Errorf("%s: %q, want %q", c.name, s.Wrong[i], want)
			}
		}
	}
}

// TestSummaryOfSplits: an import with at least two tasks keeps one for training and one for tests,
// and notes it. The summary names a single training task. For a file without held-out tasks it
// advises a ratio that leaves one task to test on, for any number of tasks.
func TestSummaryOfSplits(t *testing.T) {
	l := paidLearners()
	from := saveFolder(t, l.arrays())
	for _, c := range []struct {
		ratio      float64
		want, note string
	}{{0.9, "", "a train ratio of 0.9 holds none of 4 tasks out: one is held out"}, {0.75, "", ""}, {0.3, "one task to learn from", ""}, {0.1, "one task to learn from", "a train ratio of 0.1 leaves none of 4 tasks to learn from: one is"}} {
		to, note := filepath.Join(t.TempDir(), "x.hist"), ""
		if err := Import(t.Context(), ImportOptions{From: from, To: to, TrainRatio: c.ratio, Note: func(line string) { note += line }}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%g: the note %q, want %q", c.ratio, note, c.note)
		}
		h, err := Open(to)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Summarize(h).Wrong, ";"); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%g: %q, want %q", c.ratio, got, c.want)
		}
		h.Close()
	}
	some := worldOf(t, from)
	for n := 2; n < 300; n++ {
		for _, ratio := range []float64{0.001, 0.999} {
			w := &RecordsWriter{head: recordsHeader{Tasks: make([]int64, n), TrainRatio: ratio}}
			if w.part(); Unsplit(&Records{world: some, head: w.head}) != "" {
				t.Fatalf("%d tasks at %g: a share of %g", n, ratio, w.head.TrainRatio)
			}
		}
		h := &Records{world: some, head: recordsHeader{Tasks: make([]int64, n), TrainRatio: 1}}
		_, advised, _ := strings.Cut(Unsplit(h), "--train-ratio ")
		if _, err := fmt.Sscan(advised, &h.head.TrainRatio); err != nil || Unsplit(h) != "" {
			t.Fatalf("%d tasks: advised %q leaves %q", n, advised, Unsplit(h))
		}
	}
}

// worldOf is the world of an import.
func worldOf(t *testing.T, from string) world.World {
	t.Helper()
	h, err := imported(t, from)
	if err != nil {
		t.Fatal(err)
	}
	return h.World()
}

// TestSummaryOfRooms: streams that end within an episode, and those of few, are named for rooms
// too, whose best actions follow from their rules.
func TestSummaryOfRooms(t *testing.T) {
	for _, c := range []struct {
		steps int
		want  []string
	}{{40, nil}, {41, []string{"all 18 streams end within an episode: that episode is left out of the returns"}}, {39, []string{"all 18 streams have fewer than 10 episodes", "all 18 streams end within"}}} {
		h := small()
		h.Steps = c.steps
		got, err := OpenRooms(write(t, t.TempDir(), h))
		if err != nil {
			t.Fatal(err)
		}
		s := Summarize(got)
		kept := slices.DeleteFunc(s.Wrong, func(line string) bool { return strings.HasPrefix(line, "in ") }) // walks without aim
		ok := len(kept) == len(c.want) && s.Labels && len(s.Constant) == 0
		for i := range min(len(kept), len(c.want)) {
			ok = ok && strings.HasPrefix(kept[i], c.want[i])
		}
		if !ok {
			t.Errorf("%d steps: %q, want %q", c.steps, kept, c.want)
		}
		got.Close()
	}
}
