package kernel

import (
	"errors"
	"fmt"
	"slices"

	"haul/internal/rng"
)

// What a reader could break: Row is the one definition of a training sequence. Devices that keep
// the streams draw the same rows bit for bit, so its draws, their order and the order of a token's
// fields are part of every stored result.

// Field is one of a record's bytes, the lowest of its first word being 0: of the record that a
// token stands for or, with Last, of the one before it in its stream; -1 where there is none. What
// it means is the recipe's.
type Field struct {
	Byte int
	Last bool
}

// The types of a token.
const (
	TypeRecord = iota
	TypeStart  // of a region
	TypeEnd    // likewise
	TokenTypes
)

// MaxFields is how many fields of records a token may have. A device may sum fewer.
const MaxFields = 66

// DrawnWords is how many words a record may have where a device draws the rows itself.
const DrawnWords = 4

// RegionSpec says how sequences of tokens are drawn from Streams streams, each of Steps records in
// episodes of Horizon. A record is Record words of four bytes.
//
// A token has the record's Fields, then its type, then its position in its sequence. Compressed, a
// sequence is <start> previous region <end> <start> current region <end>: two stretches of one
// stream, each beginning with an episode and Shortest, Shortest+Horizon, ... or at most Longest
// records long, with 0 to Ahead whole episodes left out between them; the tokens around them are
// markers, which have type and position alone. Otherwise it is Tokens records in a row. Sequences
// fill a row of Tokens tokens end to end; the last is cut off where the row ends.
//
// A record's labels are its Label and the type of the token that follows it in the sequence;
// without compression the second is -1. Markers have none. With Later the first label is another
// byte of the record from some token on.
type RegionSpec struct {
	Streams, Steps, Horizon int
	Record                  int      // words of a record; 0 is 1
	Unequal                 *Streams // where streams and episodes have lengths of their own; else nil
	Tokens                  int      // T, a row's
	Fields                  []Field
	Label                   Field
	Later                   *Later // nil: none
	Compressed              bool
	Shortest, Longest       int
	Ahead                   int
	Seed                    uint64
	Purpose                 rng.Purpose
}

// Later labels a record by its byte Label once a token of its sequence, its own included, has told
// of a record before it whose byte Paid is above 0.
type Later struct{ Paid, Label int }

// Streams are streams of any length in episodes of any length: Streams and Steps of a RegionSpec
// have no meaning then, and Horizon is the step between the lengths of regions alone. A region
// begins with an episode; the current one with an episode that begins at or after the previous
// one's end.
type Streams struct {
	Spans  []Stream
	Starts []uint32 // of episodes, by stream: the first record, counted from the stream's
}

// Stream is one of them.
type Stream struct {
	First    int64 // record
	Records  int
	Episodes int   // that begin in it
	Start    int64 // place of the first one's in Starts
}

// starts are the episodes of a stream.
func (x *Streams) starts(s *Stream) []uint32 { return x.Starts[s.Start:][:s.Episodes] }

// lastStart is the last episode that begins at or before a record; -1 where there is none.
func lastStart(starts []uint32, record int) int {
	if record < 0 {
		return -1
	}
	n, found := slices.BinarySearch(starts, uint32(record))
	if found {
		return n
	}
	return n - 1
}

// Holds tells whether the stream is long enough for any sequence of the spec.
func (s *RegionSpec) Holds(x *Streams, span *Stream) bool {
	starts := x.starts(span)
	if !s.Compressed {
		return lastStart(starts, span.Records-s.Tokens) >= 0
	}
	last := lastStart(starts, span.Records-s.longest())
	return last >= 0 && lastStart(starts, int(starts[last])-s.longest()) >= 0
}

// checkIndex says why no sequence can be drawn from streams of their own lengths.
func (s *RegionSpec) checkIndex() error {
	if len(s.Unequal.Spans) == 0 {
		return errors.New("no streams; at least one is needed")
	}
	for i := range s.Unequal.Spans {
		if !s.Holds(s.Unequal, &s.Unequal.Spans[i]) {
			return fmt.Errorf("stream %d with %d transitions is too short for a sequence", i, s.Unequal.Spans[i].Records)
		}
	}
	return nil
}

// drawIndexed picks a stream and where its regions begin; lengths are given, Tokens and 0 without
// compression.
func (s *RegionSpec) drawIndexed(w [4]uint32, previous, current int) (span *Stream, from0, from1 int) {
	x := s.Unequal
	span = &x.Spans[rng.Below(w[0], uint32(len(x.Spans)))]
	starts := x.starts(span)
	if !s.Compressed {
		e := rng.Below(w[1], uint32(lastStart(starts, span.Records-previous)+1))
		return span, int(starts[e]), 0
	}
	last := lastStart(starts, span.Records-current)
	e := rng.Below(w[1], uint32(lastStart(starts, int(starts[last])-previous)+1))
	next, _ := slices.BinarySearch(starts, starts[e]+uint32(previous))
	gap := int(rng.Below(w[2], uint32(min(s.Ahead, last-next)+1)))
	return span, int(starts[e]), int(starts[next+gap])
}

