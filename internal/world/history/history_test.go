package history

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/limits/limitstest"
	"haul/internal/rng"
	"haul/internal/world"
	"haul/internal/world/grid"
)

// walk is an agent without aim: it fills the streams of one goal by the reference rule.
func walk(h Header, goal int) []grid.Step {
	var out []grid.Step
	g := h.Goals[goal]
	for s := range h.Streams {
		c, stage := h.Room.Start(), 0
		for t := range h.Steps {
			word := rng.At(uint64(goal), uint64(s), uint32(t), rng.Learner)[0]
			a := uint8(rng.Below(word, grid.NumActions))
			to, reward := h.Room.Move(c, a), uint8(0)
			if !g.Keyed() && to == g.Cell() {
				reward = 1
			}
			if g.Keyed() && stage < 2 && to == [2]grid.Cell{g.Key(), g.Cell()}[stage] {
				reward = 1
				stage++
			}
			out = append(out, grid.MakeStep(c, a, reward))
			if c = to; (t+1)%h.Room.Horizon == 0 {
				c, stage = h.Room.Start(), 0
			}
		}
	}
	return out
}

func small() Header {
	room := grid.Room{Size: 3, Horizon: 4}
	return Header{Room: room, Goals: room.Goals(), SplitSeed: 5, TrainRatio: 0.8, Streams: 2, Steps: 10, Settings: "grid_size: 3\n"}
}

// tester is a test, a benchmark, a fuzz target or a property's draw.
type tester interface {
	Helper()
	Fatal(...any)
}

