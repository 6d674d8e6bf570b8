package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haul/internal/config"
	"haul/internal/model"
)

// read feeds a context to its end and returns what was read: < and > for markers, else the x of a
// transition.
func read(t testing.TB, c *agentContext) string {
	t.Helper()
	var out strings.Builder
	fields := make([]int32, model.TokenFields(2))
	for {
		at, acting := c.next(fields)
		if fields[fieldPosition] != at {
			t.Fatalf("position %d at place %d", fields[fieldPosition], at)
		}
		switch fields[fieldType] {
		case model.TypeStart:
			out.WriteByte('<')
		case model.TypeEnd:
			out.WriteByte('>')
		default:
			out.WriteByte('a' - 1 + byte(fields[fieldX]))
		}
		if acting {
			return out.String()
		}
	}
}

// observeX adds a transition at column x.
func observeX(c *agentContext, x int) { c.observe(-1, -1)[0] = int32(x) }

// TestPruning follows contexts token by token: what is read before each action.
func TestPruning(t *testing.T) {
	compressed := contextRules{observed: 2, width: 5, capacity: 2*3 + 3, compressed: true, longest: 3}
	for _, c := range []struct {
		name   string
		rules  contextRules
		ends   string // transitions after which the region ends
		steps  int
		want   []string
		prunes int
	}{
		{"one region", compressed, "", 3, []string{"<a", "b", "c"}, 0},
		{"second region", compressed, "b", 4, []string{"<a", "b", "><c", "d"}, 0},
		{"older region goes", compressed, "bd", 6, []string{"<a", "b", "><c", "d", "<cd><e", "f"}, 1},
		{"short regions", compressed, "abc", 4, []string{"<a", "><b", "<b><c", "<c><d"}, 2},
		{"plain", contextRules{observed: 2, width: 5, capacity: 4, keep: 2}, "", 7, []string{"a", "b", "c", "d", "cde", "f", "efg"}, 2},
		{"plain, all goes", contextRules{observed: 2, width: 5, capacity: 2, keep: 0}, "", 5, []string{"a", "b", "c", "d", "e"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newAgentContext(&c.rules)
			var got []string
			for i := 1; i <= c.steps; i++ {
				observeX(&x, i)
				got = append(got, read(t, &x))
				if strings.ContainsRune(c.ends, rune('a'-1+i)) {
					x.end()
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("read: %s", diff)
			}
			if x.prunes != c.prunes {
				t.Errorf("%d prunes, want %d", x.prunes, c.prunes)
			}
			x.reset()
			observeX(&x, 1)
			if got := read(t, &x); got != c.want[0] {
				t.Errorf("after a reset %q is read first, want %q", got, c.want[0])
			}
		})
	}
}

// TestContextsStayWithinTheirRules: for any actions, a context is a prefix of a training sequence
// and fits into its buffer.
func TestContextsStayWithinTheirRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &config.AD{UseCompressedContext: rapid.Bool().Draw(t, "compressed"), CompressInterval: rapid.IntRange(1, 6).Draw(t, "longest")}
		c.NTransit = c.Tokens()
		if !c.UseCompressedContext {
			c.NTransit = rapid.IntRange(1, 12).Draw(t, "n_transit")
		}
		rules, err := newContextRules(c, 2, rapid.IntRange(1, 5).Draw(t, "horizon"))
		if err != nil {
			t.Fatal(err)
		}
		x := newAgentContext(&rules)
		buffer := &x.words[:1][0]
		fields := make([]int32, model.TokenFields(2))
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			observeX(&x, i)
			for acting := false; !acting; {
				_, acting = x.next(fields)
			}
			if fields[fieldX] != int32(i) || fields[fieldPosition] >= int32(c.NTransit) || fields[fieldType] != model.TypeTransition {
				t.Fatalf("step %d acts on %v", i, fields)
			}
			if starts := checkShape(t, &x); starts > 2 {
				t.Fatalf("%d regions in one context", starts)
			}
			if rules.compressed && (x.region() == rules.longest || rapid.Bool().Draw(t, "end")) {
				x.end()
			}
		}
		if buffer != &x.words[:1][0] || cap(x.words) != rules.capacity*rules.width {
			t.Fatal("the buffer has moved")
		}
	})
}

// checkShape wants markers in turn and transitions without a gap, and returns the number of
// regions.
func checkShape(t *rapid.T, x *agentContext) (starts int) {
	open := !x.rules.compressed
	last := int32(-1)
	kind := func(i int) int32 { return x.words[i*x.rules.width+fieldType] }
	for i := range x.tokens() {
		switch kind(i) {
		case model.TypeStart:
			if open {
				t.Fatalf("token %d opens a region in a region", i)
			}
			open = true
			starts++
		case model.TypeEnd:
			if !open || kind(i-1) != model.TypeTransition {
				t.Fatalf("token %d ends nothing", i)
			}
			open = false
		default:
			at := x.words[i*x.rules.width+fieldX]
			if !open || last >= 0 && at != last+1 {
				t.Fatalf("transition %d follows %d", at, last)
			}
			last = at
		}
	}
	return starts
}

func TestContextLongerThanThePositions(t *testing.T) {
	c := &config.AD{UseCompressedContext: true, CompressInterval: 80, NTransit: 163}
	if _, err := newContextRules(c, 2, 20); err == nil || !strings.Contains(err.Error(), "164 tokens is longer than the position table: raise n_transit from 163") {
		t.Errorf("got %v", err)
	}
	c.NTransit = 164
	if _, err := newContextRules(c, 2, 20); err != nil {
		t.Error(err)
	}
}
