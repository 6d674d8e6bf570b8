package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLimits: each limit of the language is accepted and one above it is refused.
func TestLimits(t *testing.T) {
	base, err := os.ReadFile(filepath.Join("..", "..", "problems", "op", "op.go"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		vehicle = "type Vehicle struct{ Left float32 }"
		node    = "	Prize float32 // 0 at the depot"
		in      = "	Limit    float32 // longest tour"
		setting = "	Limit float32 `default:\"3\" min:\"0\" doc:\"longest tour\"`"
		move    = "	v.Left -= problem.Distance(at.Place, to.Place)"
		prize   = "	n.Prize = float32("
		feature = "[4]float32 { return [...]float32{n.X, n.Y, n.Prize, n.Home} }"
		context = "[1]float32 {\n	return [...]float32{v.Left / in.Limit}"
	)
	for _, c := range []struct {
		name, old, text string // %d is the limit
		limit           int
		message         string
	}{
		{"words of a vehicle", vehicle, "func (v *Vehicle) use() int32 { return v.Seen[0] }\n\ntype Vehicle struct {\n	Left float32\n	Seen [%d - 1]int32\n}", 32, "type Vehicle has 33 words; at most 32 fit"},
		{"words of a node", node, node + "\n	Seen [%d - 6]int32", 24, "type Node has 25 words; at most 24 fit"},
		{"words of an instance", in, in + "\n	Seen [%d - 2]int32", 64, "type Instance has 65 words; at most 64 fit"},
		{"settings", setting, setting + "\n%s", 64, "type Settings has 65 words; at most 64 fit"},
		{"features", feature, "[%d]float32 { return [%[1]d]float32{n.X} }", 32, "33 features of a node"},
		{"context", context, "[%d]float32 {\n	return [%[1]d]float32{v.Left / in.Limit}", 16, "17 numbers of a context"},
		{"depots", "// Package op", "// Package op", 8, "const Depots is 9"},
		{"rounds of a loop", move, move + "\n	for range %d {\n		v.Left++\n	}", 64, "a loop of more than 64 rounds"},
		{"random words", prize, "	n.Home = r.At(%d - 1).Float()\n" + prize, 64, "random word 64"},
		{"elements chosen by an index", move, move + "\n	x := [%d]int32{1}\n	v.Left += float32(x[to.Index])", 64, "choose among more than 64 elements"},
		{"words of a variable", move, move + "\n	var x [%d]int32\n	v.Left += float32(x[0])", 1024, "x is a [1025]int32"},
	} {
		for above := range 2 {
			n := c.limit + above
			text := strings.Replace(string(base), c.old, strings.ReplaceAll(strings.ReplaceAll(c.text, "%[1]d", fmt.Sprint(n)), "%d", fmt.Sprint(n)), 1)
			if strings.Contains(c.text, "Seen [") && c.old != vehicle {
				text += map[string]string{node: "\nfunc (n *Node) use() int32 { return n.Seen[0] }\n", in: "\nfunc (in *Instance) use() int32 { return in.Seen[0] }\n"}[c.old]
			}
			switch c.name {
			case "settings":
				var more, uses strings.Builder
				for i := range n - 1 {
					fmt.Fprintf(&more, "	F%d int32 `default:\"0\"`\n", i)
					fmt.Fprintf(&uses, " + s.F%d", i)
				}
				text = strings.Replace(text, "%s", more.String(), 1) + "\nfunc (s *Settings) use() int32 { return 0" + uses.String() + " }\n"
			case "depots":
				text += fmt.Sprintf("\nconst Depots = %d\n", n)
			}
			_, err := Compile("op.go", []byte(text), nil)
			if above == 0 && err != nil {
				t.Errorf("%s: %d are refused: %v", c.name, n, err)
			}
			if above == 1 && (err == nil || !strings.Contains(err.Error(), c.message)) {
				t.Errorf("%s: %d: %v, want %q", c.name, n, err, c.message)
			}
		}
	}
}

// TestOperationsAreCounted: a method of exactly as many operations as are allowed compiles.
func TestOperationsAreCounted(t *testing.T) {
	base, err := os.ReadFile(filepath.Join("..", "..", "problems", "op", "op.go"))
	if err != nil {
		t.Fatal(err)
	}
	build := func(n int) error {
		text := strings.Replace(string(base), "	return -to.Prize", "	x := to.Prize"+strings.Repeat("\n	x /= v.Left", n)+"\n	return x", 1)
		_, err := Compile("op.go", []byte(text), nil)
		return err
	}
	const others = 7 // the distance, and what is left of the length
	if err := build(4096 - others); err != nil {
		t.Error(err)
	}
	if err := build(4097 - others); err == nil || !strings.Contains(err.Error(), "4097 operations") {
		t.Error(err)
	}
}
