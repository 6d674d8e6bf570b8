package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/report"
)

// What a reader could break: texts of help may be written with lines of any length; they are laid
// out here, for the screen at hand. Lines that begin with a blank are commands: they are broken
// before a word, with a backslash, so that they can be copied as they stand.

// WidestHelp is as wide as help gets: longer lines are hard to read.
const WidestHelp = 100

// narrowestHelp is what a screen must have for help to fit: the columns of flags take most of it.
const narrowestHelp = 56

// HelpWidth is the width of help on the screen at hand.
func (a *App) HelpWidth() int {
	switch {
	case a.Columns > 0:
		return max(narrowestHelp, min(WidestHelp, a.Columns-1))
	case IsTerminal(a.Stdout):
		return max(narrowestHelp, min(WidestHelp, WidthOf(a.Stdout)-1))
	}
	// a shell exports it to a pipe only when told to
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(narrowestHelp, min(WidestHelp, n-1))
	}
	return WidestHelp
}

// LayHelp has the help of a verb laid out when somebody asks for it: what it does in a line, its
// use, examples, the details, its flags.
func (a *App) LayHelp(root *cobra.Command) {
	width := a.HelpWidth()
	cobra.AddTemplateFunc("flagUsages", func(cmd *cobra.Command, inherited bool) string {
		flags := cmd.LocalFlags()
		if inherited {
			flags = cmd.InheritedFlags()
		}
		return inGroups(cmd, flags, width)
	})
	cobra.AddTemplateFunc("short", func(cmd *cobra.Command) string {
		name := fmt.Sprintf("%-*s ", cmd.NamePadding(), cmd.Name())
		indent := 2 + len(name)
		return name + strings.Join(report.Wrap(cmd.Short, width-indent, 0), "\n"+strings.Repeat(" ", indent))
	})
	cobra.AddTemplateFunc("more", func(cmd *cobra.Command) string {
		return reflow(fmt.Sprintf("%s VERB --help says more about a verb.", cmd.CommandPath()), width)
	})
	// a command without words of its own only holds others: its own line would promise flags
	cobra.AddTemplateFunc("acts", func(cmd *cobra.Command) bool {
		return cmd.Runnable() && (!cmd.HasAvailableSubCommands() || strings.Contains(cmd.Use, " "))
	})
	template := root.UsageTemplate()
	template = strings.ReplaceAll(template, ".LocalFlags.FlagUsages | trimTrailingWhitespaces", "flagUsages . false")
	template = strings.ReplaceAll(template, "{{rpad .Name .NamePadding }} {{.Short}}", "{{short .}}")
	template = strings.ReplaceAll(template, `Use "{{.CommandPath}} [command] --help" for more information about a command.`, "{{more .}}")
	template = strings.ReplaceAll(template, "{{if .Runnable}}", "{{if acts .}}")
	template = strings.ReplaceAll(template, "{{.Example}}{{end}}", "{{.Example}}{{end}}{{if .Long}}\n\n{{.Long}}{{end}}")
	template = strings.ReplaceAll(template, ".InheritedFlags.FlagUsages | trimTrailingWhitespaces", "flagUsages . true")
	root.SetUsageTemplate(template)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		cmd.Long, cmd.Example = reflow(cmd.Long, width), reflow(cmd.Example, width)
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s", reflow(cmd.Short+".", width), cmd.UsageString())
	})
}

// groupOf is the annotation of a flag with the heading that it stands under in help, and of a
// command with all of its headings.
const groupOf = "haul_group"

// Grouped puts flags under a heading in help, headings in the order of the calls; the others stand
// above the first.
func Grouped(cmd *cobra.Command, heading string, names ...string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[groupOf] += heading + "\n"
	for _, name := range names {
		if err := cmd.Flags().SetAnnotation(name, groupOf, []string{heading}); err != nil {
			panic(err) // the verb has registered no such flag
		}
	}
}

// inGroups lays out flags of a command under their headings.
func inGroups(cmd *cobra.Command, flags *pflag.FlagSet, width int) string {
	var out strings.Builder
	for heading := range strings.SplitSeq(strings.TrimSuffix("\n"+cmd.Annotations[groupOf], "\n"), "\n") {
		under := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if given := f.Annotations[groupOf]; heading == "" && given == nil || given != nil && given[0] == heading {
				under.AddFlag(f)
			}
		})
		if heading != "" && under.HasAvailableFlags() {
			fmt.Fprintf(&out, "  %s:\n", heading)
		}
		out.WriteString(under.FlagUsagesWrapped(width))
	}
	return strings.TrimRight(out.String(), " \n")
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
			out = append(out, breakCommand(line, width))
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// breakCommand breaks a command that a screen would break in mid-word.
func breakCommand(line string, width int) string {
	if len([]rune(line)) <= width {
		return line
	}
	words := strings.Fields(line)
	indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))
	out, at := indent+words[0], indent+words[0]
	for i, w := range words[1:] {
		more := at + " " + w
		room := width
		if i+2 < len(words) {
			room -= len(" \\")
		}
		if len([]rune(more)) > room {
			out += " \\\n" + indent + "  " + w
			at = indent + "  " + w
			continue
		}
		out += " " + w
		at = more
	}
	return out
}

// unicodeLocale says whether the locale shows more than ASCII, by the variables that decide it, the
// strongest first. Where none is set, as in most containers, the terminal outside decides, and that
// shows Unicode.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true
}
