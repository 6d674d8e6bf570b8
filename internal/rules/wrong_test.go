package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the messages of testdata/wrong.txt anew")

// wrong is a wrong problem file: the orienteering problem with one text replaced by another, and
// the message that a user reads.
type wrong struct{ name, old, text, message string }

// readWrong reads testdata/wrong.txt: "== name", lines of the file that are replaced after "-",
// what replaces them after "+", and the message after ">".
func readWrong(t *testing.T) (out []wrong) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "wrong.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if name, ok := strings.CutPrefix(line, "== "); ok {
			out = append(out, wrong{name: name})
			continue
		}
		if line == "" {
			continue
		}
		w := &out[len(out)-1]
		to := map[byte]*string{'-': &w.old, '+': &w.text, '>': &w.message}[line[0]]
		*to += strings.TrimPrefix(line[1:], " ") + "\n"
	}
	return out
}

// TestWrongFiles: every wrong file is refused with its message, which names the line and what to
// write instead.
func TestWrongFiles(t *testing.T) {
	base, err := os.ReadFile(filepath.Join("..", "..", "problems", "op", "op.go"))
	if err != nil {
		t.Fatal(err)
	}
	list := readWrong(t)
	var golden strings.Builder
	for _, w := range list {
		if strings.Count(string(base), w.old) != 1 && w.old != "" {
			t.Fatalf("%s: the text that it replaces is there %d times", w.name, strings.Count(string(base), w.old))
		}
		text := strings.Replace(string(base), w.old, w.text, 1)
		if w.old == "" {
			text = string(base) + w.text
		}
		_, err := Compile("op.go", []byte(text), nil)
		if err == nil {
			t.Errorf("%s: the file is accepted", w.name)
			continue
		}
		got := err.Error() + "\n"
		if got != w.message && !*update {
			t.Errorf("%s: the message is\n%swant\n%s", w.name, got, w.message)
		}
		golden.WriteString("== " + w.name + "\n" + lines("-", w.old) + lines("+", w.text) + lines(">", got) + "\n")
	}
	if len(list) < 40 {
		t.Errorf("%d wrong files, want 40", len(list))
	}
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", "wrong.txt"), []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func lines(mark, text string) (out string) {
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line != "" {
			out += mark + " " + line
		}
	}
	return out
}
