package cli

import (
	"context"
	"strings"
	"testing"

	"haul/internal/run"
)

func TestReflow(t *testing.T) {
	got := reflow("A line that is\nfollowed by another.\n\n  an example --with flags that a screen would cut\n  a short one\nAn end.", 20)
	want := "A line that is\nfollowed by another.\n\n  an example \\\n    --with flags \\\n    that a screen \\\n    would cut\n  a short one\nAn end."
	if got != want {
		t.Errorf("%q", got)
	}
}

// TestLocalesWithoutUnicode: LC_ALL=C wins over LANG, and gets no braille.
func TestLocalesWithoutUnicode(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", true}, {"C", "", "en_US.UTF-8", false}, {"POSIX", "", "", false}, {"C.UTF-8", "", "C", true}, {"", "", "de_DE.utf8", true},
		{"", "", "de_DE.ISO-8859-1", false}, {"", "en_GB.UTF-8", "C", true},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := unicodeLocale(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestErrorsBreakAtWords: on a narrow screen an error's words stay whole, and so does a command
// that it advises; a pipe gets one line.
func TestErrorsBreakAtWords(t *testing.T) {
	err := &run.Interrupted{Dir: "runs/quick-001", Place: "in epoch 2 after step 17 of 25", Cause: context.Canceled}
	var out strings.Builder
	if a := (&App{Stderr: &out, Columns: 60}); a.Exit(t.Context(), err) != ExitInterrupted {
		t.Error("another code")
	}
	want := "haul: interrupted in epoch 2 after step 17 of 25; all is\n  saved, continue with haul train --resume runs/quick-001\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	(&App{Stderr: &out, Columns: 50}).Exit(t.Context(), err)
	if !strings.HasSuffix(out.String(), "\n  haul train --resume runs/quick-001\n") {
		t.Errorf("the command is broken: %q", out.String())
	}
	out.Reset()
	if (&App{Stderr: &out}).Exit(t.Context(), err); strings.Count(out.String(), "\n") != 1 {
		t.Errorf("a pipe gets %q", out.String())
	}
}