// Width is how many words a token has: its fields, type and position.
func (s *RegionSpec) Width() int { return len(s.Fields) + 2 }

// Stride is how many words a record has.
func (s *RegionSpec) Stride() int { return max(1, s.Record) }

// Len is how many words the streams have.
func (s *RegionSpec) Len() int {
	if s.Unequal == nil {
		return s.Streams * s.Steps * s.Stride()
	}
	most := int64(0)
	for i := range s.Unequal.Spans {
		most = max(most, s.Unequal.Spans[i].First+int64(s.Unequal.Spans[i].Records))
	}
	return int(most) * s.Stride()
}

// Words are what a row takes: of tokens, labels, and where each token's sequence begins.
func (s *RegionSpec) Words() []int { return []int{s.Tokens * s.Width(), s.Tokens * 2, s.Tokens} }

// Check says in one line why no sequence can be drawn.
func (s *RegionSpec) Check() error {
	all := append([]Field{s.Label}, s.Fields...)
	if s.Later != nil {
		all = append(all, Field{Byte: s.Later.Paid}, Field{Byte: s.Later.Label})
	}
	for _, f := range all {
		if most := 4*s.Stride() - 1; f.Byte < 0 || f.Byte > most {
			return fmt.Errorf("field of byte %d; a record has bytes 0 to %d", f.Byte, most)
		}
	}
	switch {
	case len(s.Fields) > MaxFields:
		return fmt.Errorf("%d fields per record; there is room for %d", len(s.Fields), MaxFields)
	case s.Unequal == nil && s.Streams < 1:
		return fmt.Errorf("%d streams; at least one is needed", s.Streams)
	case s.Horizon < 1 || s.Tokens < 1:
		return fmt.Errorf("horizon %d and %d tokens per row must be at least 1", s.Horizon, s.Tokens)
	case s.Unequal == nil && !s.Compressed && s.Tokens > s.Steps/s.Horizon*s.Horizon:
		return fmt.Errorf("a context of %d transitions is longer than a stream, which has %d", s.Tokens, s.Steps)
	case !s.Compressed && s.Unequal == nil:
		return nil
	case !s.Compressed:
		return s.checkIndex()
	case s.Shortest < 1 || s.Longest < s.Shortest || s.Ahead < 0:
		return fmt.Errorf("regions of %d to %d transitions, %d episodes ahead: want 1 <= shortest <= longest, and not less than 0 ahead", s.Shortest, s.Longest, s.Ahead)
	case s.Unequal != nil:
		return s.checkIndex()
	case 2*s.episodes(s.longest()) > s.Steps/s.Horizon:
		return fmt.Errorf("two regions of %d transitions do not fit into a stream of %d", s.longest(), s.Steps)
	}
	return nil
}

// choices is how many lengths a region can have.
func (s *RegionSpec) choices() int { return (s.Longest-s.Shortest)/s.Horizon + 1 }

func (s *RegionSpec) longest() int { return s.Shortest + (s.choices()-1)*s.Horizon }

// episodes that a region of n transitions touches.
func (s *RegionSpec) episodes(n int) int { return (n + s.Horizon - 1) / s.Horizon }

// Fill makes rows of streams that lie in memory, for whoever fills slabs: parts as Words sizes
// them.
func (s RegionSpec) Fill(streams []int32) (func(g uint64, parts [][]int32) error, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	switch want := s.Len(); {
	case s.Unequal != nil && len(streams) < want:
		return nil, fmt.Errorf("%d words of streams; their index ends at %d", len(streams), want)
	case s.Unequal == nil && len(streams) != want:
		return nil, fmt.Errorf("%d words of streams; %d streams of %d have %d", len(streams), s.Streams, s.Steps, want)
	}
	return func(g uint64, parts [][]int32) error {
		s.Row(parts[0], parts[1], parts[2], streams, g)
		return nil
	}, nil
}

