package trace

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

// The scanner works on a slice that may end anywhere. Every function takes the slice and a position
// and returns the position after the value that it read. If the slice ends first it returns
// errShort, and the caller reads more and starts the event again. Functions keep no state between
// calls, so that the second start gives the same result.
//
// The scanner is lenient: profilers write inf and nan, which JSON lacks, and raw backslashes or
// invalid UTF-8 in kernel names. Only the structure must be valid.

var (
	errShort  = errors.New("the data ends inside a value")
	errSyntax = errors.New("this is not JSON")
)

// space skips white space.
func space(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	return i
}

// text reads the string whose opening quote is at i and returns its contents without decoding
// escapes. Names are only compared, counted and shown.
func text(b []byte, i int) ([]byte, int, error) {
	start := i + 1
	for at := start; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return nil, i, errShort
		}
		end := at + n
		slashes := 0
		for k := end - 1; k >= start && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return b[start:end], end + 1, nil
		}
		at = end + 1
	}
}

// opens and closes classify brackets with one lookup, because skip takes most of the reader's time.
const (
	plain = iota
	quote
	open
	closed
)

var shape = [256]byte{'"': quote, '{': open, '[': open, '}': closed, ']': closed}

// skip skips one value of any kind.
func skip(b []byte, i int) (int, error) {
	if i = space(b, i); i >= len(b) {
		return i, errShort
	}
	switch b[i] {
	case '"':
		_, i, err := text(b, i)
		return i, err
	case '{', '[':
		return skipNested(b, i)
	}
	_, i, err := word(b, i)
	return i, err
}

func skipNested(b []byte, i int) (int, error) {
	for depth := 0; i < len(b); {
		switch shape[b[i]] {
		case quote:
			var err error
			if _, i, err = text(b, i); err != nil {
				return i, err
			}
			continue
		case open:
			depth++
		case closed:
			if depth--; depth == 0 {
				return i + 1, nil
			}
		}
		i++
	}
	return i, errShort
}

// word reads a number, a literal or an invalid token in its place.
func word(b []byte, i int) ([]byte, int, error) {
	start := i
	for i < len(b) {
		c := b[i]
		if c == ',' || c == '}' || c == ']' || c <= ' ' {
			if i == start {
				return nil, i, errSyntax
			}
			return b[start:i], i, nil
		}
		if c == '"' || c == '{' || c == '[' || c == ':' {
			return nil, i, errSyntax
		}
		i++
	}
	return nil, i, errShort
}

// nanoseconds converts the microseconds of a trace to whole nanoseconds. Integers keep times since
// 1970 exact.
func nanoseconds(w []byte) (int64, bool) {
	i, negative := 0, false
	if i < len(w) && w[i] == '-' {
		negative, i = true, 1
	}
	var whole int64
	digits := i
	for ; i < len(w) && w[i]-'0' <= 9; i++ {
		if whole > math.MaxInt64/20_000 {
			return 0, false
		}
		whole = whole*10 + int64(w[i]-'0')
	}
	if i == digits {
		return 0, false
	}
	ns := whole * 1000
	if i < len(w) && w[i] == '.' {
		i++
		for unit := int64(100); i < len(w) && w[i]-'0' <= 9; i++ {
			ns += int64(w[i]-'0') * unit
			unit /= 10
		}
	}
	if i != len(w) {
		return nanosecondsSlow(w)
	}
	if negative {
		ns = -ns
	}
	return ns, true
}

// nanosecondsSlow parses forms that PyTorch does not write, such as 1.2e9.
func nanosecondsSlow(w []byte) (int64, bool) {
	f, err := strconv.ParseFloat(string(w), 64)
	if err != nil || !(math.Abs(f) < math.MaxInt64/2000) {
		return 0, false
	}
	return int64(math.Round(f * 1000)), true
}

// count parses a whole number that fits 32 bits; it returns 0 for other values.
func count(w []byte) uint32 {
	var n uint64
	for _, c := range w {
		if c-'0' > 9 {
			return 0
		}
		if n = n*10 + uint64(c-'0'); n > math.MaxUint32 {
			return math.MaxUint32
		}
	}
	return uint32(n)
}
