package kernel

import (
	"fmt"

	"haul/internal/rng"
)

// What a reader could break: Row is the one definition of a training sequence. Devices that keep the histories draw the
// same rows bit for bit, so its draws, their order and the fields of a token are part of every stored result.

// The fields of a token, by place in Index: the tables that are summed. A marker has type and position alone.
const (
	FieldX = iota
	FieldY
	FieldAction // the last action; -1 at a history's beginning
	FieldReward // the last reward, 0 or 1; likewise
	FieldType
	FieldPosition
	TokenFields
)

// The types of a token.
const (
	TypeTransition = iota
	TypeStart      // <compress>
	TypeEnd        // </compress>
	TokenTypes
)

// RegionSpec says how sequences are drawn from learning histories of Streams streams, each of Steps transitions in episodes of Horizon. A transition is
// x | y<<8 | action<<16 | reward<<24, its x and y those before the action.
//
// Compressed, a sequence is <compress> previous region </compress> <compress> current region </compress>: two stretches of
// one stream, each beginning with an episode and Shortest, Shortest+Horizon, ... or at most Longest transitions long, with 0 to Ahead whole episodes left out
// between them. Otherwise it is Tokens transitions in a row. Sequences fill a row of Tokens tokens end to end; the last is cut off where the row ends.
//
// A transition's labels are its action and the type of the token that follows it in the sequence; without compression the second is -1. Markers have none.
type RegionSpec struct {
	Streams, Steps, Horizon int
	Tokens                  int // T, a row's
	Compressed              bool
	Shortest, Longest       int
	Ahead                   int
	Seed                    uint64
	Purpose                 rng.Purpose
}

// Check says in one line why no sequence can be drawn.
func (s *RegionSpec) Check() error {
	switch {
	case s.Streams < 1:
		return fmt.Errorf("learning histories: %d streams; at least one is needed", s.Streams)
	case s.Horizon < 1 || s.Tokens < 1:
		return fmt.Errorf("learning histories: horizon %d and %d tokens a row must be at least 1", s.Horizon, s.Tokens)
	case !s.Compressed && s.Tokens > s.Steps/s.Horizon*s.Horizon:
		return fmt.Errorf("learning histories: a context of %d transitions is longer than a stream, which has %d", s.Tokens, s.Steps)
	case !s.Compressed:
		return nil
	case s.Shortest < 1 || s.Longest < s.Shortest || s.Ahead < 0:
		return fmt.Errorf("learning histories: regions of %d to %d transitions, %d episodes ahead: want 1 <= shortest <= longest, and not less than 0 ahead", s.Shortest, s.Longest, s.Ahead)
	case 2*s.episodes(s.longest()) > s.Steps/s.Horizon:
		return fmt.Errorf("learning histories: two regions of %d transitions do not fit into a stream of %d", s.longest(), s.Steps)
	}
	return nil
}

// choices is how many lengths a region can have.
func (s *RegionSpec) choices() int { return (s.Longest-s.Shortest)/s.Horizon + 1 }

func (s *RegionSpec) longest() int { return s.Shortest + (s.choices()-1)*s.Horizon }

// episodes that a region of n transitions touches.
func (s *RegionSpec) episodes(n int) int { return (n + s.Horizon - 1) / s.Horizon }

// Row writes the row of global index g: index [Tokens·TokenFields], labels [Tokens·2], first [Tokens]. Sequence q of the row spends
// the words w of Philox(Seed, g, q, Purpose): w0 picks the stream, w1 the previous region's first episode (or the only one's), w2 the episodes left out, w3 both lengths.
func (s *RegionSpec) Row(index, labels, first, history []int32, g uint64) {
	r := rowWriter{index: index, labels: labels, first: first, tokens: s.Tokens}
	for q := uint32(0); r.at < s.Tokens; q++ {
		w := rng.At(s.Seed, g, q, s.Purpose)
		stream := history[int(rng.Below(w[0], uint32(s.Streams)))*s.Steps:][:s.Steps]
		r.begin = r.at
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

// rowWriter fills a row and stops at its end.
type rowWriter struct {
	index, labels, first []int32
	tokens, at           int
	begin                int // of the sequence
}

func (r *rowWriter) region(stream []int32, from, n int, marked bool) {
	if marked {
		r.token(-1, -1, -1, -1, TypeStart, -1, -1)
	}
	for t := from; t < from+n; t++ {
		h, action, reward := stream[t], int32(-1), int32(-1)
		if t > 0 {
			action, reward = stream[t-1]>>16&0xff, stream[t-1]>>24
		}
		next := int32(-1)
		if marked {
			next = TypeTransition
			if t == from+n-1 {
				next = TypeEnd
			}
		}
		r.token(h&0xff, h>>8&0xff, action, reward, TypeTransition, h>>16&0xff, next)
	}
	if marked {
		r.token(-1, -1, -1, -1, TypeEnd, -1, -1)
	}
}

func (r *rowWriter) token(x, y, action, reward, kind, act, next int32) {
	if r.at == r.tokens {
		return
	}
	copy(r.index[r.at*TokenFields:], []int32{x, y, action, reward, kind, int32(r.at - r.begin)})
	r.labels[2*r.at], r.labels[2*r.at+1] = act, next
	r.first[r.at] = int32(r.begin)
	r.at++
}
