package root

import (
	"cmp"
	"slices"
	"strings"
)

// Old forms of the command line. Each runs for one release as what it is called today, and the line
// to type is told.

// renamed are flags that have another name, by verb and old name; what stands behind the blank
// comes before the value.
var renamed = map[string]map[string]string{
	"solve": {
		"fleet": "with fleet=", "depots": "with depots=", "shipments": "with shipments=", "distances": "with distances=", "durations": "with durations=",
		"distance": "set distance=", "times": "set times=", "device": "set device=", "decode": "set decode=", "limit": "set ", "checkpoint": "policy ",
	},
	"eval": {"instances": "", "testset": "", "split": "", "variant": ""},
	"gen":  {"customers": "", "distribution": "", "single-tour": "", "testset": "", "split": "", "variant": ""},
}

// ofSets are flags that haul solve had for generated instances and test sets.
var ofSets = []string{"customers", "count", "first", "distribution", "single-tour", "demand-range", "coord-range", "testset", "split", "variant", "reference", "rounded", "time-per-instance"}

// unvalued are flags of these verbs that take no value.
var unvalued = []string{"open", "force", "json", "quiet", "rounded", "single-tour", "help"}

// line is a command line in parts.
type line struct {
	verb  string
	names []string // what is no flag
	flags []given
}

// given is a flag as it was given.
type given struct {
	name, value string
	alone       bool // no value was given with it
}

// parse takes a command line apart; ok is false where it has more than words and long flags.
func parse(args []string) (l line, ok bool) {
	for i := 0; i < len(args); i++ {
		name, long := strings.CutPrefix(args[i], "--")
		switch {
		case long && name == "", !long && len(args[i]) > 1 && args[i][0] == '-':
			return l, false
		case !long && l.verb == "":
			l.verb = args[i]
		case !long:
			l.names = append(l.names, args[i])
		default:
			name, value, with := strings.Cut(name, "=")
			alone := slices.Contains(unvalued, name)
			if alone = alone || i+1 == len(args); !with && !alone {
				i++
				value = args[i]
			}
			l.flags = append(l.flags, given{name, value, alone && !with})
		}
	}
	return l, true
}

// args puts a command line together.
func (l *line) args() []string {
	out := append([]string{l.verb}, l.names...)
	for _, f := range l.flags {
		if out = append(out, "--"+f.name); !f.alone {
			out = append(out, f.value)
		}
	}
	return out
}

// has reports whether a flag was given.
func (l *line) has(name string) bool {
	return slices.ContainsFunc(l.flags, func(f given) bool { return f.name == name })
}

// take removes a flag and returns its last value: "" where it was not given, "true" where it has
// none.
func (l *line) take(name string) (value string) {
	l.flags = slices.DeleteFunc(l.flags, func(f given) bool {
		if f.name != name {
			return false
		}
		if value = f.value; f.alone {
			value = "true"
		}
		return true
	})
	return value
}

// takeSet removes the flags that described a set and returns its name today; size is the number of
// customers where none was said.
func (l *line) takeSet(size string) string {
	set, split, variant := l.take("testset"), l.take("split"), l.take("variant")
	distribution, single, instances := l.take("distribution"), l.take("single-tour"), l.take("instances")
	if set != "" && set != "kool" && set != "routefinder" || instances != "" {
		return cmp.Or(instances, set)
	}
	if n := l.take("customers"); n != "" {
		size = n
	}
	switch {
	case set == "kool":
		for _, part := range []struct{ before, text string }{{":", size}, {"/", split}} {
			if part.text != "" {
				set += part.before + part.text
			}
		}
		return set
	case set == "routefinder":
		return strings.TrimSuffix(set+":"+cmp.Or(variant, "cvrp")+"/"+size, "/")
	case single == "true" && distribution == "uniform":
		return "tsp:" + size
	case single == "true":
		return "tsp-grid:" + size
	}
	return cmp.Or(distribution, "grid") + ":" + size
}

// Moved is a command line in today's words; old says that it had others.
func Moved(args []string) (now []string, old bool) {
	l, ok := parse(args)
	if !ok || l.has("help") {
		return args, false
	}
	sets := slices.ContainsFunc(l.flags, func(f given) bool { return slices.Contains(ofSets, f.name) })
	movable := slices.ContainsFunc(l.flags, func(f given) bool { _, ok := renamed[l.verb][f.name]; return ok })
	switch {
	case l.verb == "solve" && l.has("check") && len(l.names) == 1:
		l.names = append(l.names, l.take("check"))
		l.rename()
		l.verb = "check"
	case l.verb == "solve" && sets && len(l.names) == 0:
		l.verb, l.names = "eval", []string{l.takeSet("10")}
		for i := range l.flags {
			if l.flags[i].name == "time-per-instance" {
				l.flags[i].name = "time"
			}
		}
	case l.verb == "solve" && movable:
		l.rename()
	case l.verb == "eval" && movable && len(l.names) == 0 && (l.has("instances") || l.has("testset")):
		l.names = []string{l.takeSet("")}
	case l.verb == "gen" && len(l.names) == 0 && len(l.flags) > 0:
		l.names = []string{l.takeSet("10")}
	default:
		return args, false
	}
	return l.args(), true
}

// rename gives flags of a verb their names of today.
func (l *line) rename() {
	for i, f := range l.flags {
		if to, ok := renamed[l.verb][f.name]; ok {
			name, before, _ := strings.Cut(to, " ")
			l.flags[i].name, l.flags[i].value = name, before+f.value
		}
	}
}

// spoken is a command line as a shell takes it.
func spoken(args []string) string {
	var out strings.Builder
	out.WriteString("haul")
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t'\"$&;|<>*?()\\") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out.WriteString(" " + a)
	}
	return out.String()
}
