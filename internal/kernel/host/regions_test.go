package host_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
)

// The fields of these tests' tokens, by place.
const (
	fieldX = iota
	fieldY
	fieldAction
	fieldReward
	fieldType
	fieldPosition
	tokenFields
)

// fields are of the records that traceable makes: two bytes of the record, two of the one before
// it.
func fields(s kernel.RegionSpec) kernel.RegionSpec {
	s.Fields, s.Label = []kernel.Field{{Byte: 0}, {Byte: 1}, {Byte: 2, Last: true}, {Byte: 3, Last: true}}, kernel.Field{Byte: 2}
	return s
}

// drawSpec draws a spec that Check accepts.
func drawSpec(t *rapid.T) kernel.RegionSpec {
	s := fields(kernel.RegionSpec{
		Streams: rapid.IntRange(1, 5).Draw(t, "streams"), Steps: rapid.IntRange(1, 120).Draw(t, "steps"), Horizon: rapid.IntRange(1, 9).Draw(t, "horizon"),
		Tokens: rapid.IntRange(1, 90).Draw(t, "tokens"), Compressed: rapid.Bool().Draw(t, "compressed"), Shortest: rapid.IntRange(1, 12).Draw(t, "shortest"),
		Ahead: rapid.IntRange(0, 6).Draw(t, "ahead"), Seed: rapid.Uint64().Draw(t, "seed"), Purpose: rng.Regions,
	})
	s.Longest = s.Shortest + rapid.IntRange(0, 30).Draw(t, "more")
	if s.Check() != nil {
		t.Skip("no sequence can be drawn")
	}
	return s
}

// traceable histories tell every transition apart: x and y count the steps of a stream, the action
// is its own, the reward its parity.
func traceable(s *kernel.RegionSpec) []int32 {
	out := make([]int32, s.Streams*s.Steps)
	for i := range out {
		stream, step := int32(i/s.Steps), int32(i%s.Steps)
		out[i] = step&0xff | stream<<8 | (step*7+stream)%5<<16 | step%2<<24
	}
	return out
}

type row struct{ index, labels, first []int32 }

func newRow(tokens int) row {
	return row{make([]int32, tokens*tokenFields), make([]int32, tokens*2), make([]int32, tokens)}
}

func (r row) token(i int) []int32 { return r.index[i*tokenFields:][:tokenFields] }

// TestRowIsWhatTheSpecSays reads every row back and compares it with the history it came from.
func TestRowIsWhatTheSpecSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		history, r := traceable(&s), newRow(s.Tokens)
		for _, all := range [][]int32{r.index, r.labels, r.first} {
			for i := range all {
				all[i] = -77 // nothing may be left of it
			}
		}
		host.Row(&s, r.index, r.labels, r.first, history, rapid.Uint64().Draw(t, "row"))
		if slices.Contains(r.index, -77) || slices.Contains(r.labels, -77) || slices.Contains(r.first, -77) {
			t.Fatalf("the row is not full: %v", r)
		}
		for from := 0; from < s.Tokens; {
			to := from
			for to < s.Tokens && int(r.first[to]) == from {
				if position := r.token(to)[fieldPosition]; int(position) != to-from {
					t.Fatalf("token %d of the sequence from %d has position %d", to, from, position)
				}
				to++
			}
			if to == from {
				t.Fatalf("token %d begins no sequence and belongs to none: %v", from, r.first)
			}
			readSequence(t, &s, history, r, from, to)
			from = to
		}
	})
}

// stretch is a region as it was read back; whole says that its end was not cut off.
type stretch struct {
	stream, at, n int
	whole         bool
}

