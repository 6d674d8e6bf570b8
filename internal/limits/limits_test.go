package limits_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"haul/internal/limits"
)

// TestLimitsAreDocumented: docs/formats.md has every limit with both of its values.
func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range limits.Table {
		if row := fmt.Sprintf("| `%s` | %s | %d | %d |\n", l.Key, l.Text, l.Command, l.Service); !strings.Contains(string(page), row) {
			t.Errorf("docs/formats.md lacks: %s", row)
		}
	}
}

// TestLimitsAreRaised: a flag sets one limit, and what it cannot mean is refused.
func TestLimitsAreRaised(t *testing.T) {
	s := limits.ForService()
	if err := s.Raise([]string{"windows=2000", "types=1"}); err != nil || s.Most(limits.Windows) != 2000 || s.Most(limits.Types) != 1 || s.Most(limits.Breaks) != limits.Table[limits.Breaks].Service {
		t.Errorf("%v: %d windows, %d types", err, s.Most(limits.Windows), s.Most(limits.Types))
	}
	for _, bad := range []string{"", "windows", "windows=", "windows=0", "windows=-1", "windows=x", "windows=1e3", "windows=99999999999999", "winds=3", "depth=17"} {
		if err := s.Raise([]string{bad}); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	var none *limits.Set
	if none.Most(limits.Rows) != limits.Table[limits.Rows].Command {
		t.Error("no set has other limits than the command line")
	}
}

// TestOver: as much as a limit is taken, one more is not.
func TestOver(t *testing.T) {
	for _, s := range []*limits.Set{nil, limits.ForCommand(), limits.ForService()} {
		most := s.Most(limits.Breaks)
		var over *limits.Error
		if err := s.Over(limits.Breaks, most); err != nil {
			t.Error(err)
		}
		if err := s.Over(limits.Breaks, most+1); !errors.As(err, &over) || over.Has != most+1 || over.Most != most {
			t.Errorf("%v", err)
		}
	}
}
