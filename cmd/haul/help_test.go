package main

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"haul/internal/run"
)

// TestHelpFitsNarrowScreens: at 80 and at 60 columns no line of any verb's help is broken by the
// screen, and examples can still be copied.
func TestHelpFitsNarrowScreens(t *testing.T) {
	joined := func(s string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(s, "\\\n", " ")), " ")
	}
	for _, columns := range []int{200, 80, 60} {
		var out strings.Builder
		a := &app{stdout: &out, stderr: &out, columns: columns}
		root := a.newRoot()
		root.SetOut(&out)
		var walk func(cmd *cobra.Command)
		walk = func(cmd *cobra.Command) {
			out.Reset()
			cmd.InitDefaultHelpFlag()
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); len([]rune(line)) > columns {
					t.Errorf("%s at %d columns: a line of %d: %s", cmd.CommandPath(), columns, len([]rune(line)), line)
				}
			}
			if got, want := joined(out.String()), joined(cmd.Example); !strings.Contains(got, want) {
				t.Errorf("%s at %d columns: %q does not show the examples %q", cmd.CommandPath(), columns, got, want)
			}
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}
		walk(root)
	}
}

// TestHelpFitsAScreen: no line of any verb's help is longer than 100 characters.
func TestHelpFitsAScreen(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		for line := range strings.Lines(haul(t, args...).stdout) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > widestHelp {
				t.Errorf("%s: a line of %d: %s", cmd.CommandPath(), len([]rune(line)), line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).newRoot())
}

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
	if a := (&app{stderr: &out, columns: 60}); a.exit(t.Context(), err) != exitInterrupted {
		t.Error("another code")
	}
	want := "haul: interrupted in epoch 2 after step 17 of 25; all is\n  saved, continue with haul train --resume runs/quick-001\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	(&app{stderr: &out, columns: 50}).exit(t.Context(), err)
	if !strings.HasSuffix(out.String(), "\n  haul train --resume runs/quick-001\n") {
		t.Errorf("the command is broken: %q", out.String())
	}
	out.Reset()
	if (&app{stderr: &out}).exit(t.Context(), err); strings.Count(out.String(), "\n") != 1 {
		t.Errorf("a pipe gets %q", out.String())
	}
}
