package root_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"haul/cmd/haul/clitest"
)

// example is a command line that a user may copy, or a file that a page shows by name.
type example struct {
	where  string
	line   string
	words  []string // after haul
	file   string   // of a file, in place of words
	text   string
	spoken bool // within a sentence, perhaps with placeholders
}

var (
	inlineCommand = regexp.MustCompile("`((?:haul|go run ./cmd/haul) [^`]+)`")
	namedFile     = regexp.MustCompile(`^# ([\w.-]+\.\w+)$`)
)

// pageExamples are those of a page: of its fenced blocks, in order; and those of which no more is
// asked than a verb and flags that exist, within sentences and in blocks fenced as "sh yours",
// which are about a reader's own files. A block whose first line is a comment with a file's name is
// that file.
func pageExamples(path string) (fenced, spoken []example, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	fence, from, block := "", 0, []string(nil)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		where := fmt.Sprintf("%s:%d", filepath.Base(path), number)
		info, mark := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case mark && fence == "":
			fence, from, block = "```"+info, number, nil
		case mark:
			all := blockExamples(filepath.Base(path), from, block)
			if strings.HasSuffix(fence, " yours") {
				spoken = append(spoken, all...)
			} else {
				fenced = append(fenced, all...)
			}
			fence = ""
		case fence != "":
			block = append(block, line)
		default:
			for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
				spoken = append(spoken, commands(where, m[1])...)
			}
		}
	}
	return fenced, spoken, nil
}

// blockExamples are those of a fenced block that begins after a line of its page.
func blockExamples(page string, from int, block []string) (out []example) {
	if len(block) > 0 {
		if name := namedFile.FindStringSubmatch(block[0]); name != nil {
			return []example{{where: fmt.Sprintf("%s:%d", page, from+1), line: block[0], file: name[1], text: strings.Join(block, "\n") + "\n"}}
		}
	}
	joined := ""
	for i, line := range block {
		if more, ok := strings.CutSuffix(strings.TrimSpace(line), "\\"); ok {
			joined += more
			continue
		}
		out = append(out, commands(fmt.Sprintf("%s:%d", page, from+1+i), joined+strings.TrimSpace(line))...)
		joined = ""
	}
	return out
}

// helpExamples are those of a command and all below it, by command.
func helpExamples(cmd *cobra.Command) map[string][]example {
	out := map[string][]example{}
	for line := range strings.Lines(cmd.Example) {
		path := cmd.CommandPath()
		out[path] = append(out[path], commands(path+" --help", strings.TrimSpace(line))...)
	}
	for _, sub := range cmd.Commands() {
		for path, all := range helpExamples(sub) {
			out[path] = all
		}
	}
	return out
}

// commands are the calls of haul in a line of shell.
func commands(where, line string) (out []example) {
	for _, words := range shell(strings.TrimPrefix(line, "$ ")) {
		if slices.ContainsFunc(words, func(w string) bool { return w == "VERB" || w == "..." || w == "…" }) {
			continue // of any verb, or of part of a line
		}
		for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
			words = words[1:]
		}
		switch {
		case len(words) > 3 && slices.Equal(words[:3], []string{"go", "run", "./cmd/haul"}):
			out = append(out, example{where: where, line: line, words: words[3:]})
		case len(words) > 1 && (words[0] == "haul" || words[0] == "./haul"):
			out = append(out, example{where: where, line: line, words: words[1:]})
		}
	}
	return out
}

// shell splits a line into commands and those into words, as far as examples need it: quotes,
// comments, && and ;. What a pipe or a redirection leads to is left out.
func shell(line string) (out [][]string) {
	var words []string
	word, quote, some, silent := "", rune(0), false, false
	end := func() {
		if some && !silent {
			words = append(words, word)
		}
		word, some = "", false
	}
	next := func() {
		end()
		if len(words) > 0 {
			out = append(out, words)
		}
		words, silent = nil, false
	}
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, some = c, true
		case c == ' ' || c == '\t':
			end()
		case c == '#' && !some:
			next()
			return out
		case c == '|' || c == '>' || c == '<':
			if word == "1" || word == "2" {
				some = false // a descriptor
			}
			end()
			silent = true
		case c == '&' || c == ';':
			next()
		default:
			word, some = word+string(c), true
		}
	}
	next()
	return out
}

// What the tests above find: a file, a line that goes on, a reader's own files, a word in a
// sentence.
func TestExamplesAreFound(t *testing.T) {
	page := clitest.Write(t, "page.md", "# A page\n\n```yaml\n# mine.yaml\na: 1\n```\n\nSay `haul version` or `haul eval --checkpoint DIR`:\n\n"+
		"```sh\nhaul config check mine.yaml \\\n  --json   # words\nls\n```\n\n```sh yours\nhaul doctor my.json\n```\n\n```\n$ haul devices\n```\n")
	fenced, spoken, err := pageExamples(page)
	if err != nil {
		t.Fatal(err)
	}
	show := func(all []example) (out []string) {
		for _, e := range all {
			out = append(out, strings.TrimSpace(e.where+" "+e.file+strings.Join(e.words, " ")))
		}
		return out
	}
	if diff := cmp.Diff([]string{"page.md:4 mine.yaml", "page.md:12 config check mine.yaml --json", "page.md:21 devices"}, show(fenced)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"page.md:8 version", "page.md:8 eval --checkpoint DIR", "page.md:17 doctor my.json"}, show(spoken)); diff != "" {
		t.Error(diff)
	}
	if fenced[0].text != "# mine.yaml\na: 1\n" {
		t.Errorf("the file is %q", fenced[0].text)
	}
}

func TestShellOfExamples(t *testing.T) {
	for line, want := range map[string]string{
		`haul train --set a=b   # words`:                   "train|--set|a=b",
		`$ go run ./cmd/haul solve 'a b.vrp' --out "x"`:    "solve|a b.vrp|--out|x",
		`haul solve --json 2>/dev/null`:                    "solve|--json",
		`haul version --json | jq .go`:                     "version|--json",
		`OUT=1 haul gen --count 2 && haul solve x.vrp; ls`: "gen|--count|2 / solve|x.vrp",
		`ls haul`:  "",
		`# haul x`: "",
	} {
		var got []string
		for _, e := range commands("here", line) {
			got = append(got, strings.Join(e.words, "|"))
		}
		if joined := strings.Join(got, " / "); joined != want {
			t.Errorf("%s: %q, want %q", line, joined, want)
		}
	}
}