func readSequence(t *rapid.T, s *kernel.RegionSpec, history []int32, r row, from, to int) {
	var regions []stretch
	open := false
	for i := from; i < to; i++ {
		token, action, next := r.token(i), r.labels[2*i], r.labels[2*i+1]
		if token[fieldType] != kernel.TypeRecord {
			if !s.Compressed || slices.Max(token[:fieldType]) != -1 || action != -1 || next != -1 {
				t.Fatalf("marker %v with labels %d, %d", token, action, next)
			}
			if start := token[fieldType] == kernel.TypeStart; start == open {
				t.Fatalf("token %d: a region within a region, or an end without one", i)
			}
			if open = !open; open {
				regions = append(regions, stretch{stream: -1})
			} else {
				regions[len(regions)-1].whole = true
			}
			continue
		}
		if !s.Compressed && len(regions) == 0 {
			regions = append(regions, stretch{stream: -1})
		} else if s.Compressed && !open {
			t.Fatalf("token %d: a transition outside of a region", i)
		}
		g := &regions[len(regions)-1]
		stream, step := int(token[fieldY]), int(token[fieldX])
		if g.n == 0 {
			g.stream, g.at = stream, step
		}
		if stream != g.stream || step != g.at+g.n {
			t.Fatalf("token %d is step %d of stream %d, in a region from step %d of stream %d", i, step, stream, g.at, g.stream)
		}
		g.n++
		checkTransition(t, s, history, r, i, to, stream, step)
	}
	checkRegions(t, s, regions, to == s.Tokens)
}

func checkTransition(t *rapid.T, s *kernel.RegionSpec, history []int32, r row, i, to, stream, step int) {
	token, at := r.token(i), stream*s.Steps+step
	lastAction, lastReward := int32(-1), int32(-1)
	if step > 0 {
		lastAction, lastReward = history[at-1]>>16&0xff, history[at-1]>>24
	}
	if token[fieldAction] != lastAction || token[fieldReward] != lastReward {
		t.Fatalf("token %d: last action %d and reward %d, the history has %d and %d", i, token[fieldAction], token[fieldReward], lastAction, lastReward)
	}
	if want := history[at] >> 16 & 0xff; r.labels[2*i] != want {
		t.Fatalf("token %d: action label %d, the history has %d", i, r.labels[2*i], want)
	}
	next := r.labels[2*i+1]
	switch {
	case !s.Compressed && next != -1:
		t.Fatalf("token %d: type label %d without compression", i, next)
	case s.Compressed && i+1 < to && next != r.token(i + 1)[fieldType]:
		t.Fatalf("token %d: type label %d, a %d follows", i, next, r.token(i + 1)[fieldType])
	case s.Compressed && next != kernel.TypeRecord && next != kernel.TypeEnd:
		t.Fatalf("token %d: type label %d", i, next)
	}
}

// checkRegions holds a sequence's regions to the spec; the last of a row may be cut off.
func checkRegions(t *rapid.T, s *kernel.RegionSpec, regions []stretch, last bool) {
	wanted := 1
	if s.Compressed {
		wanted = 2
	}
	if len(regions) > wanted || len(regions) < wanted && !last {
		t.Fatalf("%d regions in a sequence, want %d: %+v", len(regions), wanted, regions)
	}
	for k, g := range regions {
		switch {
		case g.n == 0 && !last:
			t.Fatalf("an empty region: %+v", regions)
		case g.n == 0:
			continue
		case g.at%s.Horizon != 0 || g.at+g.n > s.Steps || g.stream >= s.Streams:
			t.Fatalf("region %+v does not begin with an episode or leaves its stream", g)
		case s.Compressed && g.whole && (g.n < s.Shortest || g.n > s.Longest || (g.n-s.Shortest)%s.Horizon != 0):
			t.Fatalf("region %+v: want %d to %d transitions in steps of %d", g, s.Shortest, s.Longest, s.Horizon)
		case s.Compressed && !g.whole && (!last || k != len(regions)-1):
			t.Fatalf("region %+v has no end", g)
		case k == 1:
			before := regions[0]
			gap := g.at/s.Horizon - (before.at+before.n+s.Horizon-1)/s.Horizon
			if g.stream != before.stream || gap < 0 || gap > s.Ahead {
				t.Fatalf("region %+v after %+v: want the same stream and 0 to %d episodes between", g, before, s.Ahead)
			}
		}
	}
}

