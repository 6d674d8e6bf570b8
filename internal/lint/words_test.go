package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// recipes are words that say what is trained and on what. The engine's ops serve any recipe: in
// internal/kernel, below it and in internal/plan no name that is declared, no comment and no text
// may have one of them, outside of the files of the ops that are a recipe's own. Using such an op
// by its name is allowed.
var recipes = []struct {
	words [][]string // each a sequence of words, in any case, with or without an s
	files []string   // where they may stand, by name without extension
}{
	{[][]string{{"dark", "room"}, {"darkroom"}, {"agent"}, {"in", "context"}, {"learning", "history"}, {"learning", "histories"}, {"goal"}, {"distillation"}}, nil},
	{[][]string{{"ppo"}, {"reward"}, {"critic"}}, losses},
	{[][]string{{"cvrp"}, {"pomo"}, {"customer"}, {"depot"}, {"vehicle"}, {"route"}, {"routing"}, {"advantage"}}, append(slices.Clone(routing), "ops_losses")},
	{[][]string{{"baseline"}}, []string{"ops_routing", "routing", "tally", "stage"}},
}

// The files of the ops that draw, route and judge routing instances, and of losses. All of
// a folder routing and every rules_<set> belong to the first.
var (
	routing = []string{"ops_routing", "routing", "generate", "decoder", "decode", "rules", "rollout", "rollout_grad", "rollout_held", "biases", "stream", "half", "tally", "warp"}
	losses  = []string{"ops_losses", "losses"}
)

// wordsOf takes names and prose apart, in lower case: "nextEMA of a CVRP" is next ema of a cvrp.
func wordsOf(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		word = append(word, r)
	}
	end()
	return out
}

// named returns the recipe's words that a text in a file of that name may not have.
func named(file, text string) []string {
	base := strings.TrimSuffix(strings.SplitN(filepath.Base(file), ".", 2)[0], "_test")
	words := wordsOf(text)
	var out []string
	for _, r := range recipes {
		inRouting := strings.Contains(filepath.ToSlash(filepath.Dir(file))+"/", "/routing/") || isRules(file)
		if slices.Contains(r.files, base) || inRouting && slices.Contains(r.files, "rules") {
			continue
		}
		for _, banned := range r.words {
			for i := range words {
				if i+len(banned) <= len(words) && slices.EqualFunc(words[i:i+len(banned)], banned, func(w, b string) bool { return w == b || w == b+"s" }) {
					out = append(out, strings.Join(banned, " "))
					break
				}
			}
		}
	}
	return out
}

// said lists what a Go file declares and writes: names, comments, string literals.
func said(file *ast.File) []string {
	var out []string
	for _, g := range file.Comments {
		out = append(out, g.Text())
	}
	name := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil {
				out = append(out, id.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			name(d.Name)
		case *ast.TypeSpec:
			name(d.Name)
		case *ast.ValueSpec:
			name(d.Names...)
		case *ast.Field:
			name(d.Names...)
		case *ast.AssignStmt:
			if d.Tok == token.DEFINE {
				for _, x := range d.Lhs {
					if id, ok := x.(*ast.Ident); ok {
						name(id)
					}
				}
			}
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if d.Kind == token.STRING {
				out = append(out, d.Value)
			}
		}
		return true
	})
	return out
}

// TestTheEngineNamesNoRecipe reads the Go files and the kernels' sources. Tests and the suite
// compare with whom they like.
func TestTheEngineNamesNoRecipe(t *testing.T) {
	read := map[string]int{}
	for _, dir := range []string{"kernel", "plan"} {
		if err := readEngine(t, filepath.Join("..", dir), read); err != nil {
			t.Fatal(err)
		}
	}
	if read[".go"] < 60 || read[".cu"] < 15 || read["plan"] == 0 {
		t.Errorf("the walk read %v files only", read)
	}
}

// readEngine reads a folder and tells of what its files may not say.
func readEngine(t *testing.T, root string, read map[string]int) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "kerneltest" {
				return filepath.SkipDir
			}
			return skipDir(root, file)
		}
		var texts []string
		switch ext := filepath.Ext(file); {
		case ext == ".cu" || ext == ".cuh":
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			texts = []string{string(text)}
		case ext == ".go" && !strings.HasSuffix(file, "_test.go"):
			syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			texts = said(syntax)
		default:
			return nil
		}
		read[filepath.Ext(file)]++
		read[filepath.Base(root)]++
		for _, text := range texts {
			for _, word := range named(file, text) {
				line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
				t.Errorf("%s says %q (%.60s): the engine names no recipe", file, word, line)
			}
		}
		return nil
	})
}

func TestRecipesAreRecognised(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"device.go", "Metrics of a step", nil},
		{"device.go", "the agent's step", []string{"agent"}},
		{"device.go", "AgentStep", []string{"agent"}},
		{"cpu/regions.go", "a Dark Room's x and y", []string{"dark room"}},
		{"tensor.go", "support and opposed reagents, enroute", nil},
		{"tensor.go", "PPOLoss of a CVRP", []string{"ppo", "cvrp"}},
		{"ops_losses.go", "PPOLoss of a customer", nil},
		{"routing/src/rollout.cu", "the depot's baseline, in an agent's room", []string{"agent", "baseline"}},
		{"stage.go", "whatever a baseline computes for customers", []string{"customer"}},
	} {
		if diff := cmp.Diff(c.want, named(c.file, c.text)); diff != "" {
			t.Errorf("%s: %s: %s", c.file, c.text, diff)
		}
	}
	if diff := cmp.Diff([]string{"next", "ema", "of", "a", "cvrp", "x"}, wordsOf("nextEMA of a CVRP, x1")); diff != "" {
		t.Error(diff)
	}
	source := `package p
// A comment of agents.
type goal struct{ depot int }
func f() { route := kernel.PPO{}; use(route, "vehicle") }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range said(file) {
		got = append(got, named("p.go", text)...)
	}
	if diff := cmp.Diff([]string{"agent", "goal", "depot", "route", "vehicle"}, got); diff != "" {
		t.Error(diff, fmt.Sprint(said(file)))
	}
}