// write makes a whole file and returns its path.
func write(t tester, dir string, h Header) string {
	t.Helper()
	path := filepath.Join(dir, "a.hist")
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for g := range h.Goals {
		if err := w.WriteGoal(g, walk(h, g)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		room := grid.Room{Size: rapid.IntRange(grid.MinSize, 7).Draw(t, "size"), Horizon: rapid.IntRange(1, 12).Draw(t, "horizon"), Kind: rapid.SampledFrom([]grid.Kind{grid.DarkRoom, grid.KeyDoor}).Draw(t, "kind")}
		want := Header{
			Room:       room,
			Goals:      rapid.SliceOfNDistinct(rapid.SampledFrom(room.Goals()), 1, 4, rapid.ID).Draw(t, "goals"),
			SplitSeed:  rapid.Uint64().Draw(t, "seed"),
			TrainRatio: rapid.Float64Range(0, 1).Draw(t, "ratio"),
			Streams:    rapid.IntRange(1, 3).Draw(t, "streams"),
			Steps:      rapid.IntRange(1, 30).Draw(t, "steps"),
			Settings:   rapid.StringMatching(`[a-zé: \n]*`).Draw(t, "settings"),
		}
		h, err := OpenRooms(write(t, dir, want))
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		if diff := cmp.Diff(want, h.Header); diff != "" {
			t.Fatal(diff)
		}
		for g := range want.Goals {
			steps := walk(want, g)
			returns := make([]float64, want.Steps/room.Horizon)
			for s := range want.Streams {
				stream := h.Stream(g, s)
				if stream.Len() != want.Steps {
					t.Fatalf("goal %d, stream %d: %d steps", g, s, stream.Len())
				}
				for k := range want.Steps {
					if got := stream.At(k); got != steps[s*want.Steps+k] {
						t.Fatalf("goal %d, stream %d, step %d: %#x", g, s, k, got)
					}
					if e := k / room.Horizon; e < len(returns) {
						returns[e] += float64(stream.At(k).Reward())
					}
				}
			}
			for e := range returns {
				returns[e] /= float64(want.Streams)
			}
			if diff := cmp.Diff(returns, h.Curve(g)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestStepHoldsItsParts(t *testing.T) {
	nine := grid.Room{Size: 9, Horizon: 20}
	for _, c := range nine.Cells() {
		for a := range uint8(grid.NumActions) {
			for reward := range uint8(2) {
				s := grid.MakeStep(c, a, reward)
				if s.Cell() != c || s.Action() != a || s.Reward() != reward {
					t.Fatalf("%v, %d, %d came back as %v, %d, %d", c, a, reward, s.Cell(), s.Action(), s.Reward())
				}
				want := int32(c.X()) | int32(c.Y())<<8 | int32(a)<<16 | int32(reward)<<24
				if s.Word() != want {
					t.Fatalf("%v, %d, %d: word %#x, want %#x", c, a, reward, s.Word(), want)
				}
			}
		}
	}
}

func TestPack(t *testing.T) {
	head := small()
	h, err := OpenRooms(write(t, t.TempDir(), head))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	goals := []int{7, 0, 3}
	for _, c := range []struct{ streams, steps int }{{2, 10}, {1, 10}, {2, 3}, {1, 1}} {
		data, err := h.Pack(goals, c.streams, c.steps)
		if err != nil {
			t.Fatal(err)
		}
		got := data.Words
		if len(got) != len(goals)*c.streams*c.steps {
			t.Fatalf("%d words", len(got))
		}
		for i, g := range goals {
			for s := range c.streams {
				for k := range c.steps {
					if w := got[(i*c.streams+s)*c.steps+k]; w != h.Stream(g, s).At(k).Word() {
						t.Fatalf("goal %d, stream %d, step %d: %#x", g, s, k, w)
					}
				}
			}
		}
	}
	for _, c := range []struct {
		goals          []int
		streams, steps int
		want           string
	}{
		{nil, 1, 1, "pack histories: no goals"},
		{[]int{9}, 1, 1, "pack histories: goal 9 asked for, the file has 9"},
		{[]int{-1}, 1, 1, "pack histories: goal -1 asked for, the file has 9"},
		{[]int{0}, 3, 1, "pack histories: 3 streams asked for, the file has 2"},
		{[]int{0}, 0, 1, "pack histories: 0 streams asked for, the file has 2"},
		{[]int{0}, 1, 11, "pack histories: 11 steps per stream asked for, the file has 10"},
		{[]int{0}, 1, 0, "pack histories: 0 steps per stream asked for, the file has 10"},
	} {
		_, err := h.Pack(c.goals, c.streams, c.steps)
		if diff := cmp.Diff(c.want, text(err)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHeaderSplitFindsItsGoals(t *testing.T) {
	h := small()
	slices.Reverse(h.Goals)
	train, test := h.Room.Split(h.SplitSeed, h.TrainRatio)
	gotTrain, gotTest := h.Split()
	at := func(index []int) (out []grid.Goal) {
		for _, i := range index {
			out = append(out, h.Goals[i])
		}
		return out
	}
	if diff := cmp.Diff([][]grid.Goal{train, test}, [][]grid.Goal{at(gotTrain), at(gotTest)}); diff != "" {
		t.Error(diff)
	}
	h.Goals = h.Goals[:4]
	gotTrain, gotTest = h.Split()
	if len(gotTrain)+len(gotTest) != 4 {
		t.Errorf("4 goals were split into %d and %d", len(gotTrain), len(gotTest))
	}
}

func TestMatches(t *testing.T) {
	h := small()
	matches := func(r grid.Room) error { return Matches(&Rooms{Header: h}, r) }
	if err := matches(grid.Room{Size: 3, Horizon: 4}); err != nil {
		t.Error(err)
	}
	want := "the agent was trained in another world (Dark Room, 9×9, episodes of 20 steps) than that of the histories (Dark Room, 3×3, episodes of 4 steps): " +
		"name its own histories with --history"
	if diff := cmp.Diff(want, fmt.Sprint(matches(grid.Room{Size: 9, Horizon: 20}))); diff != "" {
		t.Error(diff)
	}
	if matches(grid.Room{Size: 3, Horizon: 5}) == nil || matches(grid.Room{Size: 4, Horizon: 4}) == nil || matches(grid.Room{Size: 3, Horizon: 4, Kind: grid.KeyDoor}) == nil {
		t.Error("another room passed")
	}
	space := world.Space{Fields: []world.Field{{Name: "a", Size: 2, Edges: []float64{1}}}, Actions: 2, Rewards: []float64{0, 1}}
	own := world.Recorded{Env: world.EnvRecorded, Title: "x", Declared: space, Longest: 3}
	space.Rewards = []float64{0, 2}
	file := &Records{world: world.Recorded{Env: world.EnvRecorded, Title: "x", Declared: space, Longest: 3}}
	if err := Matches(file, own); err == nil || !strings.Contains(err.Error(), "episodes of at most 3 steps with other values of fields or rewards)") {
		t.Errorf("worlds of one description: %v", err)
	}
}

// seal makes the bytes of a file around a JSON text and transitions, with sums that fit.
func seal(payload, text []byte) []byte {
	p := preamble{payload: int64(len(payload)), json: int64(len(text)), jsonSum: checksum(text), format: 1}
	return slices.Concat(p.bytes(), payload, text)
}

// taken is a file's transitions and JSON apart.
func taken(t tester, data []byte) (payload []byte, b block) {
	t.Helper()
	p, err := readPreamble(data)
	if err != nil {
		t.Fatal(err)
	}
	payload = slices.Clone(data[preambleBytes:][:p.payload])
	if err := json.Unmarshal(data[preambleBytes+p.payload:], &b); err != nil {
		t.Fatal(err)
	}
	return payload, b
}

func TestOpenRefuses(t *testing.T) {
	path := write(t, t.TempDir(), small())
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) func() []byte {
		return func() []byte { d := slices.Clone(whole); d[at] ^= 1; return d }
	}
	// Files whose sums fit and whose content does not: what another writer could make.
	header := func(change func(*block)) func() []byte {
		return func() []byte {
			payload, b := taken(t, whole)
			change(&b)
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			return seal(payload, text)
		}
	}
	step := func(at int, change func(grid.Step) grid.Step) func() []byte {
		return func() []byte {
			payload, b := taken(t, whole)
			steps := make([]grid.Step, len(payload)/stepBytes)
			for i := range steps {
				steps[i] = Steps(payload).At(i)
			}
			steps[at] = change(steps[at])
			payload = encode(steps)
			b.Checksums[0] = checksum(payload[:b.goalBytes()])
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			return seal(payload, text)
		}
	}
	for _, c := range []struct {
		name string
		data func() []byte
		want string
	}{
		{"empty", func() []byte { return nil }, "the file is empty"},
		{"another kind", func() []byte { return []byte("PK\x03\x04 and so on") }, "not a history file: it does not begin with HAULHIST"},
		{"cut in the magic", func() []byte { return whole[:5] }, "cut short: 5 bytes, the preamble alone takes 64"},
		{"cut in the preamble", func() []byte { return whole[:63] }, "cut short: 63 bytes, the preamble alone takes 64"},
		{"cut in the transitions", func() []byte { return whole[:100] }, fmt.Sprintf("cut short: 100 bytes of %d", len(whole))},
		{"cut at the last byte", func() []byte { return whole[:len(whole)-1] }, fmt.Sprintf("cut short: %d bytes of %d", len(whole)-1, len(whole))},
		{"too long", func() []byte { return append(slices.Clone(whole), 1, 2) }, "2 bytes follow its end"},
		{"another version", flip(8), "format version 0, this program reads 1 to 3: make the file again with `haul data`"},
		{"damaged preamble", flip(20), "bad checksum of the preamble: the file is damaged"},
		{"damaged transition", flip(preambleBytes), "bad checksum of goal (0,0): the file is damaged"},
		{"damaged last transition", flip(preambleBytes + 9*2*10*2 - 1), "bad checksum of goal (2,2): the file is damaged"},
		{"damaged header", flip(len(whole) - 1), "bad checksum of the header: the file is damaged"},
		{"impossible sizes", func() []byte { return preamble{payload: -1, format: 1}.bytes() }, "impossible sizes: -1 bytes of transitions, 0 of JSON"},
		{"no JSON", func() []byte { return seal(nil, []byte("{")) }, "header: unexpected end of JSON input"},
		{"zero streams", header(func(b *block) { b.Streams = 0 }), "zero streams: a learner needs at least one environment"},
		{"too many streams", header(func(b *block) { b.Streams = 1<<20 + 1 }), "1048577 streams: want 1 to 1048576"},
		{"zero steps", header(func(b *block) { b.Steps = 0 }), "0 steps per stream: want 1 to 1073741824"},
		{"no goals", header(func(b *block) { b.Goals = nil }), "no goals"},
		{"a ratio over one", header(func(b *block) { b.TrainRatio = 1.5 }), "a train ratio of 1.5: want 0 to 1"},
		{"no room", header(func(b *block) { b.Room.Size = 0 }), "a room of size 0: want 2 to 16"},
		{"a goal outside", header(func(b *block) { b.Goals[0] = grid.Goal(grid.At(3, 0)) }), "goal (3,0) lies outside the 3×3 room with horizon 4"},
		{"a goal of another game", header(func(b *block) { b.Goals[0] = grid.KeyAndDoor(grid.At(1, 0), grid.At(0, 0)) }), "goal key (1,0) door (0,0) is none of a 3×3 room with horizon 4"},
		{"a room of another version", header(func(b *block) { b.Room.Kind, b.Goals[0] = grid.KeyDoor, 0 }), "goal (0,0) is none of a 3×3 key-to-door room with horizon 4"},
		{"a goal twice", header(func(b *block) { b.Goals[0] = grid.Goal(grid.At(1, 0)) }), "goal (1,0) appears twice"},
		{"other sizes", header(func(b *block) { b.Steps = 11 }), "9 goals, 2 streams and 11 steps take 396 bytes, the file holds 360"},
		{"a curve short", header(func(b *block) { b.Curves = b.Curves[1:] }), "9 goals with 9 optimal returns, 8 curves and 9 checksums"},
		{"an episode short", header(func(b *block) { b.Curves[3] = b.Curves[3][1:] }), "the curve of goal (0,1) has 1 episodes, its streams have 2"},
		{"another optimum", header(func(b *block) { b.Optimal[0] = 9 }), "goal (0,0) has an optimal return of 3, the header says 9"},
		{"a jump", step(1, func(s grid.Step) grid.Step { return grid.MakeStep(grid.At(2, 2), s.Action(), 0) }), "transition 1 takes action"},
		{"an action too high", step(0, func(s grid.Step) grid.Step { return grid.MakeStep(s.Cell(), 7, 0) }), "goal (0,0), stream 0: transition 0 takes action 7 in (1,1), the agent stands in (1,1)"},
		{"a reward unearned", step(10, func(s grid.Step) grid.Step { return s ^ 1<<11 }), "goal (0,0), stream 1: transition 0 says"},
		{"stray bits", step(0, func(s grid.Step) grid.Step { return s | 1<<15 }), "goal (0,0), stream 0: transition 0 says 0x8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.hist")
			if err := os.WriteFile(path, c.data(), 0o644); err != nil {
				t.Fatal(err)
			}
			h, err := OpenRooms(path)
			if err == nil {
				h.Close()
				t.Fatal("it was opened")
			}
			if got := err.Error(); !strings.HasPrefix(got, "history "+path+": ") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
	if _, err := OpenRooms(filepath.Join(t.TempDir(), "none.hist")); err == nil || !strings.HasSuffix(err.Error(), "none.hist: no such file or directory") {
		t.Error(err)
	}
	if _, err := OpenRooms(t.TempDir()); err == nil || !strings.HasSuffix(err.Error(), ": not a regular file") {
		t.Error(err)
	}
}

func TestWriterLeavesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.hist")
	h := small()
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteGoal(4, walk(h, 4)); err != nil {
		t.Fatal(err)
	}
	broken := walk(h, 5)
	broken[3] ^= 1 << 11
	if err := w.WriteGoal(5, broken); err == nil || !strings.Contains(err.Error(), "goal (2,1), stream 0: transition 3 says") {
		t.Errorf("a stream that breaks the rules: %v", err)
	}
	want := "write history " + path + ": 8 of 9 goals were never written"
	if diff := cmp.Diff(want, text(w.Close())); diff != "" {
		t.Error(diff)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	h.Streams = 0
	if _, err := Create(path, h); err == nil || !strings.Contains(err.Error(), "zero streams") {
		t.Errorf("zero streams: %v", err)
	}
	if _, err := Create(filepath.Join(dir, "none", "a.hist"), small()); err == nil || !strings.HasSuffix(err.Error(), "a.hist: no such file or directory") {
		t.Errorf("no folder: %v", err)
	}
}

func TestWriterTakesGoalsFromManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	h := small()
	path := filepath.Join(dir, "b.hist")
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range h.Goals {
		wg.Go(func() {
			if err := w.WriteGoal(g, walk(h, g)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := os.ReadFile(write(t, dir, h))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("the file depends on the order of writing")
	}
}

// FuzzOpen reads the bytes unchanged, and again with corrected checksums, so that the fuzzer gets
// past them.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(write(f, f.TempDir(), small()))
	if err != nil {
		f.Fatal(err)
	}
	payload, b := taken(f, whole)
	text, err := json.Marshal(b)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, text)
	f.Add(whole[:80], []byte(`{"room":{"size":3,"horizon":4},"goals":[[0,0]],"streams":1,"steps":180}`))
	f.Fuzz(func(t *testing.T, raw, text []byte) {
		limitstest.Reading(t, limitstest.Unpacked(raw)+limitstest.Unpacked(text), func() {
			for _, data := range [][]byte{raw, seal(payload, text)} {
				h, err := parse(data)
				if err != nil {
					continue
				}
				for g := range h.Goals {
					for s := range h.Streams {
						for k := range h.Stream(g, s).Len() {
							if c := h.Stream(g, s).At(k).Cell(); !h.Room.Contains(c) {
								t.Fatalf("goal %d, stream %d: %v lies outside the %v", g, s, c, h.Room)
							}
						}
					}
				}
			}
		}, raw, text)
	})
}

// BenchmarkOpen opens a file of the default size: 81 goals, 100 streams of 1,000 steps.
func BenchmarkOpen(b *testing.B) {
	h := Header{Room: grid.Room{Size: 9, Horizon: 20}, Goals: grid.Room{Size: 9, Horizon: 20}.Goals(), TrainRatio: 0.9, Streams: 100, Steps: 1000}
	path := write(b, b.TempDir(), h)
	b.SetBytes(h.goalBytes() * int64(len(h.Goals)))
	for b.Loop() {
		h, err := OpenRooms(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
