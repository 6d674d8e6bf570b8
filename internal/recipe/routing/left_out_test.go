package routing

import (
	"strings"
	"testing"
)

// TestVariantsLeftOutAreNoted, where there are some.
func TestVariantsLeftOutAreNoted(t *testing.T) {
	for _, left := range [][]string{nil, {"vrptw", "ovrp"}} {
		var b strings.Builder
		if err := (&ByVariant{Left: left}).Text(&b, func(s string) string { return s }); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "2 variants are left out"); got != (left != nil) {
			t.Errorf("%d left out: %q", len(left), b.String())
		}
	}
}
