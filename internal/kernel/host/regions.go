package host

import (
	"fmt"
	"slices"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// drawIndexed picks a stream and where its regions begin; lengths are given, Tokens and 0 without
// compression.
func drawIndexed(s *kernel.RegionSpec, w [4]uint32, previous, current int) (span *kernel.Stream, from0, from1 int) {
	x := s.Unequal
	span = &x.Spans[rng.Below(w[0], uint32(len(x.Spans)))]
	starts := x.StartsOf(span)
	if !s.Compressed {
		e := rng.Below(w[1], uint32(kernel.LastStart(starts, span.Records-previous)+1))
		return span, int(starts[e]), 0
	}
	last := kernel.LastStart(starts, span.Records-current)
	e := rng.Below(w[1], uint32(kernel.LastStart(starts, int(starts[last])-previous)+1))
	next, _ := slices.BinarySearch(starts, starts[e]+uint32(previous))
	gap := int(rng.Below(w[2], uint32(min(s.Ahead, last-next)+1)))
	return span, int(starts[e]), int(starts[next+gap])
}

// Fill makes rows of streams that lie in memory, for whoever fills slabs: parts as Words sizes
// them.
func Fill(s kernel.RegionSpec, streams []int32) (func(g uint64, parts [][]int32) error, error) {
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
		Row(&s, parts[0], parts[1], parts[2], streams, g)
		return nil
	}, nil
}

// Row writes the row of global index g: index [Tokens·Width], labels [Tokens·2], first [Tokens].
// Sequence q of the row spends the words w of Philox(Seed, g, q, Purpose): w0 picks the stream, w1
// the previous region's first episode (or the only one's), w2 the episodes left out, w3 both
// lengths.
func Row(s *kernel.RegionSpec, index, labels, first, streams []int32, g uint64) {
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
			from := int(rng.Below(w[1], uint32(all-s.Episodes(s.Tokens)+1))) * s.Horizon
			r.region(stream, from, s.Tokens, false)
			continue
		}
		n := s.Choices()
		c := int(rng.Below(w[3], uint32(n*n)))
		previous, current := s.Shortest+c/n*s.Horizon, s.Shortest+c%n*s.Horizon
		room := all - s.Episodes(previous) - s.Episodes(current)
		e := int(rng.Below(w[1], uint32(room+1)))
		gap := int(rng.Below(w[2], uint32(min(s.Ahead, room-e)+1)))
		r.region(stream, e*s.Horizon, previous, true)
		r.region(stream, (e+s.Episodes(previous)+gap)*s.Horizon, current, true)
	}
}

// indexed writes a sequence of streams that have lengths of their own.
func (r *rowWriter) indexed(streams []int32, w [4]uint32) {
	s := r.spec
	r.begin, r.paid = r.at, false
	previous, current := s.Tokens, 0
	if s.Compressed {
		n := s.Choices()
		c := int(rng.Below(w[3], uint32(n*n)))
		previous, current = s.Shortest+c/n*s.Horizon, s.Shortest+c%n*s.Horizon
	}
	span, from0, from1 := drawIndexed(s, w, previous, current)
	stride := int64(s.Stride())
	stream := streams[span.First*stride:][:int64(span.Records)*stride]
	r.region(stream, from0, previous, s.Compressed)
	if s.Compressed {
		r.region(stream, from1, current, true)
	}
}

// rowWriter fills a row and stops at its end.
type rowWriter struct {
	spec                 *kernel.RegionSpec
	index, labels, first []int32
	at                   int
	begin                int  // of the sequence
	paid                 bool // Later's labels hold
}

// region writes a stretch of a stream, field by field, as far as there is room.
func (r *rowWriter) region(stream []int32, from, n int, marked bool) {
	s := r.spec
	if marked {
		r.marker(kernel.TypeStart)
	}
	m := min(n, s.Tokens-r.at)
	width, fields := s.Width(), len(s.Fields)
	index, labels, first := r.index[r.at*width:][:m*width], r.labels[r.at*2:][:m*2], r.first[r.at:][:m]
	for i, f := range s.Fields {
		write(f, index, i, width, stream, s.Stride(), from, m)
	}
	write(s.Label, labels, 0, 2, stream, s.Stride(), from, m)
	if s.Later != nil {
		r.relabel(labels, stream, from, m)
	}
	next := int32(-1)
	if marked {
		next = kernel.TypeRecord
	}
	for k := range first {
		token := index[k*width+fields:][:2]
		token[0], token[1] = kernel.TypeRecord, int32(r.at+k-r.begin)
		labels[2*k+1] = next
		first[k] = int32(r.begin)
	}
	if marked && m == n {
		labels[2*n-1] = kernel.TypeEnd
	}
	r.at += m
	if marked {
		r.marker(kernel.TypeEnd)
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
func write(f kernel.Field, to []int32, at, width int, stream []int32, stride, from, m int) {
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
