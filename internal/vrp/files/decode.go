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
	"sync"
)

// encoding/json takes "Capacity" for "capacity", and of a key that is given twice the last. Both
// would change a problem in silence: here a key is spelled as documented, and given once.

// exactKeys returns an error for a key of an object that is given twice, or that differs from the
// key of dst's type in its case. text is JSON that the decoder accepted for dst, nested no deeper
// than MaxDepth. Keys of maps and of values without a type are free.
func exactKeys(text []byte, dst reflect.Type) error {
	k := keyScan{text: text}
	return k.value(dst, "")
}

type keyScan struct {
	text []byte
	at   int
}

// space passes white space, commas and colons, which the decoder has checked.
func (k *keyScan) space() {
	for k.at < len(k.text) && bytes.IndexByte([]byte(" \t\r\n,:"), k.text[k.at]) >= 0 {
		k.at++
	}
}

// quoted passes a string and returns what is between its quotes.
func (k *keyScan) quoted() []byte {
	from := k.at + 1
	for k.at++; k.at < len(k.text) && k.text[k.at] != '"'; k.at++ {
		if k.text[k.at] == '\\' {
			k.at++
		}
	}
	k.at = min(k.at+1, len(k.text))
	return k.text[from:max(from, k.at-1)]
}

// value passes a value of type t, nil for any. path is the key that it stands under.
func (k *keyScan) value(t reflect.Type, path string) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	k.space()
	if k.at >= len(k.text) {
		return nil
	}
	switch k.text[k.at] {
	case '{':
		return k.object(t, path)
	case '[':
		var of reflect.Type
		if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8 {
			of = t.Elem()
		}
		for k.at++; ; {
			if k.space(); k.at >= len(k.text) || k.text[k.at] == ']' {
				k.at++
				return nil
			}
			if err := k.value(of, path); err != nil {
				return err
			}
		}
	case '"':
		k.quoted()
	default:
		for k.at < len(k.text) && bytes.IndexByte([]byte(",]} \t\r\n"), k.text[k.at]) < 0 {
			k.at++
		}
	}
	return nil
}

func (k *keyScan) object(t reflect.Type, path string) error {
	var fields map[string]reflect.Type
	var of reflect.Type
	if t != nil && t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		fields = typesOfKeys(t)
	} else if t != nil && t.Kind() == reflect.Map {
		of = t.Elem()
	}
	seen := map[string]bool{}
	for k.at++; ; {
		if k.space(); k.at >= len(k.text) || k.text[k.at] == '}' {
			k.at++
			return nil
		}
		if k.text[k.at] != '"' {
			return fmt.Errorf("a key of %s is no text", objectAt(path))
		}
		raw := k.quoted()
		key := string(raw)
		if bytes.IndexByte(raw, '\\') >= 0 {
			if err := json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &key); err != nil {
				return err
			}
		}
		if seen[key] {
			return fmt.Errorf("the key %s of %s is given twice", quoteShort(key), objectAt(path))
		}
		seen[key] = true
		inside := of
		if fields != nil {
			var ok bool
			if inside, ok = fields[key]; !ok {
				for name := range fields {
					if strings.EqualFold(name, key) {
						return fmt.Errorf("there is no key %s of %s: it is spelled %s", quoteShort(key), objectAt(path), name)
					}
				}
			}
		}
		if err := k.value(inside, key); err != nil {
			return err
		}
	}
}

func objectAt(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

var keysByType sync.Map // reflect.Type to map[string]reflect.Type

// typesOfKeys returns the keys of a struct with their types, those of embedded structs among them.
func typesOfKeys(t reflect.Type) map[string]reflect.Type {
	if known, ok := keysByType.Load(t); ok {
		return known.(map[string]reflect.Type)
	}
	out := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported():
		case name != "":
			out[name] = f.Type
		case !f.Anonymous:
			out[f.Name] = f.Type
		}
	}
	keysByType.Store(t, out)
	return out
}

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
