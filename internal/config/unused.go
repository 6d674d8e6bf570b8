package config

import (
	"fmt"
	"strings"
)

// Unused says, a line each, which settings of a command line (key=value) change nothing in s: keys
// that are accepted without effect, and those that only count beside another. Files of settings
// name every key, so nothing is said of theirs.
func Unused(s Settings, sets []string) (out []string) {
	among, err := recipesNamed(s.Recipe())
	if err != nil {
		return nil
	}
	idle := map[string]string{}
	if c, ok := s.(interface{ idle() map[string]string }); ok {
		idle = c.idle()
	}
	for _, set := range sets {
		key, _, _ := strings.Cut(set, "=")
		e := among[0].keys.entry(strings.TrimSpace(key))
		switch {
		case e == nil:
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
