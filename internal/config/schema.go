package config

import (
	"math"
	"strconv"
	"strings"
)

// Effect describes how Haul treats a key.
type Effect string

// The three effects of a key.
const (
	Honoured    Effect = "honoured"
	Differently Effect = "honoured differently"
	NoEffect    Effect = "accepted without effect"
)

// Entry describes a key: a row of the schema, and of `haul config explain`.
type Entry struct {
	Recipe  string `json:"recipe"` // RecipeGT, RecipeAD or RecipePPO
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Allowed string `json:"allowed"` // description of the allowed values; "" if any value of the type is allowed
	Effect  Effect `json:"effect"`
	About   string `json:"about"`

	kind    kind
	bounds  bounds
	choices []string
}

type kind string

const (
	kindInt   kind = "whole number"
	kindFloat kind = "number"
	kindBool  kind = "true or false"
	kindText  kind = "text"
	kindPair  kind = "two whole numbers"   // written [low, high]
	kindSizes kind = "whole number or two" // one, or a range written [low, high]
	kindFile  kind = "path"                // of a file with further settings: it is read and then dropped
)

// maxCount bounds integers without a bound of their own: sums of a few and products of two then fit
// into 64 bits.
const maxCount = 1_000_000_000

// Values that determine memory have tighter bounds, far above any use: a typing error is refused at
// once, and a product of three fits into 64 bits. The trainer checks the available memory.
const (
	mostRows      = 1 << 20 // rows of a batch, and numbers that are counted in batches
	mostWidth     = 1 << 14 // of a layer
	mostCustomers = 100_000
	mostInstances = 100_000_000 // of a validation set
)

// bounds is an interval. above and below exclude its ends.
type bounds struct {
	lo, hi       float64
	above, below bool
	far          bool // hi exceeds any use: errors for values below lo do not mention it
	ends         bool // only lo and hi are allowed
}

var anything = bounds{lo: math.Inf(-1), hi: math.Inf(1)}

func atLeast(lo float64) bounds     { return bounds{lo: lo, hi: math.Inf(1)} }
func moreThan(lo float64) bounds    { return bounds{lo: lo, hi: math.Inf(1), above: true} }
func between(lo, hi float64) bounds { return bounds{lo: lo, hi: hi} }
func upTo(lo, hi float64) bounds    { return bounds{lo: lo, hi: hi, far: true} }
func either(lo, hi float64) bounds  { return bounds{lo: lo, hi: hi, ends: true} }

// fraction is [0, 1), the range of a decay or a dropout rate.
var fraction = bounds{lo: 0, hi: 1, below: true}

func (b bounds) holds(v float64) bool {
	if b.ends {
		return v == b.lo || v == b.hi
	}
	return (v > b.lo || v == b.lo && !b.above) && (v < b.hi || v == b.hi && !b.below)
}

// refuses describes the allowed values if v is not one of them, else it returns "".
func (b bounds) refuses(v float64) string {
	switch {
	case b.far && v < b.lo:
		return "at least " + number(b.lo)
	case b.far:
		return "at most " + number(b.hi)
	}
	return b.words()
}

// words returns the text that follows "must be".
func (b bounds) words() string {
	if b.lo == b.hi {
		return number(b.lo)
	}
	if b.ends {
		return number(b.lo) + " or " + number(b.hi)
	}
	var parts []string
	if !math.IsInf(b.lo, -1) {
		parts = append(parts, pick(b.above, "more than ", "at least ")+number(b.lo))
	}
	if !math.IsInf(b.hi, 1) {
		parts = append(parts, pick(b.below, "below ", "at most ")+number(b.hi))
	}
	return strings.Join(parts, " and ")
}

func pick(cond bool, yes, no string) string {
	if cond {
		return yes
	}
	return no
}

func number(v float64) string {
	if v == 1<<63 { // float64 rounds the largest int64 to this
		return strconv.Itoa(math.MaxInt64)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// schema is the table of the keys of a family of settings files: which keys exist, what values they
// allow, and what they mean. Reading, merging, suggesting, filling and explaining use it. It works
// for any set of keys.
type schema struct {
	entries  []Entry
	index    map[string]int    // key -> entry
	sections map[string]string // section -> its first key, for hints
}

func newSchema(entries ...Entry) *schema {
	s := &schema{entries: entries, index: map[string]int{}, sections: map[string]string{}}
	for i := range entries {
		e := &entries[i]
		s.index[e.Key] = i
		for at, c := range e.Key {
			if c == '.' && s.sections[e.Key[:at]] == "" {
				s.sections[e.Key[:at]] = e.Key
			}
		}
		e.Type = string(e.kind)
		e.Allowed = e.bounds.words()
		if len(e.choices) > 0 {
			e.Allowed = oneOf(e.choices)
		}
	}
	return s
}

func (s *schema) entry(key string) *Entry {
	if i, ok := s.index[key]; ok {
		return &s.entries[i]
	}
	return nil
}

func oneOf(choices []string) string {
	if len(choices) == 1 {
		return choices[0]
	}
	return "one of " + strings.Join(choices, ", ")
}

// The constructors of entries.

func integer(key string, b bounds, effect Effect, about string) Entry {
	return Entry{Key: key, kind: kindInt, bounds: b, Effect: effect, About: about}
}

func float(key string, b bounds, effect Effect, about string) Entry {
	return Entry{Key: key, kind: kindFloat, bounds: b, Effect: effect, About: about}
}

func boolean(key string, effect Effect, about string) Entry {
	return Entry{Key: key, kind: kindBool, bounds: anything, Effect: effect, About: about}
}

func text(key string, effect Effect, about string, choices ...string) Entry {
	return Entry{Key: key, kind: kindText, bounds: anything, choices: choices, Effect: effect, About: about}
}

// include returns the entry of the key that names another file, over which a file is merged. It has
// no field, because written settings are complete.
func include() Entry {
	return Entry{Key: includeKey, kind: kindFile, bounds: anything, Effect: Honoured,
		About: "Another settings file, which this one overrides: a path relative to this file's folder, a file beside this one, or the name of a shipped file."}
}

func sizes(key string, b bounds, effect Effect, about string) Entry {
	return Entry{Key: key, kind: kindSizes, bounds: b, Effect: effect, About: about}
}

func pair(key string, b bounds, effect Effect, about string) Entry {
	return Entry{Key: key, kind: kindPair, bounds: b, Effect: effect, About: about}
}