// TestEveryChoiceIsDrawn: all lengths, gaps, streams and first episodes come up.
func TestEveryChoiceIsDrawn(t *testing.T) {
	s := fields(kernel.RegionSpec{Streams: 3, Steps: 12, Horizon: 2, Tokens: 40, Compressed: true, Shortest: 2, Longest: 5, Ahead: 2, Seed: 1, Purpose: rng.Regions})
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	history, r := traceable(&s), newRow(s.Tokens)
	type choice struct{ stream, at, previous, next, current int32 }
	seen := map[choice]bool{}
	for g := range uint64(4000) {
		host.Row(&s, r.index, r.labels, r.first, history, g)
		end := slices.IndexFunc(r.first, func(f int32) bool { return f > 0 })
		var starts []int
		for i := range end {
			if r.token(i)[fieldType] == kernel.TypeStart {
				starts = append(starts, i)
			}
		}
		a, b := r.token(starts[0]+1), r.token(starts[1]+1)
		seen[choice{a[fieldY], a[fieldX], int32(starts[1] - 2), b[fieldX], int32(end - starts[1] - 2)}] = true
	}
	// Regions of 1 or 2 episodes among 6: for each pair of lengths, each first episode, each gap of at
	// most 2.
	want := 0
	for previous := 1; previous <= 2; previous++ {
		for current := 1; current <= 2; current++ {
			for e := 0; e+previous+current <= 6; e++ {
				want += s.Streams * (min(s.Ahead, 6-e-previous-current) + 1)
			}
		}
	}
	if len(seen) != want {
		t.Errorf("%d choices came up in 4,000 rows, want all %d", len(seen), want)
	}
}

// TestRowStandsAlone: a row is a function of its index, whatever was drawn before it, and takes no
// memory.
func TestRowStandsAlone(t *testing.T) {
	s := fields(kernel.RegionSpec{Streams: 3, Steps: 200, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 20, Longest: 80, Ahead: 1, Seed: 5, Purpose: rng.Regions})
	history, a, b := traceable(&s), newRow(s.Tokens), newRow(s.Tokens)
	var forward [][]int32
	for g := range uint64(20) {
		host.Row(&s, a.index, a.labels, a.first, history, g)
		forward = append(forward, slices.Concat(a.index, a.labels, a.first))
	}
	for g := 19; g >= 0; g-- {
		host.Row(&s, b.index, b.labels, b.first, history, uint64(g))
		if !slices.Equal(slices.Concat(b.index, b.labels, b.first), forward[g]) {
			t.Fatalf("row %d differs when drawn in another order", g)
		}
	}
	if slices.Equal(forward[0], forward[1]) {
		t.Error("rows 0 and 1 are equal")
	}
	if n := testing.AllocsPerRun(10, func() { host.Row(&s, a.index, a.labels, a.first, history, 3) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

// TestFieldsAreData: whichever bytes a spec names, in whatever order, are the words of its tokens.
func TestFieldsAreData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		field := rapid.Custom(func(t *rapid.T) kernel.Field {
			return kernel.Field{Byte: rapid.IntRange(0, 3).Draw(t, "byte"), Last: rapid.Bool().Draw(t, "last")}
		})
		s.Fields, s.Label = rapid.SliceOfN(field, 0, kernel.MaxFields).Draw(t, "fields"), field.Draw(t, "label")
		plain := fields(s)
		history, g := traceable(&s), rapid.Uint64().Draw(t, "row")
		want, width := newRow(s.Tokens), s.Width()
		host.Row(&plain, want.index, want.labels, want.first, history, g)
		got := row{make([]int32, s.Tokens*width), make([]int32, s.Tokens*2), make([]int32, s.Tokens)}
		host.Row(&s, got.index, got.labels, got.first, history, g)
		if !slices.Equal(got.first, want.first) {
			t.Fatalf("the sequences begin at %v, with other fields at %v", got.first, want.first)
		}
		for i := range s.Tokens {
			token, known := got.index[i*width:][:width], want.token(i)
			if !slices.Equal(token[len(s.Fields):], known[fieldType:]) || got.labels[2*i+1] != want.labels[2*i+1] {
				t.Fatalf("token %d: %v, with other fields %v", i, token, known)
			}
			of := func(f kernel.Field) int32 {
				if known[fieldType] != kernel.TypeRecord {
					return -1
				}
				stream, step := int(known[fieldY]), int(known[fieldX])
				if f.Last {
					step--
				}
				if step < 0 {
					return -1
				}
				return history[stream*s.Steps+step] >> (8 * f.Byte) & 0xff
			}
			for k, f := range s.Fields {
				if token[k] != of(f) {
					t.Fatalf("token %d, field %+v is %d, want %d", i, f, token[k], of(f))
				}
			}
			if got.labels[2*i] != of(s.Label) {
				t.Fatalf("token %d, label %+v is %d, want %d", i, s.Label, got.labels[2*i], of(s.Label))
			}
		}
	})
}

