package reference

import (
	"haul/internal/kernel"
	"haul/internal/rng"
)

// Row writes the row of global index g as kernel.RegionSpec defines it: index has the words of each
// token, labels two for each, first the place where each token's sequence begins. It makes whole
// sequences, one after the other, until the row is full, and cuts the last.
func Row(s *kernel.RegionSpec, index, labels, first, streams []int32, g uint64) {
	width := len(s.Fields) + 2
	for q, at := uint32(0), 0; at < s.Tokens; q++ {
		begin := at
		for k, token := range sequence(s, streams, rng.At(s.Seed, g, q, s.Purpose)) {
			if at == s.Tokens {
				return
			}
			copy(index[at*width:], token.fields)
			index[at*width+width-2], index[at*width+width-1] = token.kind, int32(k)
			labels[2*at], labels[2*at+1] = token.label, token.next
			first[at] = int32(begin)
			at++
		}
	}
}

// token is one of a sequence, without its position.
type token struct {
	fields      []int32
	kind        int32
	label, next int32 // -1: none
}

// sequence is a whole one, drawn by the words w.
func sequence(s *kernel.RegionSpec, streams []int32, w [4]uint32) (out []token) {
	lengths := 1 // that a region may have: Shortest, Shortest+Horizon, ...
	for s.Shortest+lengths*s.Horizon <= s.Longest {
		lengths++
	}
	both := int(rng.Below(w[3], uint32(lengths*lengths)))
	previous, current := s.Shortest+both/lengths*s.Horizon, s.Shortest+both%lengths*s.Horizon
	if !s.Compressed {
		previous = s.Tokens
	}
	// the stream, and where its episodes begin
	var stream []int32
	var begins []int
	stride := max(1, s.Record)
	if s.Unequal == nil {
		at := int(rng.Below(w[0], uint32(s.Streams))) * s.Steps * stride
		stream = streams[at : at+s.Steps*stride]
		for t := 0; t+s.Horizon <= s.Steps; t += s.Horizon {
			begins = append(begins, t)
		}
	} else {
		span := s.Unequal.Spans[rng.Below(w[0], uint32(len(s.Unequal.Spans)))]
		stream = streams[span.First*int64(stride) : (span.First+int64(span.Records))*int64(stride)]
		for e := range span.Episodes {
			begins = append(begins, int(s.Unequal.Starts[span.Start+int64(e)]))
		}
	}
	records := len(stream) / stride
	if s.Unequal == nil { // whole episodes alone
		records = records / s.Horizon * s.Horizon
	}
	// an episode from which n records, or the episodes that they touch, end at or before `end`
	last := func(n, end int) (e int) {
		if s.Unequal == nil {
			n = (n + s.Horizon - 1) / s.Horizon * s.Horizon
		}
		e = -1
		for i, begin := range begins {
			if begin+n <= end {
				e = i
			}
		}
		return e
	}
	paid := false
	if !s.Compressed {
		e := int(rng.Below(w[1], uint32(last(previous, records)+1)))
		return region(s, stream, begins[e], previous, &paid, -1)
	}
	final := last(current, records) // the last episode in which the current region may begin
	e := int(rng.Below(w[1], uint32(last(previous, begins[final])+1)))
	next := e // the first episode at or after the previous region's end
	for begins[next] < begins[e]+previous {
		next++
	}
	next += int(rng.Below(w[2], uint32(min(s.Ahead, final-next)+1)))
	for _, stretch := range [][2]int{{begins[e], previous}, {begins[next], current}} {
		out = append(out, marker(s, kernel.TypeStart))
		own := region(s, stream, stretch[0], stretch[1], &paid, kernel.TypeRecord)
		own[len(own)-1].next = kernel.TypeEnd
		out = append(append(out, own...), marker(s, kernel.TypeEnd))
	}
	return out
}

// marker is a token that stands for no record.
func marker(s *kernel.RegionSpec, kind int32) token {
	t := token{kind: kind, label: -1, next: -1}
	for range s.Fields {
		t.fields = append(t.fields, -1)
	}
	return t
}

// region is n records of a stream. paid says that a record before one of the sequence's has paid.
func region(s *kernel.RegionSpec, stream []int32, from, n int, paid *bool, next int32) (out []token) {
	stride := max(1, s.Record)
	value := func(record, b int) int32 { return stream[record*stride+b/4] >> (b % 4 * 8) & 0xff }
	of := func(f kernel.Field, record int) int32 {
		if f.Last {
			record--
		}
		if record < 0 {
			return -1
		}
		return value(record, f.Byte)
	}
	for record := from; record < from+n; record++ {
		t := token{kind: kernel.TypeRecord, label: of(s.Label, record), next: next}
		for _, f := range s.Fields {
			t.fields = append(t.fields, of(f, record))
		}
		if s.Later != nil {
			*paid = *paid || record > 0 && value(record-1, s.Later.Paid) > 0
			if *paid {
				t.label = value(record, s.Later.Label)
			}
		}
		out = append(out, t)
	}
	return out
}
