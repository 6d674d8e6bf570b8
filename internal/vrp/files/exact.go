package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
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
