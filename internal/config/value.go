package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// source is a value as written, before its key determines its type. The type that YAML would guess
// is not used: `1e-4`, `1_000` and `yes` are read by the key's kind, as the original program's
// reader or its author meant them.
type source struct {
	text   string
	quoted bool
	shape  string   // "" for a scalar, else the name of the YAML type
	items  []source // elements of a list
}

func fromNode(n *yaml.Node) source {
	n = follow(n)
	switch n.Kind {
	case yaml.ScalarNode:
		const quotes = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		return source{text: n.Value, quoted: n.Style&quotes != 0}
	case yaml.SequenceNode:
		s := source{shape: "a list"}
		if len(n.Content) != 2 { // no kind allows another length, so the elements do not matter
			s.shape = "a list of " + strconv.Itoa(len(n.Content))
			return s
		}
		for _, item := range n.Content {
			if follow(item).Kind != yaml.ScalarNode {
				return source{shape: "a nested list"}
			}
			s.items = append(s.items, fromNode(item))
		}
		return s
	default:
		return source{shape: "a section"}
	}
}

// fromSet returns the value of a --set argument. The text has no YAML quotes, because the shell has
// its own.
func fromSet(text string, k kind) source {
	if k != kindPair && !(k == kindSizes && strings.ContainsAny(text, "[,")) {
		return source{text: text}
	}
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "["), "]")
	s := source{shape: "a list"}
	for part := range strings.SplitSeq(inner, ",") {
		s.items = append(s.items, source{text: strings.TrimSpace(part)})
	}
	return s
}

func (s source) isNull() bool {
	if s.quoted || s.shape != "" {
		return false
	}
	switch s.text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// got returns the value for an error: on one line, shortened.
func (s source) got() string {
	if s.shape != "" && s.items == nil {
		return s.shape
	}
	if s.items != nil {
		var parts []string
		for _, item := range s.items {
			parts = append(parts, item.got())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if s.quoted {
		return `"` + shorten(s.text) + `"`
	}
	return shorten(s.text)
}

// shorten makes a text fit into an error line: it escapes control characters and truncates.
func shorten(t string) string {
	const most = 80
	if r := []rune(t); len(r) > most {
		t = string(r[:most]) + "..."
	}
	quoted := strconv.Quote(t)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// valueError describes what is wrong with a value; it follows the key's name. "" means nothing.
type valueError string

const noValue valueError = "has no value"

func mustBe(what string) valueError { return valueError("must be " + what) }

// read converts a written value to an int64, float64, bool, string, [2]int64 or Sizes that the
// entry allows.
func (e *Entry) read(s source) (any, valueError) {
	if s.isNull() || e.kind == kindFile && s.text == "" && s.shape == "" {
		return nil, noValue
	}
	if e.kind == kindPair {
		return e.readPair(s)
	}
	if e.kind == kindSizes {
		return e.readSizes(s)
	}
	if s.shape != "" {
		return nil, mustBe(article(e.kind))
	}
	switch e.kind {
	case kindInt:
		return e.readInt(s)
	case kindFloat:
		return e.readFloat(s)
	case kindBool:
		return readBool(s)
	default:
		return e.readText(s)
	}
}

func article(k kind) string {
	if k == kindInt || k == kindFloat || k == kindFile {
		return "a " + string(k)
	}
	return string(k)
}

// decimal matches numbers as YAML writes them, with underscores between digits. Leading zeros are
// decimal, as in YAML 1.2.
var decimal = regexp.MustCompile(`^[-+]?([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?$`)

func (e *Entry) readInt(s source) (any, valueError) {
	if s.quoted || !decimal.MatchString(s.text) {
		return nil, mustBe("a whole number")
	}
	digits := strings.ReplaceAll(s.text, "_", "")
	v, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, mustBe("a whole number of at most 63 bits")
	case err != nil: // 1e3 and 128.0 are whole numbers too
		f, _ := strconv.ParseFloat(digits, 64)
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, mustBe("a whole number")
		}
		v = int64(f)
	}
	if !e.bounds.holds(float64(v)) {
		return nil, mustBe(e.bounds.refuses(float64(v)))
	}
	if math.IsInf(e.bounds.hi, 1) && v > maxCount {
		return nil, mustBe("at most " + strconv.Itoa(maxCount))
	}
	return v, ""
}

func (e *Entry) readFloat(s source) (any, valueError) {
	if s.quoted || !decimal.MatchString(s.text) {
		return nil, mustBe("a number")
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s.text, "_", ""), 64)
	if err != nil {
		return nil, mustBe("a finite number")
	}
	if !e.bounds.holds(v) {
		return nil, mustBe(e.bounds.words())
	}
	return v + 0, "" // -0 becomes 0
}

func readBool(s source) (any, valueError) {
	if !s.quoted {
		switch strings.ToLower(s.text) {
		case "true", "yes", "on":
			return true, ""
		case "false", "no", "off":
			return false, ""
		}
	}
	return nil, mustBe(string(kindBool))
}

func (e *Entry) readText(s source) (any, valueError) {
	if !utf8.ValidString(s.text) {
		return nil, mustBe("text in UTF-8")
	}
	for _, c := range e.choices {
		if s.text == c {
			return c, ""
		}
	}
	if len(e.choices) > 0 {
		return nil, mustBe(oneOf(e.choices))
	}
	return s.text, ""
}

func (e *Entry) readPair(s source) (any, valueError) {
	if len(s.items) != 2 {
		return nil, mustBe("two whole numbers, written [low, high]")
	}
	var p [2]int64
	for i, item := range s.items {
		v, bad := e.readInt(item)
		if bad != "" {
			return nil, "must hold two whole numbers, each " + valueError(e.bounds.words())
		}
		p[i] = v.(int64)
	}
	if p[0] > p[1] {
		return nil, mustBe("written [low, high]")
	}
	return p, ""
}

// readSizes reads one integer, or two in rising order.
func (e *Entry) readSizes(s source) (any, valueError) {
	if s.shape == "" {
		v, bad := e.readInt(s)
		if bad != "" {
			return nil, bad
		}
		return Size(int(v.(int64))), ""
	}
	if len(s.items) != 2 {
		return nil, mustBe("a whole number, or two, written [low, high]")
	}
	v, bad := e.readPair(s)
	if bad != "" {
		return nil, bad
	}
	p := v.([2]int64)
	return Sizes{int(p[0]), int(p[1])}, ""
}
