package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// If Python's frames were recorded, a cost has a place in the code: the deepest function that was
// on the stack for most of it. Names are only shown; renaming a function changes no finding.

// mostOf is the fraction of a cost that a function must have to be named.
const mostOf = 0.5

// Where names the function with most of the places, or returns "".
func (a *Analysis) Where(places []Place) string {
	th := a.pythonThread()
	if th == nil || len(places) == 0 {
		return ""
	}
	byThread := map[*trace.Thread][]trace.Span{}
	for _, p := range places {
		at := p.Thread
		if at == nil || at.Frames.Len() == 0 {
			at = th
		}
		byThread[at] = append(byThread[at], p.Span)
	}
	tree := &codeTree{children: map[codeKey]int{}, nodes: []codeNode{{}}}
	for _, at := range a.Threads {
		if list := byThread[at]; len(list) > 0 {
			tree.add(at, trace.Union(list))
		}
	}
	return a.placeOf(tree)
}

// Inside names the narrowest annotation with most of the places, or returns "". An annotation that
// also contains most of the steps says nothing.
func (a *Analysis) Inside(places []Place) string {
	if len(places) == 0 || len(a.Ranges) == 0 {
		return ""
	}
	held := make([]trace.Span, len(places))
	for i, p := range places {
		held[i] = p.Span
	}
	held = trace.Union(held)
	byName := map[uint32][]trace.Span{}
	for _, r := range a.Ranges {
		byName[r.Name] = append(byName[r.Name], r.Span)
	}
	best, narrowest := "", int64(mostOf*float64(a.Wall))
	for id, spans := range byName {
		spans = trace.Union(spans)
		if _, within := trace.Without(held, spans); float64(within) < mostOf*float64(trace.Total(held)) {
			continue
		}
		name := trace.ShortName(a.Names.List[id].Text)
		if ns := trace.Total(trace.Clip(spans, a.Steps)); ns < narrowest || ns == narrowest && name < best {
			best, narrowest = name, ns
		}
	}
	return best
}

func (a *Analysis) pythonThread() *trace.Thread {
	var best *trace.Thread
	for _, th := range a.Threads {
		if best == nil || th.Frames.Len() > best.Frames.Len() {
			best = th
		}
	}
	if best == nil || best.Frames.Len() == 0 {
		return nil
	}
	return best
}

// codeTree sums time by path of function names.
type codeTree struct {
	nodes    []codeNode
	children map[codeKey]int
	total    int64
}

type codeNode struct {
	name   uint32
	parent int
	ns     int64
	kids   []int
}

type codeKey struct {
	parent int
	name   uint32
}

func (t *codeTree) add(th *trace.Thread, list []trace.Span) {
	if len(list) == 0 { // calls of zero length
		return
	}
	before := make([]int64, len(list)+1)
	for i, s := range list {
		before[i+1] = before[i] + s.End - s.Start
	}
	t.total += before[len(list)]
	upTo := func(at int64) int64 {
		i := sort.Search(len(list), func(i int) bool { return list[i].End > at })
		if i < len(list) && at > list[i].Start {
			return before[i] + at - list[i].Start
		}
		return before[i]
	}
	type open struct {
		end  int64
		node int
	}
	var stack []open
	for i := range th.Frames.Len() {
		f := th.Frames.At(i)
		if f.Start >= list[len(list)-1].End {
			break
		}
		if f.End() <= list[0].Start { // ends before the first place, so it contains none
			continue
		}
		for len(stack) > 0 && stack[len(stack)-1].end <= f.Start {
			stack = stack[:len(stack)-1]
		}
		parent := 0
		if len(stack) > 0 {
			parent = stack[len(stack)-1].node
		}
		ns := upTo(f.End()) - upTo(f.Start)
		if ns == 0 || parent < 0 {
			stack = append(stack, open{end: f.End(), node: -1})
			continue
		}
		key := codeKey{parent, f.Name}
		n, ok := t.children[key]
		if !ok {
			n = len(t.nodes)
			t.children[key] = n
			t.nodes = append(t.nodes, codeNode{name: f.Name, parent: parent})
			t.nodes[parent].kids = append(t.nodes[parent].kids, n)
		}
		t.nodes[n].ns += ns
		stack = append(stack, open{end: f.End(), node: n})
	}
}

// placeOf descends while one function has most of the time, and then goes up to one with a file.
func (a *Analysis) placeOf(t *codeTree) string {
	at := 0
	for {
		kids := t.nodes[at].kids
		if len(kids) == 0 {
			break
		}
		best := slices.MaxFunc(kids, func(x, y int) int {
			return cmp.Or(cmp.Compare(t.nodes[x].ns, t.nodes[y].ns), cmp.Compare(t.nodes[y].name, t.nodes[x].name))
		})
		if float64(t.nodes[best].ns) < mostOf*float64(t.total) {
			break
		}
		at = best
	}
	inner := ""
	var chain []string
	for n := at; n != 0 && len(chain) < chainLength; n = t.nodes[n].parent {
		name := a.Names.List[t.nodes[n].name].Text
		file, line, function, ok := codeLine(name)
		switch {
		case !ok && inner == "" && len(chain) == 0:
			inner = name
		case ok && (len(chain) == 0 || !isLibrary(file)):
			if at := fmt.Sprintf("%s:%s %s", file, line, function); len(chain) == 0 || chain[len(chain)-1] != at {
				chain = append(chain, at)
			}
		}
	}
	if len(chain) == 0 {
		return ""
	}
	if inner != "" {
		chain[0] += ", in " + trace.ShortName(inner)
	}
	return phrase.Printable(strings.Join(chain, ", called from "))
}

// chainLength is the number of callers that a place names.
const chainLength = 3

// isLibrary reports whether a file belongs to PyTorch or to Python itself.
func isLibrary(file string) bool {
	return strings.HasPrefix(file, "torch/") || strings.Contains(file, "/torch/") || strings.Contains(file, "lib/python3") && !strings.Contains(file, "site-packages") ||
		strings.HasPrefix(file, "<")
}

// codeLine parses "file.py(12): function" of PyTorch and "$file.py:12 function" of JAX.
func codeLine(s string) (file, line, function string, ok bool) {
	if rest, is := strings.CutPrefix(s, "$"); is {
		place, function, _ := strings.Cut(rest, " ")
		if i := strings.LastIndexByte(place, ':'); i > 0 && isNumber(place[i+1:]) {
			return place[:i], place[i+1:], function, true
		}
		return "", "", "", false
	}
	head, function, found := strings.Cut(s, "): ")
	if !found {
		return "", "", "", false
	}
	i := strings.LastIndexByte(head, '(')
	if i <= 0 || !isNumber(head[i+1:]) {
		return "", "", "", false
	}
	return head[:i], head[i+1:], function, true
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return s != ""
}
