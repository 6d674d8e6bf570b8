package limitstest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"haul/internal/limits/limitstest"
)

var held []byte

// TestInputsAreKept: of five inputs the three slowest and the three largest are kept as seeds.
func TestInputsAreKept(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(limitstest.Keep, folder)
	for i := range 5 {
		limitstest.Reading(t, i, func() {
			held = make([]byte, 1<<20*(1+i))
			time.Sleep(time.Duration(5-i) * 20 * time.Millisecond)
		}, []byte{byte('a' + i)}, i%2 == 0, uint16(i))
	}
	for kind, want := range map[string][]int{"slow": {0, 1, 2}, "large": {2, 3, 4}} {
		seeds, err := filepath.Glob(filepath.Join(folder, t.Name(), kind+"-*"))
		if err != nil || len(seeds) != len(want) {
			t.Errorf("%s: %v, %v", kind, seeds, err)
		}
		for _, path := range seeds {
			text, err := os.ReadFile(path)
			found := false
			for _, i := range want {
				found = found || string(text) == limitstest.Seed([]byte{byte('a' + i)}, i%2 == 0, uint16(i))
			}
			if err != nil || !found {
				t.Errorf("%s: %q, %v", kind, text, err)
			}
		}
	}
	if got := limitstest.Seed([]byte("a\"\xff"), true, uint16(7), "x"); got != "go test fuzz v1\n[]byte(\"a\\\"\\xff\")\nbool(true)\nuint16(7)\nstring(\"x\")\n" {
		t.Errorf("%q", got)
	}
}

// TestAReadingIsCounted: what allocates more than its input allows is counted in full.
func TestAReadingIsCounted(t *testing.T) {
	if limitstest.Most(0) != 64<<20 || limitstest.Most(1<<20) <= limitstest.Most(0) {
		t.Errorf("%d, %d", limitstest.Most(0), limitstest.Most(1<<20))
	}
	inner := &testing.T{}
	done := make(chan bool)
	go func() { // a test of its own, which fails
		defer close(done)
		limitstest.Reading(inner, 0, func() { held = make([]byte, 65<<20) })
	}()
	<-done
	if !inner.Failed() {
		t.Error("65 MB for an input of no bytes are not noticed")
	}
	limitstest.Reading(t, 1<<20, func() { held = make([]byte, 65<<20) })
}
