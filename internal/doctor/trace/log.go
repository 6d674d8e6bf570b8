package trace

import (
	"slices"
	"sort"
)

// log is a list that grows without copying what it holds: a trace past memory would not survive the
// moment in which append holds the old list and the new one. Elements are reached by index.
type log[T any] struct {
	chunks [][]T
	n      int
}

const (
	logShift = 12
	logChunk = 1 << logShift
)

func (l *log[T]) Len() int { return l.n }

func (l *log[T]) At(i int) *T { return &l.chunks[i>>logShift][i&(logChunk-1)] }

// Add appends.
func (l *log[T]) Add(v T) {
	switch {
	case l.n == 0 && len(l.chunks) == 0:
		l.chunks = [][]T{{v}}
	case l.n < logChunk && l.n == len(l.chunks[0]): // a short list stays short: threads may be many
		l.chunks[0] = append(l.chunks[0], v)
	default:
		if l.n == len(l.chunks)<<logShift {
			l.chunks = append(l.chunks, make([]T, logChunk))
		}
		*l.At(l.n) = v
	}
	l.n++
}

// cut keeps the first n elements and lets the rest go.
func (l *log[T]) cut(n int) {
	l.n = n
	l.chunks = slices.Clip(l.chunks[:(n+logChunk-1)>>logShift])
}

// order sorts by the comparison. Traces come nearly in order, which sort recognises.
func (l *log[T]) order(less func(a, b *T) bool) {
	if !sort.IsSorted(logOrder[T]{l, less}) {
		sort.Sort(logOrder[T]{l, less})
	}
}

type logOrder[T any] struct {
	*log[T]
	less func(a, b *T) bool
}

func (o logOrder[T]) Len() int { return o.n }

func (o logOrder[T]) Less(i, j int) bool { return o.less(o.At(i), o.At(j)) }

func (o logOrder[T]) Swap(i, j int) { a, b := o.At(i), o.At(j); *a, *b = *b, *a }