func TestRegionSpecCheck(t *testing.T) {
	good := fields(kernel.RegionSpec{Streams: 1, Steps: 100, Horizon: 10, Tokens: 50, Compressed: true, Shortest: 20, Longest: 50})
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Fill(good, make([]int32, 99)); err == nil || !strings.Contains(err.Error(), "99 words of streams; 1 streams of 100 have 100") {
		t.Errorf("a stream that is too short: %v", err)
	}
	for want, spoil := range map[string]func(s *kernel.RegionSpec){
		"byte 4":                              func(s *kernel.RegionSpec) { s.Label.Byte = 4 },
		"67 fields":                           func(s *kernel.RegionSpec) { s.Fields = make([]kernel.Field, 67) },
		"byte 12; a record has bytes 0 to 11": func(s *kernel.RegionSpec) { s.Record, s.Fields = 3, []kernel.Field{{Byte: 12}} },
		"0 streams":                           func(s *kernel.RegionSpec) { s.Streams = 0 },
		"horizon 0 and 50 tokens":             func(s *kernel.RegionSpec) { s.Horizon = 0 },
		"horizon 10 and 0 tokens":             func(s *kernel.RegionSpec) { s.Tokens = 0 },
		"a context of 101 transitions":        func(s *kernel.RegionSpec) { s.Compressed, s.Tokens = false, 101 },
		"regions of 0 to 50 transitions":      func(s *kernel.RegionSpec) { s.Shortest = 0 },
		"regions of 20 to 19 transitions":     func(s *kernel.RegionSpec) { s.Longest = 19 },
		"-1 episodes ahead":                   func(s *kernel.RegionSpec) { s.Ahead = -1 },
		"two regions of 60 transitions":       func(s *kernel.RegionSpec) { s.Longest = 69 },
		"do not fit into a stream of 99":      func(s *kernel.RegionSpec) { s.Steps = 99 },
		"longer than a stream, which has 99":  func(s *kernel.RegionSpec) { s.Compressed, s.Tokens, s.Steps = false, 91, 99 },
		"a context of 1000":                   func(s *kernel.RegionSpec) { s.Compressed, s.Tokens = false, 1000 },
	} {
		s := good
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want one line with %q", s, err, want)
		}
	}
}

