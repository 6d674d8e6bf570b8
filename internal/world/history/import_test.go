package history

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/world"
)

// npyBytes is an array as NumPy saves it.
func npyBytes(descr, shape string, numbers any) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var out bytes.Buffer
	out.WriteString("\x93NUMPY\x01\x00")
	binary.Write(&out, binary.LittleEndian, uint16(len(head)))
	out.WriteString(head)
	binary.Write(&out, binary.LittleEndian, numbers)
	return out.Bytes()
}

// learners are the arrays of 4 tasks with two streams of 30 transitions in episodes of 2 to 4
// steps.
type learners struct {
	observations [][2]uint8
	actions      []int64
	rewards      []float32
	dones        []uint8
	tasks        []int32
	streams      []int32
}

func newLearners() (l learners) {
	for task := range 4 {
		for stream := range 2 {
			clock := 0
			for t := range 30 {
				l.observations = append(l.observations, [2]uint8{uint8(clock), uint8(task)})
				l.actions = append(l.actions, int64((t+task)%3))
				l.rewards = append(l.rewards, float32(t/10)-0.5)
				l.tasks, l.streams = append(l.tasks, int32(10*task)), append(l.streams, int32(stream))
				clock++
				done := uint8(0)
				if clock == 2+t%3 || clock == 4 {
					done, clock = 1, 0
				}
				l.dones = append(l.dones, done)
			}
		}
	}
	return l
}

func (l *learners) arrays() map[string][]byte {
	n := len(l.actions)
	one := fmt.Sprintf("%d,", n)
	return map[string][]byte{"observations": npyBytes("|u1", fmt.Sprintf("%d, 2", n), l.observations), "actions": npyBytes("<i8", one, l.actions), "rewards": npyBytes("<f4", one, l.rewards),
		"dones": npyBytes("|b1", one, l.dones), "tasks": npyBytes("<i4", one, l.tasks), "streams": npyBytes("<i4", one, l.streams)}
}

