package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// puller reads JSON value by value. Every method reads one value and the blanks before it; the
// first error ends the reading.
type puller struct {
	text []byte
	at   int
	key  string // that errors name: the last one that was read

	failed error // why open or more reported false; nil: the list has ended
}

// next skips blanks and returns the byte behind them, 0 at the end.
func (r *puller) next() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// accept skips a byte if it is the next one.
func (r *puller) accept(c byte) bool {
	if r.next() != c {
		return false
	}
	r.at++
	return true
}

// syntax is the error of a byte that JSON does not have here.
func (r *puller) syntax(what string) error {
	switch c := r.next(); {
	case c == 0 && r.at >= len(r.text):
		return errors.New("it ends in the middle of its JSON")
	case c < utf8.RuneSelf:
		return fmt.Errorf("invalid character %q %s", rune(c), what)
	default:
		letter, _ := utf8.DecodeRune(r.text[r.at:])
		return fmt.Errorf("invalid character %q %s", letter, what)
	}
}

// kind names the next value as JSON does.
func (r *puller) kind() string {
	switch c := r.next(); {
	case c == '"':
		return "string"
	case c == '[':
		return "array"
	case c == '{':
		return "object"
	case c == 't' || c == 'f':
		return "bool"
	case c == 'n':
		return "null"
	case c == '-' || c >= '0' && c <= '9':
		return "number"
	}
	return ""
}

// takes is the error of a value of another type.
func (r *puller) takes(what string) error {
	switch kind := r.kind(); kind {
	case "":
		return r.syntax("looking for beginning of value")
	case "null":
		return errNull
	default:
		key := r.key
		if key == "" {
			key = "it"
		}
		return fmt.Errorf("%s takes %s, not %s", key, what, kind)
	}
}

var errNull = errors.New("a list holds null, which is no number: many programs write it for NaN")

// null skips a null and reports whether there was one.
func (r *puller) null() bool {
	if r.next() == 'n' && bytes.HasPrefix(r.text[r.at:], []byte("null")) {
		r.at += 4
		return true
	}
	return false
}

// exact has the powers of ten that a float64 holds exactly.
var exact = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// float reads a number. Up to 15 digits without an exponent are one division, which rounds as
// strconv does; all others are strconv's.
func (r *puller) float() (float64, error) {
	if c := r.next(); c != '-' && (c < '0' || c > '9') {
		return 0, r.takes("numbers")
	}
	start, digits, point := r.at, uint64(0), -1
	count, simple := 0, true
	if r.text[r.at] == '-' {
		r.at++
	}
	first := r.at
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c >= '0' && c <= '9':
			digits = 10*digits + uint64(c-'0')
			count++
			continue
		case c == '.' && point < 0:
			point = count
			continue
		case c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-':
			simple = false
			continue
		}
		break
	}
	token := r.text[start:r.at]
	if simple && count <= 15 && count > 0 && point != 0 && point != count && (r.text[first] != '0' || count == 1 || point == 1) {
		x := float64(digits)
		if point > 0 {
			x /= exact[count-point]
		}
		if first > start {
			x = -x
		}
		return x, nil
	}
	if !json.Valid(token) {
		return 0, fmt.Errorf("%s is no number", quoteShort(string(token)))
	}
	x, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		return 0, fmt.Errorf("%s takes numbers, not %s", r.key, quoteless(token))
	}
	return x, nil
}

// quoteless is a number for an error, cut where it would flood the line.
func quoteless(token []byte) string {
	if len(token) > 40 {
		return string(token[:40]) + "..."
	}
	return string(token)
}

// whole reads a whole number of so many bits. 63.0 is one, as in JSON Schema.
func (r *puller) whole(bits int) (int64, error) {
	what := func() string { return "whole numbers of " + strconv.Itoa(bits) + " bits" }
	if r.kind() != "number" {
		return 0, r.takes(what())
	}
	start := r.at
	x, err := r.float()
	token := r.text[start:r.at]
	if err != nil {
		if json.Valid(token) {
			err = fmt.Errorf("%s takes %s, not %s", r.key, what(), quoteless(token))
		}
		return 0, err
	}
	if math.Abs(x) >= 1<<53 { // digits that a float64 loses
		if n, err := strconv.ParseInt(string(token), 10, bits); err == nil {
			return n, nil
		}
	}
	limit := math.Ldexp(1, bits-1)
	if x != math.Trunc(x) || x < -limit || x >= limit {
		return 0, fmt.Errorf("%s takes %s, not %s", r.key, what(), quoteless(token))
	}
	return int64(x), nil
}

