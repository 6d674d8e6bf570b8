package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// MaxDepth is how deep JSON may nest: no document needs more than five.
const MaxDepth = 16

// Decode reads JSON strictly: one object, known keys in their own case and once each, no null in a
// list, nothing behind it. 63.0 is a whole number, and a key whose value is null is left out.
func Decode(text []byte, dst any) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	deep, null := scan(text)
	switch {
	case deep:
		return fmt.Errorf("it nests more than %d deep", MaxDepth)
	case null:
		return errors.New("a list holds null, which is no number: many programs write it for NaN")
	}
	d := json.NewDecoder(bytes.NewReader(wholeNumbers(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return errors.New(mistaken(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more than one JSON object")
	}
	return exactKeys(text, reflect.TypeOf(dst))
}

// LooksJSON says whether a text begins as a JSON object does.
func LooksJSON(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return bytes.HasPrefix(bytes.TrimLeft(text[:min(len(text), 512)], " \t\r\n"), []byte("{"))
}

// mistaken words what a decoder found, in JSON's terms and not in the program's.
func mistaken(err error) string {
	var of *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty, and a JSON object is needed"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends in the middle of its JSON"
	case !errors.As(err, &of):
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	takes := "something else"
	switch kind := of.Type.Kind(); {
	case kind == reflect.Bool:
		takes = "true or false"
	case kind == reflect.String:
		takes = "text"
	case kind >= reflect.Int && kind <= reflect.Uint64:
		takes = fmt.Sprintf("whole numbers of %d bits", of.Type.Bits())
	case kind == reflect.Float64:
		takes = "numbers"
	case kind == reflect.Slice:
		takes = "a list"
	case kind == reflect.Struct:
		takes = "an object"
	}
	key := of.Field[strings.LastIndexByte(of.Field, '.')+1:]
	if key == "" {
		key = "it"
	}
	return fmt.Sprintf("%s takes %s, not %s", key, takes, strings.TrimPrefix(of.Value, "number "))
}

// scan says that brackets nest deeper than MaxDepth, before a decoder follows them, and that a list
// holds null, which it would take for 0.
func scan(text []byte) (deep, null bool) {
	depth, quoted := 0, false
	var opened [MaxDepth + 1]byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return true, null
			}
			opened[max(0, depth)] = c
		case c == ']' || c == '}':
			depth--
		// not Infinity, which is no JSON at all
		case c == 'n' && depth > 0 && opened[depth] == '[' && bytes.HasPrefix(text[i:], []byte("null")):
			null = true
		}
	}
	return false, null
}

// wholeNumbers writes numbers that are whole without a point: to JSON Schema 63.0 is an integer,
// and Python writes one so when it was a float.
func wholeNumbers(text []byte) []byte {
	var out []byte // nil while nothing was changed
	kept, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '-' || c >= '0' && c <= '9'):
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("0123456789.eE+-"), text[end]) >= 0 {
				end++
			}
			if token := text[i:end]; bytes.ContainsAny(token, ".eE") && json.Valid(token) {
				if v, err := strconv.ParseFloat(string(token), 64); err == nil && v == math.Trunc(v) && math.Abs(v) < 1<<63 {
					out = strconv.AppendFloat(append(out, text[kept:i]...), v, 'f', -1, 64)
					kept = end
				}
			}
			i = end - 1
		}
	}
	if kept == 0 {
		return text
	}
	return append(out, text[kept:]...)
}