func saveNPZ(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "learners.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, data := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func saveFolder(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range arrays {
		if err := os.WriteFile(filepath.Join(dir, name+".npy"), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestImportReportsProgress: what is done grows up to what there is, which is two passes.
func TestImportReportsProgress(t *testing.T) {
	l := newLearners()
	from := saveNPZ(t, l.arrays())
	last, all := 0, 0
	progress := func(done, of int) {
		if done < last || all != 0 && of != all || done > of {
			t.Errorf("%d of %d is done, after %d of %d", done, of, last, all)
		}
		last, all = done, of
	}
	if err := Import(t.Context(), ImportOptions{From: from, To: filepath.Join(t.TempDir(), "x.hist"), TrainRatio: 0.5, Progress: progress}); err != nil {
		t.Fatal(err)
	}
	if all == 0 || last != all {
		t.Errorf("it ended at %d of %d", last, all)
	}
}

func imported(t *testing.T, from string) (*Records, error) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "x.hist")
	if err := Import(t.Context(), ImportOptions{From: from, To: to, TrainRatio: 0.5}); err != nil {
		if left, _ := filepath.Glob(to + "*"); left != nil {
			t.Errorf("%v is left behind", left)
		}
		return nil, err
	}
	h, err := Open(to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h.(*Records), nil
}

// TestImport: histories from an .npz file and from a folder are read back unchanged.
func TestImport(t *testing.T) {
	l := newLearners()
	for _, from := range []string{saveNPZ(t, l.arrays()), saveFolder(t, l.arrays())} {
		h, err := imported(t, from)
		if err != nil {
			t.Fatal(err)
		}
		space := h.World().Space()
		if len(space.Fields) != 2 || space.Fields[0].Size != 4 || space.Fields[1].Size != 4 || space.Actions != 3 || fmt.Sprint(space.Rewards) != "[-0.5 0.5 1.5]" || h.World().Limit() != 4 {
			t.Errorf("the space is %+v, episodes of %d", space, h.World().Limit())
		}
		if streams, steps := h.Size(); streams != 2 || steps != 30 || len(h.Tasks()) != 4 || h.Tasks()[3] != world.Number(30) {
			t.Errorf("%d streams of %d, tasks %v", streams, steps, h.Tasks())
		}
		train, test := h.Split()
		if len(train) != 2 || len(test) != 2 {
			t.Errorf("split into %v and %v", train, test)
		}
		d, err := h.Pack([]int{0, 1, 2, 3}, 0, 0)
		if err != nil || len(d.Spans) != 8 {
			t.Fatal(d, err)
		}
		for s, span := range d.Spans {
			begin := map[uint32]bool{}
			for _, at := range d.Starts[span.Start:][:span.Episodes] {
				begin[at] = true
			}
			for k := range span.Records {
				i := s*30 + k
				want := int32(l.observations[i][0]) | int32(l.observations[i][1])<<8 | int32(l.actions[i])<<16 | int32(k/10)<<24
				if got := d.Words[span.First+int64(k)]; got != want {
					t.Fatalf("stream %d, transition %d: %#x, want %#x", s, k, got, want)
				}
				if first := k == 0 || l.dones[i-1] != 0; first != begin[uint32(k)] {
					t.Fatalf("stream %d, transition %d: an episode begins there: %v", s, k, first)
				}
			}
		}
		if s := Summarize(h); s.Transitions != 240 || s.Streams != 8 || !(s.Last > s.First) || len(s.Wrong) != 1 || !strings.HasPrefix(s.Wrong[0], "all 8 streams end within an episode") {
			t.Errorf("%+v", s)
		}
		some, err := h.Pack([]int{2}, 1, 7)
		if err != nil || len(some.Spans) != 1 || some.Spans[0].Records != 7 || some.Spans[0].Episodes < 2 || some.Spans[0].Episodes > 3 || some.Sum == d.Sum {
			t.Errorf("%+v, %v", some.Spans, err)
		}
	}
}

// TestImportKeepsBestActions: under either name they are the labels of what is read back; what is
// no action, and a list of another length, is refused.
func TestImportKeepsBestActions(t *testing.T) {
	l := newLearners()
	n := len(l.actions)
	best := make([]int16, n)
	for i := range best {
		best[i] = int16(i / 7 % 5) // the learners took only three of these actions
	}
	for _, name := range []string{"best_actions", "expert_actions"} {
		arrays := l.arrays()
		arrays[name] = npyBytes("<i2", fmt.Sprintf("%d,", n), best)
		h, err := imported(t, saveNPZ(t, arrays))
		if err != nil {
			t.Fatal(err)
		}
		d, err := h.Pack([]int{0, 1, 2, 3}, 0, 0)
		if err != nil || d.Label != 4 || h.World().Space().Actions != 5 {
			t.Fatalf("labels in byte %d, %d actions, %v", d.Label, h.World().Space().Actions, err)
		}
		for s, span := range d.Spans {
			for k := range span.Records {
				record := d.Words[2*(span.First+int64(k)):][:2]
				if i := s*30 + k; record[1] != int32(best[i]) || record[0]>>16&0xff != int32(l.actions[i]) {
					t.Fatalf("transition %d has label %d of %d", i, record[1], best[i])
				}
			}
		}
		for _, c := range []struct {
			numbers any
			count   int
			why     string
		}{
			{append(slices.Clone(best[1:]), -1), n, fmt.Sprintf("the best action of transition %d is -1: want whole numbers from 0 to 63", n-1)},
			{append([]int16{64}, best[1:]...), n, "the best action of transition 0 is 64"},
			{append([]float64{math.NaN()}, make([]float64, n-1)...), n, "the best action of transition 0 is NaN"},
			{best[1:], n - 1, fmt.Sprintf("%s has %d rows, observations has %d", name, n-1, n)},
		} {
			descr := "<i2"
			if _, float := c.numbers.([]float64); float {
				descr = "<f8"
			}
			arrays[name] = npyBytes(descr, fmt.Sprintf("%d,", c.count), c.numbers)
			if _, err := imported(t, saveNPZ(t, arrays)); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%s: %v", c.why, err)
			}
		}
	}
}

