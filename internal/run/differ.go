package run

import (
	"fmt"
	"strings"

	"haul/internal/config"
)

// SameSettings says in one line which differences of settings would make the runs differ.
func SameSettings(was, is config.Settings) error { return sameText(was, is) }

// sameText compares settings as they are written, line by line: what has no effect is not written,
// and may differ.
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

// changed tells of each of the keys that stands for another value here than in the settings of
// before.
func changed(there, here config.Settings, keys []string) []string {
	var out []string
	for _, key := range keys {
		if was, is := valueOf(there, key), valueOf(here, key); was != is {
			out = append(out, fmt.Sprintf("%s was %s there and is %s here", key, was, is))
		}
	}
	return out
}

// valueOf is what settings write for a key whose last name no other key has; "" where they do not
// write it.
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
