package run

import (
	"fmt"
	"strings"

	"haul/internal/config"
)

// sameText compares settings as they are written, line by line: what has no effect is not written, and may differ.
func sameText(a, b config.Settings) error {
	ya, err := a.YAML()
	if err != nil {
		return err
	}
	yb, err := b.YAML()
	if err != nil {
		return err
	}
	la, lb := strings.Split(string(ya), "\n"), strings.Split(string(yb), "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return fmt.Errorf("the run was started with %q, not %q: resume with its own settings", strings.TrimSpace(la[i]), strings.TrimSpace(lb[i]))
		}
	}
	return nil
}

// sameValue says whether two settings write the same value for a key.
func sameValue(a, b config.Settings, key string) bool {
	va, ok := valueOf(a, key)
	vb, same := valueOf(b, key)
	return ok && same && va == vb
}

// valueOf is what settings write for a key; no section has another key of the same last name.
func valueOf(s config.Settings, key string) (string, bool) {
	text, err := s.YAML()
	if err != nil {
		return "", false
	}
	name := key[strings.LastIndexByte(key, '.')+1:] + ": "
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			return value, true
		}
	}
	return "", false
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