// TestRecordsOfManyWords: a row does not depend on how many words a record has, only on its bytes.
func TestRecordsOfManyWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		narrow, g := traceable(&s), rapid.Uint64().Draw(t, "row")
		want := newRow(s.Tokens)
		host.Row(&s, want.index, want.labels, want.first, narrow, g)
		wide := s
		wide.Record = rapid.IntRange(2, 17).Draw(t, "words")
		at := rapid.IntRange(0, 4*wide.Record-4).Draw(t, "first byte")
		wide.Fields, wide.Label = nil, kernel.Field{Byte: at + s.Label.Byte}
		for _, f := range s.Fields {
			wide.Fields = append(wide.Fields, kernel.Field{Byte: at + f.Byte, Last: f.Last})
		}
		words := make([]int32, wide.Len())
		for i := range words {
			words[i] = -1
		}
		for i, record := range narrow {
			for b := range 4 {
				to, shift := &words[i*wide.Record+(at+b)/4], (at+b)%4*8
				*to = *to&^(0xff<<shift) | record>>(8*b)&0xff<<shift
			}
		}
		if err := wide.Check(); err != nil {
			t.Fatal(err)
		}
		got := newRow(s.Tokens)
		host.Row(&wide, got.index, got.labels, got.first, words, g)
		if !slices.Equal(got.index, want.index) || !slices.Equal(got.labels, want.labels) || !slices.Equal(got.first, want.first) {
			t.Fatalf("records of %d words from byte %d on: %v, want %v", wide.Record, at, got, want)
		}
	})
}

// TestUnequalStreamsThatAreEqual: where streams and episodes are equal an index of them draws the
// same rows.
func TestUnequalStreamsThatAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.Shortest = (s.Shortest + s.Horizon - 1) / s.Horizon * s.Horizon // whole episodes, as both ways count
		s.Longest = max(s.Longest, s.Shortest)
		if s.Check() != nil {
			t.Skip("no sequence can be drawn")
		}
		g := rapid.Uint64().Draw(t, "row")
		x := &kernel.Streams{}
		for i := range s.Streams {
			span := kernel.Stream{First: int64(i * s.Steps), Records: s.Steps / s.Horizon * s.Horizon, Start: int64(len(x.Starts))}
			for at := 0; at+s.Horizon <= s.Steps; at += s.Horizon {
				x.Starts = append(x.Starts, uint32(at))
				span.Episodes++
			}
			x.Spans = append(x.Spans, span)
		}
		indexed := s
		indexed.Unequal = x
		if err := indexed.Check(); err != nil {
			t.Fatal(err)
		}
		want, got := newRow(s.Tokens), newRow(s.Tokens)
		host.Row(&s, want.index, want.labels, want.first, traceable(&s), g)
		host.Row(&indexed, got.index, got.labels, got.first, traceable(&s), g)
		if !slices.Equal(got.index, want.index) || !slices.Equal(got.labels, want.labels) || !slices.Equal(got.first, want.first) {
			t.Fatalf("%+v: %v, want %v", s, got, want)
		}
	})
}

// TestUnequalEpisodes reads rows back: the records count their stream's steps, and tell where a
// region begins.
func TestUnequalEpisodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fields(kernel.RegionSpec{Horizon: rapid.IntRange(1, 4).Draw(t, "step"), Tokens: rapid.IntRange(1, 60).Draw(t, "tokens"), Compressed: rapid.Bool().Draw(t, "compressed"),
			Shortest: rapid.IntRange(1, 6).Draw(t, "shortest"), Ahead: rapid.IntRange(0, 5).Draw(t, "ahead"), Seed: rapid.Uint64().Draw(t, "seed"), Purpose: rng.Regions})
		s.Longest = s.Shortest + rapid.IntRange(0, 9).Draw(t, "more")
		x, words := &kernel.Streams{}, []int32(nil)
		begins := map[[2]int32]bool{}
		for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
			span := kernel.Stream{First: int64(len(words)), Start: int64(len(x.Starts)), Records: rapid.IntRange(1, 150).Draw(t, "records")}
			for at := 0; at < span.Records; at += rapid.IntRange(1, 20).Draw(t, "episode") {
				x.Starts = append(x.Starts, uint32(at))
				begins[[2]int32{int32(i), int32(at)}] = true
				span.Episodes++
			}
			for step := range span.Records {
				words = append(words, int32(step|i<<8|step%5<<16|step%2<<24))
			}
			if s.Holds(x, &span) {
				x.Spans = append(x.Spans, span)
			}
		}
		if s.Unequal = x; s.Check() != nil {
			t.Skip("no stream is long enough")
		}
		r := newRow(s.Tokens)
		host.Row(&s, r.index, r.labels, r.first, words, rapid.Uint64().Draw(t, "row"))
		last := int32(-1) // of the region before, in its sequence
		for i := range s.Tokens {
			token := r.token(i)
			if token[fieldType] != kernel.TypeRecord {
				continue
			}
			if token[fieldPosition] <= 1 {
				last = -1
			}
			begin := r.first[i] == int32(i) || r.index[(i-1)*tokenFields+fieldType] != kernel.TypeRecord
			switch step := token[fieldX]; {
			case begin && !begins[[2]int32{token[fieldY], step}]:
				t.Fatalf("token %d: a region begins at step %d of stream %d, where no episode does", i, step, token[fieldY])
			case begin && step <= last:
				t.Fatalf("token %d: a region begins at step %d, before the end of the one before it, %d", i, step, last)
			case !begin && step != r.index[(i-1)*tokenFields+fieldX]+1:
				t.Fatalf("token %d: step %d follows %d", i, step, r.index[(i-1)*tokenFields+fieldX])
			}
			last = token[fieldX]
		}
	})
}

