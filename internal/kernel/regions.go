package kernel

import (
	"errors"
	"fmt"
	"slices"

	"haul/internal/rng"
)

// What a reader could break: devices that keep the streams draw the same rows bit for bit as the
// host does, so the draws of a sequence, their order and the order of a token's fields are part of
// every stored result.

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
// The row of global index g has sequences q = 0, 1, ...; sequence q spends the words w of
// Philox(Seed, g, q, Purpose): w0 picks the stream, w1 the previous region's first episode (or the
// only one's), w2 the episodes left out, w3 both lengths. Each is rng.Below the number of what may
// be; w3 is previous·choices + current.
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

// StartsOf returns where a stream's episodes begin, counted from its first record.
func (x *Streams) StartsOf(s *Stream) []uint32 { return x.Starts[s.Start:][:s.Episodes] }

// LastStart returns the last episode that begins at or before a record; -1 if none does.
func LastStart(starts []uint32, record int) int {
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
	starts := x.StartsOf(span)
	if !s.Compressed {
		return LastStart(starts, span.Records-s.Tokens) >= 0
	}
	last := LastStart(starts, span.Records-s.longest())
	return last >= 0 && LastStart(starts, int(starts[last])-s.longest()) >= 0
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
	case 2*s.Episodes(s.longest()) > s.Steps/s.Horizon:
		return fmt.Errorf("two regions of %d transitions do not fit into a stream of %d", s.longest(), s.Steps)
	}
	return nil
}

// Choices returns how many lengths a region can have.
func (s *RegionSpec) Choices() int { return (s.Longest-s.Shortest)/s.Horizon + 1 }

func (s *RegionSpec) longest() int { return s.Shortest + (s.Choices()-1)*s.Horizon }

// Episodes returns how many episodes a region of n transitions touches.
func (s *RegionSpec) Episodes(n int) int { return (n + s.Horizon - 1) / s.Horizon }
