package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

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
	got := reflow("A line that is\nfollowed by another.\n\n  an example --with flags that must stay as they are\nAn end.", 20)
	want := "A line that is\nfollowed by another.\n\n  an example --with flags that must stay as they are\nAn end."
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
