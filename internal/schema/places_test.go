package schema

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A place is a text by hand that states the parts. check lists what it lacks and what it has too
// much, by the name of the part.
type statement struct {
	name  string
	text  string
	check func(text string) []string
	words func(p *Part) []string // of a part in the text
}

var coded = regexp.MustCompile("`([a-z_]+)`")

// section is the part of a page between two headings.
func section(page, from, to string) string {
	_, rest, _ := strings.Cut(page, from)
	text, _, _ := strings.Cut(rest, to)
	return text
}

// inPage finds the words of parts between back quotes, and the words of the first column of tables
// that no part has.
func inPage(words func(p *Part) []string, also ...string) func(string) []string {
	return func(text string) (faults []string) {
		there, known := map[string]bool{}, map[string]bool{}
		for _, m := range coded.FindAllStringSubmatch(text, -1) {
			there[m[1]] = true
		}
		for _, word := range also {
			known[word] = true
		}
		for i := range Parts {
			for _, word := range words(&Parts[i]) {
				if known[word] = true; !there[word] {
					faults = append(faults, Parts[i].Name+" lacks "+word)
				}
			}
		}
		for row := range strings.Lines(text) {
			if cells := strings.Split(row, "|"); len(cells) > 2 && cells[0] == "" {
				for _, m := range coded.FindAllStringSubmatch(cells[1], -1) {
					if !known[m[1]] {
						faults = append(faults, "no part is "+m[1])
					}
				}
			}
		}
		return faults
	}
}

// inPython finds the parameters and keys of parts in Python's model, and parameters of its methods
// that no part has.
func inPython(text string) (faults []string) {
	known := map[string]bool{}
	for i := range Parts {
		p := &Parts[i]
		for _, word := range strings.Fields(p.Python) {
			method, parameter, _ := strings.Cut(word, ".")
			if known[word] = true; !regexp.MustCompile(`\b` + parameter + `: `).MatchString(signature(text, method)) {
				faults = append(faults, p.Name+" lacks "+word)
			}
		}
		if p.Python != "" && !strings.Contains(text, `"`+p.Key+`"`) {
			faults = append(faults, p.Name+" lacks "+p.Key)
		}
	}
	for _, m := range regexp.MustCompile(`def (add_\w+)\(`).FindAllStringSubmatch(text, -1) {
		for _, parameter := range regexp.MustCompile(`(\w+): `).FindAllStringSubmatch(signature(text, m[1]), -1) {
			word := m[1] + "." + parameter[1]
			if !known[word] && !slices.Contains(noPart, word) {
				faults = append(faults, "no part has the parameter "+word)
			}
		}
	}
	return faults
}

// noPart are parameters of Python's model that state no part: what joins its objects, and what is
// refused.
var noPart = strings.Fields(`add_depot.location add_depot.x add_depot.y add_client.location add_client.x add_client.y
	add_edge.frm add_edge.to add_edge.profile add_vehicle_type.max_overtime add_vehicle_type.unit_overtime_cost`)

// signature is that of a method.
func signature(text, method string) string { return section(text, "def "+method+"(", ") ->") }

func statements(t *testing.T) []statement {
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	formats := read("docs/formats.md")
	keys := func(p *Part) []string { return []string{p.Key} }
	columns := func(p *Part) (out []string) {
		for _, c := range p.Columns {
			if c.Sheet != Own && !strings.Contains(c.Name, "NAME") {
				out = append(out, c.Name)
			}
		}
		return out
	}
	return []statement{
		{"keys of docs/formats.md", section(formats, "### Haul's own JSON\n", "### Tables\n"), inPage(keys), keys},
		{"columns of docs/formats.md", section(formats, "### Tables\n", "### VROOM's JSON\n"), inPage(columns), columns},
		{"python/haul/_model.py", read("python/haul/_model.py"), inPython, func(p *Part) []string {
			if p.Python == "" {
				return nil
			}
			return append(strings.Fields(p.Python), p.Key)
		}},
	}
}

// TestPlacesStateEveryPart: the pages and Python's model have every word of every part, and no
// others.
func TestPlacesStateEveryPart(t *testing.T) {
	for _, s := range statements(t) {
		for _, fault := range s.check(s.text) {
			t.Errorf("%s: %s", s.name, fault)
		}
	}
}

// TestForgottenWordsAreFound takes every word of every part out of every place, one at a time: the
// check names the part.
func TestForgottenWordsAreFound(t *testing.T) {
	tried := 0
	for _, s := range statements(t) {
		for i := range Parts {
			p := &Parts[i]
			for _, word := range s.words(p) {
				parameter := word[strings.LastIndexByte(word, '.')+1:]
				tried++
				text := regexp.MustCompile(`\b`+parameter+`\b`).ReplaceAllString(s.text, "")
				if faults := s.check(text); !slices.Contains(faults, p.Name+" lacks "+word) {
					t.Errorf("%s: %s is taken out of %s, and the check says %q", s.name, word, p.Name, faults)
				}
			}
		}
	}
	if tried < 150 {
		t.Errorf("only %d words were taken out", tried)
	}
}
