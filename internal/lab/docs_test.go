package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/lab.md was generated on another machine. The parts that do not depend on the machine equal
// what this code generates.
func TestPageOfTheDocsIsOurs(t *testing.T) {
	text, err := os.ReadFile("../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	want := func(part string) {
		t.Helper()
		if !strings.Contains(page, part) {
			t.Errorf("docs/lab.md does not have\n%s", part)
		}
	}
	for _, r := range rules {
		var b strings.Builder
		paragraph(&b, "- ", r)
		want(b.String())
	}
	for _, r := range reports {
		want("- **Report " + r.name + ".** " + r.says[:20])
	}
	for _, x := range experiments {
		want(fmt.Sprintf("\n## %s: %s\n", x.Name, x.Title))
		if !strings.HasPrefix(x.Name, "arithmetic") {
			continue
		}
		results, err := Run(context.Background(), []Experiment{x}, Options{Device: "cpu"}, func(Result) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range results[0].Claims {
			want(fmt.Sprintf("\n| %s | %s | %s | **%s** |", f.Report, cellText(f.Says), f.Shown, f.Verdict))
		}
	}
}

func TestParagraph(t *testing.T) {
	var b strings.Builder
	paragraph(&b, "- ", strings.Repeat("wörd ", 40))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "- wörd") || !strings.HasPrefix(lines[1], "  wörd") {
		t.Errorf("%q", lines)
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > pageWidth {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}
