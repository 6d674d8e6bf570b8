package config

import (
	"fmt"
	"slices"
	"strings"
)

// Unused says, a line each, which settings of a command line (key=value) change nothing in s: keys
// that are accepted without effect, those that only count beside another, and those that are given
// again by a later one or by one of the flags, which stand in for the keys they are listed by.
// Files of settings name every key, so nothing is said of theirs.
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

// idle are the keys that change nothing, with the reason: the keys beside which they would count.
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