// TestImportMeasures: floating point is cut into levels by quantiles, rewards of many values too.
func TestImportMeasures(t *testing.T) {
	n := 3000
	obs, rewards, actions, dones, tasks := make([]float32, n), make([]float64, n), make([]int64, n), make([]uint8, n), make([]int32, n)
	for i := range n {
		obs[i], rewards[i], dones[i], tasks[i] = float32(math.Sin(float64(i))), float64(i%1000)/100, uint8(i%5/4), int32(i/300)
		actions[i] = int64(i % 2)
	}
	one := fmt.Sprintf("%d,", n)
	h, err := imported(t, saveNPZ(t, map[string][]byte{"obs": npyBytes("<f4", one, obs), "rewards": npyBytes("<f8", one, rewards), "actions": npyBytes("<i8", one, actions),
		"terminals": npyBytes("|u1", one, dones), "task": npyBytes("<i4", one, tasks)}))
	if err != nil {
		t.Fatal(err)
	}
	space := h.World().Space()
	if f := space.Fields[0]; f.Size != 256 || len(f.Edges) != 255 || len(space.Rewards) != 64 || len(h.Tasks()) != 10 {
		t.Fatalf("%d levels, %d rewards, %d tasks", f.Size, len(space.Rewards), len(h.Tasks()))
	}
	for i := range n {
		record := h.words[i]
		if got, want := int(record&0xff), space.Fields[0].Level(float64(obs[i])); got != want {
			t.Fatalf("transition %d: %g has level %d, want %d", i, obs[i], got, want)
		}
		if got := space.Rewards[record>>16&0xff]; math.Abs(got-rewards[i]) > 0.2 {
			t.Fatalf("transition %d: a reward of %g is kept as %g", i, rewards[i], got)
		}
	}
}

