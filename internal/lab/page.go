package lab

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Page describes a generated page.
type Page struct {
	Command string   // the command that generates it
	Machine []string // one line per component
}

// reports describes each of the five reports in a sentence.
var reports = []struct{ name, says string }{
	{"000", "An epoch took 48 s with nine-fold duplicates of a computation and 64 s without them; the vectorised cost of routes is blamed."},
	{"001", "Costs computed on the GPU instead of the CPU are blamed."},
	{"002", "Distance matrices copied to the GPU and back are blamed."},
	{"003", "Remedies, from compiled functions to copies beside the work, most with the share of the time they should save."},
	{"004", "Of the in-context agent's program on four GPUs, at 7 s per iteration: data loading, collating, tensors made in loops and small batches are blamed."},
}

// rules describes how verdicts are computed; the thresholds are in verdict.go.
var rules = []string{
	fmt.Sprintf("A claim that one way is faster than another is a ratio of their times. Within %.0f %% of 1 it has **no effect**; past that on the wrong side it is **contradicted**.", 100*(noEffect-1)),
	fmt.Sprintf("A claim with a number **holds** where the effect is within a factor of %d of the claimed one, since another machine, library and interpreter made it: of a ratio, what it says beyond 1, "+
		"so that 1.5–2× holds from 1.25× to 3×; of a time, the time. A claim in percent of a step holds within %.0f %% of the time. Outside it is **overstated** or **understated**.", slackOrder, 100*(slackPercent-1)),
	fmt.Sprintf("A figure that follows from others in the same report **holds** within %.0f %%, which is more than its rounding; else it is **wrong**.", 100*slackRound),
	"Contenders are checked to compute the same, then timed in turn, round after round; times are medians. Every GPU time includes the wait for the result.",
}

// Write writes the results as a page of Markdown. It does not write pictures: picture returns the
// address of an experiment's picture.
func (p Page) Write(w io.Writer, results []Result, picture func(name string) string) error {
	var b strings.Builder
	b.WriteString("# Lab: the claims of the five reports, measured\n\n")
	paragraph(&b, "", "The original program, the PyTorch program that Haul replaces, was slow, and five reports, numbered 000 to 004, "+
		"each named another reason. This page puts every claim of theirs that a machine can test to the test.")
	b.WriteString("\n")
	for _, r := range reports {
		text := fmt.Sprintf("**Report %s.** %s", r.name, r.says)
		if said := countVerdicts(results, r.name); said != "" {
			text += " " + said
		}
		paragraph(&b, "- ", text)
	}
	paragraph(&b, "\n", countVerdicts(results, ""))
	fmt.Fprintf(&b, "\nThe page is made by\n`%s`\nand by nothing else: every verdict is computed from the numbers of that run.\n", p.Command)
	b.WriteString("\n## Verdicts\n\n| report | claim | measured | verdict | experiment |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range results {
		link := fmt.Sprintf("[%s](#%s)", r.Name, anchor(r))
		switch {
		case r.Needs != "":
			fmt.Fprintf(&b, "| | %s | %s | | %s |\n", cellText(r.Title), cellText(r.Needs), link)
		case r.Error != "":
			fmt.Fprintf(&b, "| | %s | failed: %s | | %s |\n", cellText(r.Title), cellText(r.Error), link)
		}
		for _, f := range r.Claims {
			fmt.Fprintf(&b, "| %s | %s | %s | **%s** | %s |\n", f.Report, cellText(f.Says), f.Shown, f.Verdict, link)
		}
	}
	b.WriteString("\n## How a verdict is computed\n\n")
	for _, r := range rules {
		paragraph(&b, "- ", r)
	}
	b.WriteString("\n## The machine\n\n")
	for _, m := range p.Machine {
		paragraph(&b, "- ", m)
	}
	for _, r := range results {
		fmt.Fprintf(&b, "\n## %s: %s\n\n", r.Name, r.Title)
		switch {
		case r.Needs != "":
			fmt.Fprintf(&b, "%s\n", sentence(r.Needs))
			continue
		case r.Error != "":
			fmt.Fprintf(&b, "Failed: %s\n\n", cellText(r.Error))
		}
		r.markdown(&b)
		if r.Plot != nil {
			fmt.Fprintf(&b, "\n![%s](%s)\n", r.Title, picture(r.Name))
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// pageWidth is the column at which prose is wrapped.
const pageWidth = 100

// paragraph writes a text after a list marker and indents further lines by the marker's width.
func paragraph(b *strings.Builder, mark, text string) {
	b.WriteString(mark)
	indent := strings.Repeat(" ", len(strings.TrimLeft(mark, "\n")))
	at := len(indent)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > pageWidth:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	b.WriteByte('\n')
}

// countVerdicts counts the verdicts on a report's claims, or on all claims for "". It returns "" if
// there are none.
func countVerdicts(results []Result, report string) string {
	counts, claims, silent := map[Verdict]int{}, 0, 0
	for _, r := range results {
		for _, f := range r.Claims {
			if report == "" || f.Report == report {
				counts[f.Verdict]++
				claims++
			}
		}
		if r.Needs != "" || r.Error != "" {
			silent++
		}
	}
	var parts []string
	for _, v := range []Verdict{Holds, Understated, Overstated, NoEffect, Contradicted, Wrong} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v, counts[v]))
		}
	}
	if report != "" {
		if claims == 0 {
			return ""
		}
		return fmt.Sprintf("%d claims: %s.", claims, strings.Join(parts, ", "))
	}
	text := fmt.Sprintf("Claims put to the test: %d. %s.", claims, sentence(strings.Join(parts, ", ")))
	if silent > 0 {
		text += fmt.Sprintf(" Experiments that could not run: %d.", silent)
	}
	return strings.ReplaceAll(text, "..", ".")
}

