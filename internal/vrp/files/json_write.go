package files

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strconv"

	"haul/internal/schema"
	"haul/internal/vrp"
)

// WriteJSON writes a problem in Haul's own JSON.
func WriteJSON(w io.Writer, p *vrp.Problem) error {
	text, err := AppendProblem([]byte(`{"haul":1`), p)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, "}\n"...))
	return err
}

// AppendProblem appends the keys of a problem to an object that has been begun, without its end.
// ReadDraft reads the same problem back. A part that asks for nothing is left out.
func AppendProblem(b []byte, p *vrp.Problem) ([]byte, error) {
	w := &jsonWriter{b: b, n: len(p.Demand)}
	w.object(schema.Problem, reflect.ValueOf(p).Elem())
	return w.b, w.err
}

// jsonWriter appends JSON. Its numbers and texts are those of encoding/json.
type jsonWriter struct {
	b   []byte
	n   int // places
	err error
}

// neutral are the values of fields that ask for nothing, where those are not zero.
var neutral = reflect.ValueOf(vrp.NewVehicleType())

// object appends the keys of an object.
func (w *jsonWriter) object(of schema.Object, v reflect.Value) {
	for _, m := range members[of] {
		if m.index < 0 || m.Key == "notes" {
			continue
		}
		start := len(w.b)
		if last := w.b[start-1]; last != '{' {
			w.b = append(w.b, ',')
		}
		w.b = append(appendText(w.b, m.Key), ':')
		if !w.part(m, v) {
			w.b = w.b[:start]
		}
	}
}

// part appends a value and reports whether it asks for anything.
func (w *jsonWriter) part(m member, of reflect.Value) bool {
	f := of.Field(m.index)
	if of.Type() == neutral.Type() && reflect.DeepEqual(f.Interface(), neutral.Field(m.index).Interface()) {
		return false
	}
	if p, ok := of.Addr().Interface().(*vrp.Problem); ok {
		switch m.Key {
		case "coords":
			w.list(len(p.X), func(i int) { w.numbers(p.X[i], p.Y[i]) })
			return p.X != nil
		case "distance":
			w.text(metrics[p.Metric])
			return p.Metric != vrp.Explicit
		case "distances":
			w.matrix(p.Weights)
			return p.Metric == vrp.Explicit && p.Profiles == nil
		case "durations": // which profiles has
			return false
		}
	}
	if m.Type == schema.Matrix {
		w.matrix(f.Interface().([]float64))
		return !f.IsNil()
	}
	if f.Kind() == reflect.Slice && !w.says(m, f) {
		return false
	}
	switch x := f.Interface().(type) {
	case string:
		w.text(x)
		return x != ""
	case bool:
		w.b = strconv.AppendBool(w.b, x)
		return x
	case float64:
		w.number(x)
		return (x != 0 || of.Type() == neutral.Type()) && !math.IsInf(x, 1)
	case int, int32:
		w.b = strconv.AppendInt(w.b, f.Int(), 10)
		return f.Int() != 0 || m.Required
	case vrp.Window:
		w.span(x)
	case []string:
		w.list(len(x), func(i int) { w.text(x[i]) })
	case []bool:
		w.list(len(x), func(i int) { w.b = strconv.AppendBool(w.b, x[i]) })
	case []float64:
		w.list(len(x), func(i int) { w.number(x[i]) })
	case []int:
		w.list(len(x), func(i int) { w.b = strconv.AppendInt(w.b, int64(x[i]), 10) })
	case []int32:
		w.whole(x)
	case [][]int32:
		w.list(len(x), func(i int) { w.whole(x[i]) })
	case []vrp.Window:
		w.list(len(x), func(i int) { w.span(x[i]) })
	case [][]vrp.Window:
		w.list(len(x), func(i int) { w.list(len(x[i]), func(k int) { w.span(x[i][k]) }) })
	case vrp.BackhaulRule, vrp.Objective:
		w.text(m.Words[f.Int()])
		return f.Int() != 0
	default:
		w.list(f.Len(), func(i int) {
			w.b = append(w.b, '{')
			w.object(m.List, f.Index(i))
			w.b = append(w.b, '}')
		})
	}
	return true
}

// says reports whether a list is written.
func (w *jsonWriter) says(m member, f reflect.Value) bool {
	if m.Of == schema.Place {
		return m.Key == "demands" || asks(f)
	}
	return f.Len() > 0 || m.Required
}

func (w *jsonWriter) list(n int, each func(i int)) {
	w.b = append(w.b, '[')
	for i := range n {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		each(i)
	}
	w.b = append(w.b, ']')
}

func (w *jsonWriter) numbers(list ...float64) { w.list(len(list), func(i int) { w.number(list[i]) }) }

func (w *jsonWriter) whole(list []int32) {
	w.list(len(list), func(i int) { w.b = strconv.AppendInt(w.b, int64(list[i]), 10) })
}

func (w *jsonWriter) span(x vrp.Window) {
	if math.IsInf(x.To, 1) {
		w.numbers(x.From)
	} else {
		w.numbers(x.From, x.To)
	}
}

func (w *jsonWriter) matrix(m []float64) {
	if m != nil {
		w.list(w.n, func(i int) { w.numbers(m[i*w.n : (i+1)*w.n]...) })
	}
}

func (w *jsonWriter) text(s string) { w.b = appendText(w.b, s) }

// appendText appends a text as encoding/json writes it.
func appendText(b []byte, s string) []byte {
	plain := true
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			plain = false
		}
	}
	if plain {
		return append(append(append(b, '"'), s...), '"')
	}
	text, _ := json.Marshal(s) // of a text: it cannot fail
	return append(b, text...)
}

// number appends a number as encoding/json writes it.
func (w *jsonWriter) number(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		if w.err == nil && !math.IsInf(x, 1) {
			_, w.err = json.Marshal(x)
		}
		return
	}
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		if x == 0 && math.Signbit(x) {
			w.b = append(w.b, '-')
		}
		w.b = strconv.AppendInt(w.b, int64(x), 10)
		return
	}
	if abs := math.Abs(x); abs >= 1e-6 && abs < 1e21 {
		w.b = strconv.AppendFloat(w.b, x, 'f', -1, 64)
		return
	}
	text := strconv.AppendFloat(nil, x, 'e', -1, 64)
	if n := len(text); n >= 4 && text[n-4] == 'e' && text[n-3] == '-' && text[n-2] == '0' { // e-09 is e-9
		text[n-2] = text[n-1]
		text = text[:n-1]
	}
	w.b = append(w.b, text...)
}

// trimMark drops a byte order mark.
func trimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
