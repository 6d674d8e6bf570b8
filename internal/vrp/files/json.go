package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/schema"
	"haul/internal/vrp"
)

// Haul's own JSON: the same on the command line, over HTTP, in Python and in Go. schema.Parts is
// the table of its keys. The reader looks a key up once and reads its value by the type of the
// field that the part names.
//
// Three parts are not one field: coords is X and Y, distances is Weights with the metric Explicit,
// and durations is the first profile's.

// Version is that of Haul's own JSON. A reader accepts documents of this version and documents
// without one.
const Version = 1

// names are a choice's words in JSON, in the order of its values; those without a word are "".
type names []string

var (
	metrics    = names(part(schema.Problem, "distance").Words)
	backhauls  = names(part(schema.Problem, "backhauls").Words)
	objectives = names(part(schema.Problem, "objective").Words)
)

// ParseObjective is the objective of a word; "" is the cost.
func ParseObjective(word string) (vrp.Objective, error) {
	n, err := objectives.of("objective", word)
	return vrp.Objective(n), err
}

// of is the value of a word; "" is the first.
func (n names) of(key, word string) (int, error) {
	if word == "" {
		return 0, nil
	}
	var all []string
	for i, name := range n {
		if name == word {
			return i, nil
		}
		if name != "" {
			all = append(all, name)
		}
	}
	return 0, fmt.Errorf("%s is %q: use %s or %s", key, word, strings.Join(all[:len(all)-1], ", "), all[len(all)-1])
}

// member is a part with the place of its field in the Go type.
type member struct {
	*schema.Part
	index int // -1: accepted and not read
}

// objects are the Go types of objects.
var objects = map[schema.Object]reflect.Type{
	schema.Problem: reflect.TypeFor[vrp.Problem](), schema.Vehicle: reflect.TypeFor[vrp.VehicleType](), schema.Break: reflect.TypeFor[vrp.Break](),
	schema.Profile: reflect.TypeFor[vrp.Profile](), schema.Dimension: reflect.TypeFor[vrp.Dimension](), schema.Group: reflect.TypeFor[vrp.Group](), schema.Shipment: reflect.TypeFor[vrp.Shipment](),
}

// members are the keys of each object, in the order in which they are written.
var members = func() map[schema.Object][]member {
	out := map[schema.Object][]member{}
	for i := range schema.Parts {
		p, of := &schema.Parts[i], schema.Parts[i].Of
		if of == schema.Place {
			of = schema.Problem
		}
		m := member{p, -1}
		if len(p.Fields) > 0 {
			f, ok := objects[of].FieldByName(p.Fields[0])
			if !ok {
				panic("schema: no field " + p.Fields[0])
			}
			m.index = f.Index[0]
		}
		out[of] = append(out[of], m)
	}
	return out
}()

func part(o schema.Object, key string) *schema.Part {
	for i := range schema.Parts {
		if schema.Parts[i].Of == o && schema.Parts[i].Key == key {
			return &schema.Parts[i]
		}
	}
	panic("schema: no part " + key)
}

// Draft is a problem as its JSON states it, before lists and places are compared.
type Draft struct {
	p       vrp.Problem
	version int64
	given   map[string]bool   // keys with a value
	lists   []counted         // by place, in the order of the text
	squares map[string]square // matrices, by the path of their key
}

type counted struct {
	key string
	n   int
}

// square is a matrix as it was read.
type square struct {
	values []float64
	rows   []int // the length of each
}

// Customers is the number of customers that the draft seems to have.
func (d *Draft) Customers() int { return d.places() - d.p.DepotCount() }

// ReadJSON reads a problem in Haul's own JSON; name stands in errors. Keys that it does not know
// are refused.
func ReadJSON(r io.Reader, name string) (*vrp.Problem, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return readOwn(text, name)
}

func readOwn(text []byte, name string) (*vrp.Problem, error) {
	d, err := ReadDraft(text, nil)
	if err != nil && !IsShape(err) {
		return nil, fmt.Errorf("%s: not the JSON of a problem: %w", name, err)
	}
	var p *vrp.Problem
	if err == nil {
		p, err = d.Problem()
	}
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// ReadDraft reads the keys of a problem, and those of beside, a pointer to a struct with tags of
// encoding/json, or nil. A key of neither is an error with the nearest that there is. A key whose
// value is null is left out.
func ReadDraft(text []byte, beside any) (*Draft, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := &Draft{given: map[string]bool{}, squares: map[string]square{}}
	r := objectReader{puller: &puller{text: text}, d: d}
	if r.next() == 0 {
		return nil, fmt.Errorf("it is empty, and a JSON object is needed")
	}
	others := keysOf(beside)
	rest := []byte{'{'}
	err := r.object(schema.Problem, reflect.ValueOf(&d.p).Elem(), others, func(key string, value []byte) {
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(appendText(rest, key), ':'), value...)
	})
	if err == nil {
		err = r.end()
	}
	if err == nil && beside != nil {
		err = Decode(append(rest, '}'), beside)
	}
	return d, err
}

