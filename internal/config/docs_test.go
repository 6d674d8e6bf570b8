package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	docsHeading = regexp.MustCompile(`^## (\S+): which keys matter first$`)
	docsCode    = regexp.MustCompile("`([^`]*)`")
	docsValue   = regexp.MustCompile(`\[[^\]]*\]|[^, ][^,]*`) // a pair is one value
)

// docs/settings.md names the most important keys and their defaults. In a table cell with several
// keys, only the first needs its section.
func TestSettingsPageNamesKeysAndDefaults(t *testing.T) {
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe, rows := "", map[string]int{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := docsHeading.FindStringSubmatch(line); m != nil {
			recipe = m[1]
		} else if strings.HasPrefix(line, "#") {
			recipe = ""
		}
		if recipe == "" || !strings.HasPrefix(line, "| `") {
			continue
		}
		rows[recipe]++
		cells := strings.Split(strings.Trim(line, "|"), "|")
		section, values := "", docsValue.FindAllString(cells[1], -1)
		keys := docsCode.FindAllStringSubmatch(cells[0], -1)
		if len(values) != len(keys) {
			t.Errorf("%s: %d keys, %d defaults", line, len(keys), len(values))
			continue
		}
		for i, m := range keys {
			key := m[1]
			if !strings.Contains(key, ".") {
				key = section + key
			} else {
				section = key[:strings.LastIndexByte(key, '.')+1]
			}
			entries, err := Explain(recipe, key)
			if err != nil || len(entries) != 1 {
				t.Errorf("%s: key %s: %v", line, key, err)
				continue
			}
			said, isCode := strings.CutSuffix(strings.TrimPrefix(strings.TrimSpace(values[i]), "`"), "`")
			want := entries[0].Default
			if isCode {
				want = strings.Trim(want, `"`)
			}
			if !sameValue(said, want) {
				t.Errorf("docs/settings.md: %s has the default %s, the page says %s", key, want, said)
			}
		}
	}
	for _, name := range Recipes() {
		if rows[name] == 0 {
			t.Errorf("docs/settings.md has no keys of %s", name)
		}
	}
}

// sameValue compares numbers by value: 3e-4 equals 0.0003.
func sameValue(a, b string) bool {
	e := Entry{kind: kindFloat, bounds: anything}
	x, bad := e.read(fromSet(a, kindFloat))
	y, worse := e.read(fromSet(b, kindFloat))
	if bad == "" && worse == "" {
		return x == y
	}
	return a == b
}