// TestLaterLabels: from the token on that tells of a reward a sequence's labels are another byte,
// and everything else stays as it was.
func TestLaterLabels(t *testing.T) {
	changed := false
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		records, g := traceable(&s), rapid.Uint64().Draw(t, "row")
		seldom := rapid.Int32Range(1, 60).Draw(t, "one of so many pays")
		for i := range records {
			records[i] &= 0xffffff
			if int32(rng.At(s.Seed, uint64(i), 0, rng.Learner)[0]%60) < 60/seldom {
				records[i] |= 1 << 24
			}
		}
		plain, got := newRow(s.Tokens), newRow(s.Tokens)
		host.Row(&s, plain.index, plain.labels, plain.first, records, g)
		s.Later = &kernel.Later{Paid: 3, Label: 0}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		host.Row(&s, got.index, got.labels, got.first, records, g)
		want := slices.Clone(plain.labels)
		paid := false
		for i := range s.Tokens {
			token := plain.index[i*tokenFields:][:tokenFields]
			paid = paid && int(plain.first[i]) != i || token[fieldReward] > 0
			if paid && token[fieldType] == kernel.TypeRecord {
				changed = changed || want[2*i] != token[fieldX]
				want[2*i] = token[fieldX]
			}
		}
		if !slices.Equal(got.labels, want) || !slices.Equal(got.index, plain.index) || !slices.Equal(got.first, plain.first) {
			t.Fatalf("labels %v, want %v", got.labels, want)
		}
	})
	if !changed {
		t.Error("no label was another")
	}
	for _, bad := range []kernel.Later{{Paid: 4}, {Label: -1}} {
		s := fields(kernel.RegionSpec{Streams: 1, Steps: 8, Horizon: 2, Tokens: 4, Later: &bad})
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "a record has bytes 0 to 3") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestRowsAgreeWithTheReference: the reference's plain loop writes the same rows.
func TestRowsAgreeWithTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		if rapid.Bool().Draw(t, "later") {
			s.Later = &kernel.Later{Paid: 3, Label: 0}
		}
		got, want, g := newRow(s.Tokens), newRow(s.Tokens), rapid.Uint64().Draw(t, "row")
		host.Row(&s, got.index, got.labels, got.first, traceable(&s), g)
		reference.Row(&s, want.index, want.labels, want.first, traceable(&s), g)
		if !slices.Equal(got.index, want.index) || !slices.Equal(got.labels, want.labels) || !slices.Equal(got.first, want.first) {
			t.Fatalf("row %d of %+v: %v, want %v", g, s, got, want)
		}
	})
}