// Row writes the row of global index g: index [Tokens·Width], labels [Tokens·2], first [Tokens].
// Sequence q of the row spends the words w of Philox(Seed, g, q, Purpose): w0 picks the stream, w1
// the previous region's first episode (or the only one's), w2 the episodes left out, w3 both
// lengths.
func (s *RegionSpec) Row(index, labels, first, streams []int32, g uint64) {
	r := rowWriter{spec: s, index: index, labels: labels, first: first}
	each := s.Steps * s.Stride()
	for q := uint32(0); r.at < s.Tokens; q++ {
		w := rng.At(s.Seed, g, q, s.Purpose)
		if s.Unequal != nil {
			r.indexed(streams, w)
			continue
		}
		stream := streams[int(rng.Below(w[0], uint32(s.Streams)))*each:][:each]
		r.begin, r.paid = r.at, false
		all := s.Steps / s.Horizon
		if !s.Compressed {
			from := int(rng.Below(w[1], uint32(all-s.episodes(s.Tokens)+1))) * s.Horizon
			r.region(stream, from, s.Tokens, false)
			continue
		}
		n := s.choices()
		c := int(rng.Below(w[3], uint32(n*n)))
		previous, current := s.Shortest+c/n*s.Horizon, s.Shortest+c%n*s.Horizon
		room := all - s.episodes(previous) - s.episodes(current)
		e := int(rng.Below(w[1], uint32(room+1)))
		gap := int(rng.Below(w[2], uint32(min(s.Ahead, room-e)+1)))
		r.region(stream, e*s.Horizon, previous, true)
		r.region(stream, (e+s.episodes(previous)+gap)*s.Horizon, current, true)
	}
}

// indexed writes a sequence of streams that have lengths of their own.
func (r *rowWriter) indexed(streams []int32, w [4]uint32) {
	s := r.spec
	r.begin, r.paid = r.at, false
	previous, current := s.Tokens, 0
	if s.Compressed {
		n := s.choices()
		c := int(rng.Below(w[3], uint32(n*n)))
		previous, current = s.Shortest+c/n*s.Horizon, s.Shortest+c%n*s.Horizon
	}
	span, from0, from1 := s.drawIndexed(w, previous, current)
	stride := int64(s.Stride())
	stream := streams[span.First*stride:][:int64(span.Records)*stride]
	r.region(stream, from0, previous, s.Compressed)
	if s.Compressed {
		r.region(stream, from1, current, true)
	}
}

// rowWriter fills a row and stops at its end.
type rowWriter struct {
	spec                 *RegionSpec
	index, labels, first []int32
	at                   int
	begin                int  // of the sequence
	paid                 bool // Later's labels hold
}

// region writes a stretch of a stream, field by field, as far as there is room.
func (r *rowWriter) region(stream []int32, from, n int, marked bool) {
	s := r.spec
	if marked {
		r.marker(TypeStart)
	}
	m := min(n, s.Tokens-r.at)
	width, fields := s.Width(), len(s.Fields)
	index, labels, first := r.index[r.at*width:][:m*width], r.labels[r.at*2:][:m*2], r.first[r.at:][:m]
	for i, f := range s.Fields {
		f.write(index, i, width, stream, s.Stride(), from, m)
	}
	s.Label.write(labels, 0, 2, stream, s.Stride(), from, m)
	if s.Later != nil {
		r.relabel(labels, stream, from, m)
	}
	next := int32(-1)
	if marked {
		next = TypeRecord
	}
	for k := range first {
		token := index[k*width+fields:][:2]
		token[0], token[1] = TypeRecord, int32(r.at+k-r.begin)
		labels[2*k+1] = next
		first[k] = int32(r.begin)
	}
	if marked && m == n {
		labels[2*n-1] = TypeEnd
	}
	r.at += m
	if marked {
		r.marker(TypeEnd)
	}
}

// relabel gives the labels of Later to m records from `from` on.
func (r *rowWriter) relabel(labels, stream []int32, from, m int) {
	s, stride := r.spec.Later, r.spec.Stride()
	value := func(record, b int) int32 { return stream[record*stride+b/4] >> (uint(8*b) & 31) & 0xff }
	for k := range m {
		if at := from + k; at > 0 && value(at-1, s.Paid) > 0 {
			r.paid = true
		}
		if r.paid {
			labels[2*k] = value(from+k, s.Label)
		}
	}
}

// write puts the field of m records from `from` on at every width-th word, the first at `at`.
func (f Field) write(to []int32, at, width int, stream []int32, stride, from, m int) {
	if m == 0 {
		return
	}
	if f.Last && from == 0 {
		to[at] = -1
		at, from, m = at+width, 1, m-1
	}
	if f.Last {
		from--
	}
	shift := uint(8*f.Byte) & 31
	if stride == 1 {
		for _, record := range stream[from:][:m] {
			to[at] = record >> shift & 0xff
			at += width
		}
		return
	}
	for word := from*stride + f.Byte/4; m > 0; m-- {
		to[at] = stream[word] >> shift & 0xff
		at, word = at+width, word+stride
	}
}

func (r *rowWriter) marker(kind int32) {
	s, n := r.spec, len(r.spec.Fields)
	if r.at == s.Tokens {
		return
	}
	token := r.index[r.at*(n+2):][:n+2]
	for i := range n {
		token[i] = -1
	}
	token[n], token[n+1] = kind, int32(r.at-r.begin)
	r.labels[2*r.at], r.labels[2*r.at+1] = -1, -1
	r.first[r.at] = int32(r.begin)
	r.at++
}
