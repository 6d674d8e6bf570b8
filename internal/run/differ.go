package run

import (
	"fmt"
	"strings"

	"haul/internal/config"
)

// SameSettings returns a one-line error that names the settings which make two runs differ, or nil.
func SameSettings(was, is config.Settings) error { return sameText(was, is) }

// sameText compares the YAML of two settings by line. Settings without an effect are not in the
// YAML, and may differ.
func sameText(a, b config.Settings) error {
	ya, err := a.YAML()
	if err != nil {
		return err
	}
	yb, err := b.YAML()
	if err != nil {
		return err
	}
	la, lb := lines(ya), lines(yb)
	for i := range max(len(la), len(lb)) {
		switch {
		case i >= len(la):
			return fmt.Errorf("the run was started without %q: resume with its own settings", strings.TrimSpace(lb[i]))
		case i >= len(lb):
			return fmt.Errorf("the run was started with %q, which is missing here: resume with its own settings", strings.TrimSpace(la[i]))
		case la[i] != lb[i]:
			return fmt.Errorf("the run was started with %q, not %q: resume with its own settings", strings.TrimSpace(la[i]), strings.TrimSpace(lb[i]))
		}
	}
	return nil
}

func lines(yaml []byte) []string { return strings.Split(strings.TrimRight(string(yaml), "\n"), "\n") }

// changed describes each of the keys whose value here differs from the value there.
func changed(there, here config.Settings, keys []string) []string {
	var out []string
	for _, key := range keys {
		if was, is := valueOf(there, key), valueOf(here, key); was != is {
			out = append(out, fmt.Sprintf("%s was %s there and is %s here", key, was, is))
		}
	}
	return out
}

// valueOf returns the value of a key in the YAML of s, "" if it is absent. The last part of the key
// must be unique.
func valueOf(s config.Settings, key string) string {
	text, err := s.YAML()
	if err != nil {
		return ""
	}
	name := key[strings.LastIndexByte(key, '.')+1:] + ": "
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			return value
		}
	}
	return ""
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "a scalar"
	}
	parts := make([]string, len(shape))
	for i, s := range shape {
		parts[i] = fmt.Sprint(s)
	}
	return strings.Join(parts, "×")
}
