package parse

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// Error is a mistake in a problem file: where, what is wrong, and what to write instead.
type Error struct {
	Pos    token.Position
	Text   string
	Remedy string // may be empty
}

// Error returns file, line and column, the mistake, and the remedy.
func (e *Error) Error() string {
	s := e.Text
	if e.Pos.IsValid() {
		s = e.Pos.String() + ": " + s
	}
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	return s
}

// ErrorList is the mistakes of a file in the order of their lines.
type ErrorList []*Error

// Error returns all mistakes, a line each.
func (l ErrorList) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes.
func (l ErrorList) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// most bounds the mistakes that a list keeps: the first ones explain the rest.
const most = 20

func (l ErrorList) sorted() ErrorList {
	slices.SortStableFunc(l, func(a, b *Error) int { return a.Pos.Offset - b.Pos.Offset })
	l = slices.CompactFunc(l, func(a, b *Error) bool { return *a == *b })
	return l[:min(len(l), most)]
}

// Errorf returns a mistake at a place of the file.
func (f *File) Errorf(at token.Pos, remedy, format string, args ...any) *Error {
	return &Error{f.Fset.Position(at), fmt.Sprintf(format, args...), remedy}
}