// TestImportKeepsFewNumbersApart: a real-valued field with up to 256 distinct numbers keeps all of
// them, also rare ones. The import notes fields divided into levels and arrays that were not read.
func TestImportKeepsFewNumbersApart(t *testing.T) {
	for _, c := range []struct {
		values, rewards, cells int
		notes                  []string
	}{
		{1, 2, 1, nil}, {255, 2, 255, nil}, {256, 256, 256, nil},
		{257, 257, 0, []string{"not read: infos, obs", "1 of 1 fields of the observations have more than 256 different numbers: each of these is cut into at most 256 levels by quantiles",
			"the rewards have more than 256 different values: they are cut into 64 levels, each of which counts as its mean"}},
	} {
		const n = 100_000 // most of them the same number
		obs, rewards, actions, dones := make([]float64, n), make([]float64, n), make([]uint8, n), make([]uint8, n)
		for i := range n {
			dones[i], actions[i] = uint8(i%5/4), uint8(i%2)
			if i%300 == 0 {
				obs[i], rewards[i] = float64(i/300%c.values)-0.5, float64(i/300%c.rewards)
			} else {
				obs[i], rewards[i] = -0.5, 0
			}
		}
		one := fmt.Sprintf("%d,", n)
		arrays := map[string][]byte{"observations": npyBytes("<f8", one, obs), "rewards": npyBytes("<f8", one, rewards), "actions": npyBytes("|u1", one, actions), "dones": npyBytes("|u1", one, dones)}
		if c.notes != nil {
			arrays["obs"], arrays["infos"] = arrays["actions"], []byte("no array")
		}
		var notes []string
		to := filepath.Join(t.TempDir(), "x.hist")
		if err := Import(t.Context(), ImportOptions{From: saveNPZ(t, arrays), To: to, TrainRatio: 0.5, Note: func(s string) { notes = append(notes, s) }}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(notes, c.notes) {
			t.Errorf("%d values: %q", c.values, notes)
		}
		h, err := Open(to)
		if err != nil {
			t.Fatal(err)
		}
		if f := h.World().Space().Fields[0]; c.cells > 0 && f.Size != c.cells {
			t.Errorf("%d values are %d cells", c.values, f.Size)
		}
		h.Close()
	}
	l := newLearners()
	arrays := l.arrays()
	streams := make([]float64, len(l.streams))
	streams[3] = math.NaN()
	arrays["streams"] = npyBytes("<f8", fmt.Sprintf("%d,", len(streams)), streams)
	if _, err := imported(t, saveNPZ(t, arrays)); err == nil || !strings.Contains(err.Error(), "the stream of transition 3 is NaN") {
		t.Error(err)
	}
}

// TestLevelsSeparateRareNumbers: a number that most of a sample is takes one level of many,
// wherever it stands among the others.
func TestLevelsSeparateRareNumbers(t *testing.T) {
	for _, at := range []float64{0, 150, 299} {
		for _, levels := range []int{2, 3, 64, 256} {
			var sample []float64
			for v := range 300 {
				sample = append(sample, float64(v))
			}
			sample = append(sample, slices.Repeat([]float64{at}, 100_000)...)
			got := edges(sample, levels)
			if len(got) >= levels || len(got) < min(levels-1, levels*3/4) {
				t.Errorf("%d levels, most at %g: %d edges", levels, at, len(got))
			}
			f := world.Field{Edges: got}
			if levels > 3 && (f.Level(at) == f.Level(at+1) && at < 299 || f.Level(at) == f.Level(at-1) && at > 0) {
				t.Errorf("%d levels: %g shares one with its neighbours", levels, at)
			}
		}
	}
	even := make([]float64, 3000)
	for i := range even {
		even[i] = float64(i % 1000)
	}
	counts := make([]int, 64)
	f := world.Field{Edges: edges(even, 64)}
	for _, v := range even {
		counts[f.Level(v)]++
	}
	if slices.Min(counts) < 40 || slices.Max(counts) > 54 {
		t.Errorf("counts of the levels: %v", counts)
	}
}

// TestImportRefuses: one line each, and no file.
func TestImportRefuses(t *testing.T) {
	with := func(spoil func(l *learners)) map[string][]byte {
		l := newLearners()
		spoil(&l)
		return l.arrays()
	}
	without := func(name string) map[string][]byte {
		a := with(func(*learners) {})
		delete(a, name)
		return a
	}
	cut := with(func(*learners) {})
	cut["rewards"] = cut["rewards"][:len(cut["rewards"])-8]
	long := with(func(*learners) {})
	long["tasks"] = npyBytes("<i4", "9,", make([]int32, 9))
	wide := with(func(*learners) {})
	wide["observations"] = npyBytes("|u1", "240, 65", make([]uint8, 240*65))
	for want, arrays := range map[string]map[string][]byte{
		"the reward of transition 7 is NaN":                                   with(func(l *learners) { l.rewards[7] = float32(math.NaN()) }),
		"the reward of transition 0 is +Inf":                                  with(func(l *learners) { l.rewards[0] = float32(math.Inf(1)) }),
		"the action of transition 9 is 64: want whole numbers from 0 to 63":   with(func(l *learners) { l.actions[9] = 64 }),
		"the action of transition 9 is -1: want whole numbers from 0 to 63":   with(func(l *learners) { l.actions[9] = -1 }),
		"no episode ends in 240 transitions: mark ends in dones or terminals": with(func(l *learners) { clear(l.dones) }),
		"no array rewards":                               without("rewards"),
		"no array observations or states":                without("observations"),
		"rewards is cut short":                           cut,
		"tasks has 9 rows, observations has 240":         long,
		"want at least one transition of 1 to 64 fields": wide,
	} {
		_, err := imported(t, saveNPZ(t, arrays))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v; want one line with %q", err, want)
		}
	}
	for _, from := range []string{filepath.Join(t.TempDir(), "none.npz"), t.TempDir(), saveText(t)} {
		if _, err := imported(t, from); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// TestAFieldOfOneNumberTakesIt: a real-valued field that never changes has one level, for any
// number, also in the file that is read back.
func TestAFieldOfOneNumberTakesIt(t *testing.T) {
	l := newLearners()
	arrays := l.arrays()
	arrays["observations"] = npyBytes("<f4", "240,", slices.Repeat([]float32{7.5}, 240))
	h, err := imported(t, saveNPZ(t, arrays))
	if err != nil {
		t.Fatal(err)
	}
	if f := h.World().Space().Fields[0]; f.Size != 1 || f.Edges == nil || f.Level(7.5) != 0 {
		t.Errorf("%+v", f)
	}
	whole, err := imported(t, saveNPZ(t, l.arrays()))
	if err != nil {
		t.Fatal(err)
	}
	if f := whole.World().Space().Fields[0]; f.Edges != nil {
		t.Errorf("whole numbers are measured: %+v", f)
	}
}

// TestImportTakesSizes: a world may have values that no history has. Sizes that are too small are
// refused.
func TestImportTakesSizes(t *testing.T) {
	l := newLearners()
	from := saveNPZ(t, l.arrays())
	measured := l.arrays()
	measured["observations"] = npyBytes("<f4", "240,", slices.Repeat([]float32{0.5}, 240))
	for _, c := range []struct {
		from  string
		sizes []int
		want  string
	}{
		{from, []int{4, 4}, ""}, {from, []int{256, 9}, ""},
		{from, []int{4, 3}, "has 3 in field 1: --sizes has 3 for it, values 0 to 2"},
		{from, []int{4}, "--sizes names 1 fields, the observations have 2"},
		{saveNPZ(t, measured), []int{4}, "--sizes are of fields of whole numbers: these observations are floating point"},
	} {
		to := filepath.Join(t.TempDir(), "x.hist")
		err := Import(t.Context(), ImportOptions{From: c.from, To: to, TrainRatio: 0.5, Sizes: c.sizes})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v", c.sizes, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		h, err := Open(to)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range h.World().Space().Fields {
			if f.Size != c.sizes[i] {
				t.Errorf("%v: field %d has %d values", c.sizes, i, f.Size)
			}
		}
		h.Close()
	}
}

// TestImportNotesInterleavedRows: interleaved rows of several learners make short pieces, and
// the import notes it. It notes nothing if each learner's rows are contiguous.
func TestImportNotesInterleavedRows(t *testing.T) {
	for _, c := range []struct {
		turn int // rows
		want string
	}{
		{1, "the rows of 4 of 4 streams do not lie together: each piece is taken for a learner of its own, and 216 pieces end within an episode; sort the rows by task and stream to join them"},
		{10, "the rows of 4 of 4 streams do not lie together: each piece is taken for a learner of its own; sort the rows by task and stream to join them"},
		{60, ""},
	} {
		l := newLearners()
		for i := range l.dones {
			l.tasks[i], l.dones[i] = int32(i/c.turn%4), uint8(i%10/9)
		}
		arrays := l.arrays()
		delete(arrays, "streams")
		said := ""
		to := filepath.Join(t.TempDir(), "x.hist")
		if err := Import(t.Context(), ImportOptions{From: saveNPZ(t, arrays), To: to, TrainRatio: 0.5, Note: func(s string) { said = s }}); err != nil {
			t.Fatal(err)
		}
		if said != c.want {
			t.Errorf("turns of %d rows: %q", c.turn, said)
		}
	}
}

// TestImportTakesTruncationsAlone: where every episode ends by its limit of time no other array
// needs to say so; an end that is NaN is none.
func TestImportTakesTruncationsAlone(t *testing.T) {
	l := newLearners()
	want, err := imported(t, saveNPZ(t, l.arrays()))
	if err != nil {
		t.Fatal(err)
	}
	arrays := l.arrays()
	arrays["truncations"] = arrays["dones"]
	delete(arrays, "dones")
	got, err := imported(t, saveNPZ(t, arrays))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.starts, want.starts) {
		t.Error("episodes begin elsewhere")
	}
	for _, name := range []string{"dones", "truncations"} {
		ends := make([]float64, len(l.dones))
		ends[9], ends[7] = 1, math.NaN()
		arrays := l.arrays()
		arrays[name] = npyBytes("<f8", "240,", ends)
		if _, err := imported(t, saveNPZ(t, arrays)); err == nil || !strings.Contains(err.Error(), name+" has NaN for transition 7") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func saveText(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "x.npz")
	if err := os.WriteFile(path, []byte("words"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRecordsAreJudged: a file that was damaged anywhere, cut, or made of holes is refused in a
// line.
func TestRecordsAreJudged(t *testing.T) {
	l := newLearners()
	to := filepath.Join(t.TempDir(), "x.hist")
	if err := Import(t.Context(), ImportOptions{From: saveNPZ(t, l.arrays()), To: to, TrainRatio: 0.5}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, data []byte, want string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "bad.hist")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if h, err := Open(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v; want one line with %q", what, h, err, want)
		}
	}
	for at := 0; at < len(good); at += 7 {
		bad := bytes.Clone(good)
		bad[at] ^= 0x10
		refuse(fmt.Sprint("byte ", at), bad, "history")
	}
	refuse("a cut end", good[:len(good)-1], "cut short")
	refuse("a tail", append(bytes.Clone(good), 0), "bytes follow its end")
	holes := filepath.Join(t.TempDir(), "holes.hist")
	if err := os.WriteFile(holes, good[:64], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(holes, 100<<30); err != nil {
		t.Skip("no holes here:", err)
	}
	if _, err := Open(holes); err == nil || !strings.Contains(err.Error(), "bytes follow its end") {
		t.Errorf("100 GB of holes behind a preamble: %v", err)
	}
	p, err := readPreamble(good)
	if err != nil {
		t.Fatal(err)
	}
	p.payload = 100<<30 - 64 - p.starts - p.json
	f, err := os.OpenFile(holes, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.WriteAt(p.bytes(), 0)
	f.WriteAt(good[len(good)-int(p.json):], 100<<30-p.json)
	if _, err := Open(holes); err == nil || !strings.Contains(err.Error(), "its streams take") {
		t.Errorf("100 GB of holes between preamble and header: %v", err)
	}
}

// TestRecordsOutOfRange: a file whose checksums agree and whose records lie is refused all the
// same.
func TestRecordsOutOfRange(t *testing.T) {
	l := newLearners()
	to := filepath.Join(t.TempDir(), "x.hist")
	if err := Import(t.Context(), ImportOptions{From: saveNPZ(t, l.arrays()), To: to, TrainRatio: 0.5}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[int]string{0: "byte 0, at most 3", 2: "byte 2, at most 2", 3: "byte 3, at most 2"} {
		data := bytes.Clone(good)
		p, err := readPreamble(data)
		if err != nil {
			t.Fatal(err)
		}
		var head recordsHeader
		if err := json.Unmarshal(data[int64(len(data))-p.json:], &head); err != nil {
			t.Fatal(err)
		}
		data[preambleBytes+17*4+at] = 4
		head.Checksums[0] = checksum(data[preambleBytes:][:p.payload])
		text, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data[:int64(len(data))-p.json], text...)
		p.json, p.jsonSum = int64(len(text)), checksum(text)
		copy(data, p.bytes())
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(to); err == nil || !strings.Contains(err.Error(), "record 17 has 4 in "+want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("byte %d: %v; want one line with %q", at, err, want)
		}
	}
}

// TestOneRewardIsWrongWhereEpisodesPayTheSame: a pole that is held up longer pays more by steps
// that each pay 1; where no step pays, and where all episodes are of one length, none is better.
func TestOneRewardIsWrongWhereEpisodesPayTheSame(t *testing.T) {
	for _, c := range []struct {
		name   string
		reward float32
		equal  bool
		wrong  bool
	}{{"lengths differ", 1, false, false}, {"nothing pays", 0, false, true}, {"one length", 1, true, true}} {
		l := newLearners()
		for i := range l.rewards {
			l.rewards[i] = c.reward
			if c.equal {
				l.dones[i] = uint8(i % 3 / 2)
			}
		}
		h, err := imported(t, saveFolder(t, l.arrays()))
		if err != nil {
			t.Fatal(err)
		}
		s := Summarize(h)
		if got := strings.Contains(strings.Join(s.Wrong, ";"), "there is nothing to learn from"); got != c.wrong {
			t.Errorf("%s: %q", c.name, s.Wrong)
		}
	}
}