// keysOf are the JSON keys of a struct, those of embedded ones included.
func keysOf(v any) (out []string) {
	if v == nil {
		return nil
	}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" {
			out = append(out, key)
		}
	}
	return out
}

// objectReader reads the objects of a problem.
type objectReader struct {
	*puller
	d    *Draft
	path string // of the object, with a dot behind it
	// spans and numbers are blocks from which short lists are cut.
	spans   []vrp.Window
	numbers []int32
}

// object reads an object of the table into a Go value. A key among others goes to beside.
func (r *objectReader) object(of schema.Object, to reflect.Value, others []string, beside func(key string, value []byte)) error {
	all := members[of]
	return r.puller.object(func(key string) error {
		if slices.Contains(others, key) {
			value, err := r.skip()
			if err == nil {
				beside(key, value)
			}
			return err
		}
		i := slices.IndexFunc(all, func(m member) bool { return m.Key == key })
		if i < 0 {
			known := slices.Clone(others)
			for _, m := range all {
				known = append(known, m.Key)
			}
			return unknownKey(r.path+key, config.Nearest(key, known))
		}
		if of == schema.Problem {
			r.d.given[key] = true
		}
		return r.value(all[i], to)
	})
}

// unknownKey is the error of a key that nothing reads.
func unknownKey(key, nearest string) error {
	if nearest != "" {
		nearest = fmt.Sprintf(": is %q meant?", nearest)
	}
	return fmt.Errorf("unknown key %s%s", quoteShort(printable(key)), nearest)
}

// value reads a part.
func (r *objectReader) value(m member, to reflect.Value) error {
	if m.index < 0 {
		return r.aside(m)
	}
	switch {
	case m.Type == schema.Point:
		return r.points()
	case m.Type == schema.Matrix:
		return r.matrix(r.path + m.Key)
	case m.Key == "notes": // of a reader: what this text does not say
		var none []string
		_, err := texts(r, &none)
		return err
	}
	n, err := 0, error(nil)
	switch f := to.Field(m.index).Addr().Interface().(type) {
	case *string:
		*f, err = r.string()
		*f = printable(*f)
	case *bool:
		*f, err = r.bool()
	case *float64:
		*f, err = r.float()
	case *int:
		err = wholeInto(r, f, max(32, m.Bits))
	case *int32:
		err = wholeInto(r, f, 32)
	case *[]string:
		n, err = texts(r, f)
	case *[]bool:
		n, err = listOf(r, f, func(v *bool) (err error) { *v, err = r.bool(); return err })
	case *[]float64:
		n, err = listOf(r, f, func(v *float64) (err error) { *v, err = r.float(); return err })
	case *[]int:
		n, err = listOf(r, f, func(v *int) error { return wholeInto(r, v, max(32, m.Bits)) })
	case *[]int32:
		n, err = listOf(r, f, func(v *int32) error { return wholeInto(r, v, 32) })
	case *[][]int32:
		each := func(_ int, v *int32) error { return wholeInto(r, v, 32) }
		n, err = listOf(r, f, func(v *[]int32) error { return cutFrom(r, &r.numbers, v, each) })
	case *vrp.Window:
		err = within(r.path+m.Key, r.span(0, f))
	case *[]vrp.Window:
		err = within(r.path+m.Key, cutFrom(r, &r.spans, f, r.span))
	case *[][]vrp.Window:
		each, at := r.span, -1
		n, err = listOf(r, f, func(v *[]vrp.Window) error { at++; return cutFrom(r, &r.spans, v, each) })
		err = within(fmt.Sprintf("%s[%d]", m.Key, at), err)
	case *vrp.Metric:
		err = choice(r, m, f)
	case *vrp.BackhaulRule:
		err = choice(r, m, f)
	case *vrp.Objective:
		err = choice(r, m, f)
	default:
		return r.objects(m, to.Field(m.index))
	}
	if err == nil && m.Key == "allowed" && n == 0 {
		return &shapeError{fmt.Errorf("%sallowed is empty: leave it out where a vehicle may serve all", r.path)}
	}
	if err == nil && (m.Of == schema.Place || m.Each) {
		r.d.lists = append(r.d.lists, counted{r.path + m.Key, n})
	}
	return err
}

// aside reads what asks for nothing.
func (r *objectReader) aside(m member) (err error) {
	if m.Type == schema.Number {
		_, err = r.float()
		return err
	}
	n, err := r.whole(max(32, m.Bits))
	if m.Key == "haul" {
		r.d.version = n
	}
	return err
}