func (r *puller) bool() (bool, error) {
	for _, word := range []string{"true", "false"} {
		if r.next(); bytes.HasPrefix(r.text[r.at:], []byte(word)) {
			r.at += len(word)
			return word == "true", nil
		}
	}
	if r.kind() == "bool" {
		return false, r.syntax("in literal true or false")
	}
	return false, r.takes("true or false")
}

// string reads a text.
func (r *puller) string() (string, error) {
	if r.next() != '"' {
		return "", r.takes("text")
	}
	start, plain := r.at, true
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '\\':
			r.at++
			plain = false
		case c == '"':
			r.at++
			token := r.text[start:r.at]
			if plain && utf8.Valid(token) {
				return string(token[1 : len(token)-1]), nil
			}
			var s string
			if err := json.Unmarshal(token, &s); err != nil {
				return "", errors.New(mistaken(err))
			}
			return s, nil
		case c < ' ':
			return "", fmt.Errorf("invalid character %q in string literal", rune(c))
		}
	}
	return "", r.syntax("")
}

// open begins a list and more goes on with it: both report whether an entry follows. Where they
// report false, failed has the error, or the list has ended.
func (r *puller) open() bool {
	r.failed = nil
	if !r.accept('[') {
		r.failed = r.takes("a list")
		return false
	}
	return !r.accept(']') && r.entry()
}

func (r *puller) more() bool {
	if r.accept(']') {
		return false
	}
	if !r.accept(',') {
		r.failed = r.syntax("after array element")
		return false
	}
	return r.entry()
}

// entry reports whether the next entry is a value and not null.
func (r *puller) entry() bool {
	if r.next() == 'n' && r.null() {
		r.failed = errNull
	}
	return r.failed == nil
}

// list reads a list; each reads an entry.
func (r *puller) list(each func(i int) error) error {
	i := 0
	for more := r.open(); more; more = r.more() {
		if err := each(i); err != nil {
			return err
		}
		i++
	}
	return r.failed
}

// pair reads a list of numbers and returns the first two and how many there are.
func (r *puller) pair() (a, b float64, n int, err error) {
	for more := r.open(); more; more = r.more() {
		x, err := r.float()
		if err != nil {
			return 0, 0, 0, err
		}
		switch n {
		case 0:
			a = x
		case 1:
			b = x
		}
		n++
	}
	return a, b, n, r.failed
}

// object reads an object. each reads the value of a key; the value null is skipped, as though the
// key were left out.
func (r *puller) object(each func(key string) error) error {
	if !r.accept('{') {
		return r.takes("an object")
	}
	if r.accept('}') {
		return nil
	}
	for seen := map[string]bool{}; ; {
		if r.next() != '"' {
			return r.syntax("looking for beginning of object key string")
		}
		key, err := r.string()
		if err != nil {
			return err
		}
		if !r.accept(':') {
			return r.syntax("after object key")
		}
		if seen[key] {
			return fmt.Errorf("%s is given twice", quoteShort(printable(key)))
		}
		seen[key], r.key = true, key
		if !r.null() {
			if err := each(key); err != nil {
				return err
			}
		}
		if r.accept('}') {
			return nil
		}
		if !r.accept(',') {
			return r.syntax("after object key:value pair")
		}
	}
}

// skip passes over a value and returns its text. It compares brackets and strings alone: who wants
// the value decodes it.
func (r *puller) skip() ([]byte, error) {
	r.next()
	start, depth := r.at, 0
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			if _, err := r.string(); err != nil {
				return nil, err
			}
			r.at--
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return nil, errDeep
			}
		case c == ']' || c == '}':
			if depth == 0 {
				return r.text[start:r.at], nil
			}
			depth--
		case c == ',' && depth == 0:
			return r.text[start:r.at], nil
		}
	}
	return nil, r.syntax("")
}

var errDeep = fmt.Errorf("it nests more than %d deep", MaxDepth)

// end refuses what stands behind the value.
func (r *puller) end() error {
	if r.next(); r.at < len(r.text) {
		return errors.New("there is more than one JSON object")
	}
	return nil
}
