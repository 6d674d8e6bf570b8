package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// Pages are read in narrow windows and in diffs: their lines end within 100 columns. Tables,
// headings, pictures and code cannot be wrapped, nor can a line that is one word.
const pageColumns = 100

// wideLines lists the lines of a page that are too wide.
func wideLines(page, text string) (out []string) {
	code := false
	for i, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			code = !code
		}
		n := utf8.RuneCountInString(line)
		if fence || code || n <= pageColumns || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "![") {
			continue
		}
		if len(strings.Fields(line)) > 1 {
			out = append(out, fmt.Sprintf("%s:%d: %d columns, %d at most", page, i+1, n, pageColumns))
		}
	}
	return out
}

func TestPagesFit(t *testing.T) {
	for _, page := range pages(t) {
		for _, wide := range wideLines(page, read(t, page)) {
			t.Error(wide)
		}
	}
}

func TestWideLinesAreFound(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 21))
	for _, c := range []struct {
		text string
		want int
	}{
		{long[:100], 0}, {long[:101], 1}, {"- " + long, 1}, {"| " + long + " |", 0}, {"# " + long, 0}, {"![" + long + "](a.svg)", 0},
		{"```\n" + long + "\n```\n" + long, 1}, {strings.Repeat("x", 150), 0}, {strings.Repeat("é ", 50), 0}, {"  ```sh\n" + long + "\n  ```", 0},
	} {
		if got := wideLines("a.md", c.text); len(got) != c.want {
			t.Errorf("%q: %v", c.text, got)
		}
	}
}

// idioms are phrases that readers had to read twice, each with what to write instead. They may not
// stand on pages, nor in what the command line says.
var idioms = []struct{ phrase, instead string }{
	{`comes? with (the program|it)`, "shipped"},
	{`as they came`, "in order of arrival"},
	{`(had|have|has) to be served`, "required"},
	{`in silence`, "silently"},
	{`without a word`, "silently"},
	{`nobody says`, "by default"},
	{`where (nothing|none) is said`, "by default"},
	{`(is|are) told so`, "say who says what"},
	{`in the mean of`, "on average over"},
	{`further parts`, "further constraints"},
	{`the first first`, "oldest first"},
	{`(in|beside) print`, "published"},
	{`hindsight holds best`, "the best action in hindsight"},
	{`goals never seen`, "held-out goals"},
}

// idiomsIn lists the idioms of a text, which may stand on two lines.
func idiomsIn(where, text string) (out []string) {
	text = strings.Join(strings.Fields(text), " ")
	for _, i := range idioms {
		if found := regexp.MustCompile(`(?i)\b` + i.phrase + `\b`).FindString(text); found != "" {
			out = append(out, fmt.Sprintf("%s: %q: write %s", where, found, i.instead))
		}
	}
	return out
}

func TestIdiomsStayOut(t *testing.T) {
	for _, page := range pages(t) {
		for _, found := range idiomsIn(page, read(t, page)) {
			t.Error(found)
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "cmd", "haul", "*", "*.go"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				for _, found := range idiomsIn(file, text.Value) {
					t.Error(found)
				}
			}
			return true
		})
	}
}

func TestIdiomsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"those that come with it":                       1,
		"Policies that come\nwith the program":          1,
		"customers who had to be served are not":        1,
		"dropped in silence, without a word":            2,
		"it comes with a picture; required customers":   0,
		"a mean of ten, in the meantime; blueprint":     0,
		"problems with further parts, in the mean of 4": 2,
	} {
		if got := idiomsIn("a.md", text); len(got) != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
