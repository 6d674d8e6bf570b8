package seeds

import (
	"slices"
	"strings"
	"testing"
)

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]uint64{"1..3": {1, 2, 3}, "4": {4}, "7..7": {7}, "9,1": {9, 1}, "1..2, 5": {1, 2, 5}, "0": {0}, "9223372036854775807": {1<<63 - 1}} {
		if got, err := Parse(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := Parse("1..500,501..1000"); err != nil || len(got) != maxSeeds {
		t.Errorf("%d seeds, %v", len(got), err)
	}
	for text, want := range map[string]string{
		"5..1": "5..1 runs backwards, write 1..5", "": "write seeds as", "1,": "write seeds as", "..5": "write seeds as", "1..": "write seeds as", "1...3": "write seeds as", "-1": "write seeds as",
		"1.5": "write seeds as", "9223372036854775808": "write seeds as", "1,1": "names 1 twice", "1..3,2": "names 2 twice",
		"1..1001": "more than 1000 seeds", "1..500,501..1001": "more than 1000 seeds", "1..9223372036854775807": "more than 1000 seeds",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, %v; want %q", text, got, err, want)
		}
	}
}