// objects reads a list of objects.
func (r *objectReader) objects(m member, to reflect.Value) error {
	path := r.path
	defer func() { r.path = path }()
	return r.list(func(i int) error {
		one := reflect.New(to.Type().Elem()).Elem()
		if t, ok := one.Addr().Interface().(*vrp.VehicleType); ok {
			*t = vrp.NewVehicleType()
		}
		r.path = fmt.Sprintf("%s%s[%d].", path, m.Key, i)
		if err := r.object(m.List, one, nil, nil); err != nil {
			return err
		}
		if f, ok := one.Addr().Interface().(*vrp.Profile); ok {
			f.Distance, f.Duration = r.d.squares[r.path+"distances"].values, r.d.squares[r.path+"durations"].values
		}
		to.Set(reflect.Append(to, one))
		return nil
	})
}

func wholeInto[T int | int32](r *objectReader, to *T, bits int) error {
	n, err := r.whole(bits)
	*to = T(n)
	return err
}

func choice[T ~int](r *objectReader, m member, to *T) error {
	word, err := r.string()
	if err != nil {
		return err
	}
	if word == "" {
		delete(r.d.given, m.Key)
	}
	n, err := names(m.Words).of(m.Key, word)
	*to = T(n)
	if err != nil {
		err = &shapeError{err}
	}
	return err
}

// shapeError is a fault of what a text says, where its JSON is that of a problem.
type shapeError struct{ error }

// within puts the path of a list before a fault of its entries.
func within(path string, err error) error {
	if IsShape(err) {
		return &shapeError{fmt.Errorf("%s%w", path, err)}
	}
	return err
}

// IsShape reports whether ReadDraft refused what a text says, and not its JSON.
func IsShape(err error) bool {
	var shape *shapeError
	return errors.As(err, &shape)
}

// listOf reads a list and returns its length.
func listOf[T any](r *objectReader, to *[]T, each func(*T) error) (int, error) {
	var out []T
	for more := r.open(); more; more = r.more() {
		var zero T
		out = append(out, zero)
		if err := each(&out[len(out)-1]); err != nil {
			return 0, err
		}
	}
	if len(out) > 0 {
		*to = out
	}
	return len(out), r.failed
}

func texts(r *objectReader, to *[]string) (int, error) {
	return listOf(r, to, func(v *string) (err error) {
		*v, err = r.string()
		*v = printable(*v)
		return err
	})
}

// cutFrom reads a short list into a block that many lists share.
func cutFrom[T any](r *objectReader, block *[]T, to *[]T, each func(int, *T) error) error {
	if cap(*block)-len(*block) < 8 {
		*block = make([]T, 0, 1024)
	}
	start := len(*block)
	for more := r.open(); more; more = r.more() {
		var zero T
		*block = append(*block, zero)
		if err := each(len(*block)-1-start, &(*block)[len(*block)-1]); err != nil {
			return err
		}
	}
	if end := len(*block); end > start {
		*to = (*block)[start:end:end]
	}
	return r.failed
}

// span reads [from, to], or [from] without an end. at is its index in its list.
func (r *objectReader) span(at int, w *vrp.Window) error {
	a, b, n, err := r.pair()
	if err != nil {
		return err
	}
	*w = vrp.Always
	switch w.From = a; {
	case n == 2:
		w.To = b
	case n != 1:
		return &shapeError{fmt.Errorf("[%d] has %d numbers: [from, to], or [from] without an end", at, n)}
	}
	if w.To < w.From {
		return &shapeError{fmt.Errorf("[%d] closes at %g, before it opens at %g", at, w.To, w.From)}
	}
	return nil
}

// points reads coords.
func (r *objectReader) points() error {
	p := &r.d.p
	p.X, p.Y = nil, nil
	for more := r.open(); more; more = r.more() {
		x, y, n, err := r.pair()
		switch {
		case err != nil:
			return err
		case n != 2:
			return &shapeError{fmt.Errorf("coords[%d] has %d numbers: two are needed, x and y", len(p.X), n)}
		case math.Abs(x) > Farthest || math.Abs(y) > Farthest:
			return &shapeError{fmt.Errorf("coords[%d] is farther away than 1e12: give them in a larger unit", len(p.X))}
		}
		p.X, p.Y = append(p.X, x), append(p.Y, y)
	}
	return r.failed
}

// matrix reads rows of numbers.
func (r *objectReader) matrix(key string) error {
	s := square{values: []float64{}}
	for more := r.open(); more; more = r.more() {
		before := len(s.values)
		if _, err := listInto(r, &s.values); err != nil {
			return err
		}
		s.rows = append(s.rows, len(s.values)-before)
	}
	r.d.squares[key] = s
	return r.failed
}

// listInto appends the numbers of a list.
func listInto(r *objectReader, to *[]float64) (int, error) {
	n := 0
	for more := r.open(); more; more = r.more() {
		x, err := r.float()
		if err != nil {
			return n, err
		}
		*to = append(*to, x)
		n++
	}
	return n, r.failed
}
