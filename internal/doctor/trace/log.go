package trace

import (
	"slices"
	"sort"
)

// log is a list that grows without copying its elements. Traces may need most of the memory, in
// which append could not hold the old and the new list at once. Elements are accessed by index.
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

// Add appends v.
func (l *log[T]) Add(v T) {
	switch {
	case l.n == 0 && len(l.chunks) == 0:
		l.chunks = [][]T{{v}}
	case l.n < logChunk && l.n == len(l.chunks[0]): // the first chunk grows slowly, because there may be many threads
		l.chunks[0] = append(l.chunks[0], v)
	default:
		if l.n == len(l.chunks)<<logShift {
			l.chunks = append(l.chunks, make([]T, logChunk))
		}
		*l.At(l.n) = v
	}
	l.n++
}

// cut keeps the first n elements and frees the others.
func (l *log[T]) cut(n int) {
	l.n = n
	l.chunks = slices.Clip(l.chunks[:(n+logChunk-1)>>logShift])
}

// order sorts by less. Traces are almost sorted, which the sort makes use of.
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