func (r *Result) markdown(b *strings.Builder) {
	for _, t := range r.tables() {
		if t.Title != "" {
			fmt.Fprintf(b, "%s:\n\n", t.Title)
		}
		fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(t.Head, " | "), strings.Repeat(" --- |", len(t.Head)))
		for _, row := range t.Rows {
			fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
		b.WriteByte('\n')
	}
	for _, n := range r.Notes {
		paragraph(b, "- ", sentence(n))
	}
}

// tables returns the result's tables, or its rows as one table.
func (r *Result) tables() []Table {
	if len(r.Tables) > 0 || len(r.Rows) == 0 {
		return r.Tables
	}
	t := Table{Head: []string{"what", "value"}}
	for _, row := range r.Rows {
		t.Rows = append(t.Rows, []string{row.What, row.String()})
	}
	return []Table{t}
}

// WriteText writes one result for a terminal.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%.1f s)\n", r.Name, r.Title, r.Seconds)
	if r.Needs != "" {
		fmt.Fprintf(&b, "  %s\n", r.Needs)
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "  failed: %s\n", cellText(r.Error))
	}
	for _, t := range r.tables() {
		if t.Title != "" {
			fmt.Fprintf(&b, "  %s\n", t.Title)
		}
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		if len(t.Head) > 2 {
			fmt.Fprintf(table, "    %s\n", strings.Join(t.Head, "\t"))
		}
		for _, row := range t.Rows {
			fmt.Fprintf(table, "    %s\n", strings.Join(row, "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, f := range r.Claims {
		fmt.Fprintf(&b, "  claim     %s: %s\n  measured  %s\n  verdict   %s\n", f.Report, f.Says, f.Shown, f.Verdict)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note      %s\n", n)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// anchor returns the address that Markdown gives the result's heading: lower case, spaces as
// hyphens, only letters, digits and hyphens.
func anchor(r Result) string {
	var b strings.Builder
	for _, c := range strings.ToLower(r.Name + ": " + r.Title) {
		switch {
		case c == ' ':
			b.WriteByte('-')
		case c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			b.WriteRune(c)
		}
	}
	return b.String()
}

// cellText escapes a text for a table cell.
func cellText(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", "; ").Replace(s)
}

// sentence returns the text with a capital at its beginning and a full stop at its end.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
