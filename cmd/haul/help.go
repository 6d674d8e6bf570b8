package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/report"
)

// What a reader could break: texts of help may be written with lines of any length; they are laid out here, for the screen at hand. Lines that
// begin with a blank (examples, tables) are left as they are, so these must fit by themselves.

// widestHelp is as wide as help gets: longer lines are hard to read.
const widestHelp = 100

// helpWidth is the width of help on the screen at hand.
func (a *app) helpWidth() int {
	if isTerminal(a.stdout) {
		return max(40, min(widestHelp, widthOf(a.stdout)-1))
	}
	return widestHelp
}

// layHelp lays the help of every verb out.
func (a *app) layHelp(root *cobra.Command) {
	width := a.helpWidth()
	cobra.AddTemplateFunc("flagUsages", func(cmd *cobra.Command, inherited bool) string {
		flags := cmd.LocalFlags()
		if inherited {
			flags = cmd.InheritedFlags()
		}
		return strings.TrimRight(flags.FlagUsagesWrapped(width), " \n")
	})
	template := root.UsageTemplate()
	template = strings.ReplaceAll(template, ".LocalFlags.FlagUsages | trimTrailingWhitespaces", "flagUsages . false")
	template = strings.ReplaceAll(template, ".InheritedFlags.FlagUsages | trimTrailingWhitespaces", "flagUsages . true")
	root.SetUsageTemplate(template)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Long = reflow(cmd.Long, width)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// reflow lays paragraphs out anew: lines that follow each other become one and are broken at words.
func reflow(text string, width int) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, report.Wrap(strings.Join(paragraph, " "), width, 0)...)
			paragraph = nil
		}
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, " "):
			end()
			out = append(out, line)
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// unicodeLocale says whether the locale shows more than ASCII, by the variables that decide it, the strongest first. Where none is set, as in
// most containers, the terminal outside decides, and that shows Unicode.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
