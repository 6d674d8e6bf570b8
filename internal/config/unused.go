package config

import (
	"fmt"
	"slices"
	"strings"
)

// Unused describes in one line each the --set arguments that change nothing in s: keys without an
// effect, keys that count only together with others, and keys that a later argument or a flag also
// sets. flags maps a key to the flag that sets it. Settings files contain every key and are not
// checked.
func Unused(s Settings, sets []string, flags map[string]string) (out []string) {
	among, err := recipesNamed(s.Recipe())
	if err != nil {
		return nil
	}
	idle := map[string]string{}
	if c, ok := s.(interface{ idle() map[string]string }); ok {
		idle = c.idle()
	}
	entry := func(set string) *Entry {
		key, _, _ := strings.Cut(set, "=")
		return among[0].keys.entry(strings.TrimSpace(key))
	}
	for i, set := range sets {
		e := entry(set)
		switch {
		case e == nil:
		case flags[e.Key] != "":
			out = append(out, fmt.Sprintf("--set %s has no effect: --%s is given too", shorten(set), flags[e.Key]))
		case slices.ContainsFunc(sets[i+1:], func(later string) bool { return entry(later) == e }):
			out = append(out, fmt.Sprintf("--set %s has no effect: %s is set again behind it", shorten(set), e.Key))
		case e.Effect == NoEffect:
			out = append(out, fmt.Sprintf("--set %s has no effect: %s", shorten(set), e.About))
		case idle[e.Key] != "":
			out = append(out, fmt.Sprintf("--set %s has no effect: %s", shorten(set), idle[e.Key]))
		}
	}
	return out
}

// idle returns the keys that have no effect in c, each with the reason.
func (c *AD) idle() map[string]string {
	out := map[string]string{}
	because := func(why string, keys ...string) {
		for _, k := range keys {
			out[k] = why
		}
	}
	if !c.UseCompressedContext {
		because("use_compressed_context is false, so contexts have no regions", "compress_interval", "compress_min", "region_ahead")
	}
	if c.Method != MethodIQL {
		because("method is "+c.Method, "iql_discount", "iql_expectile", "iql_beta", "iql_weight")
	}
	if c.ValidationGoals == 0 {
		because("validation_goals is 0, so there are no goals to choose temperatures on", "eval_tune")
	}
	if c.AverageDecay == 0 {
		because("average_decay is 0, so there is no mean of the weights", "average_interval")
	}
	return out
}
