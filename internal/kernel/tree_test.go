package kernel

import (
	"fmt"
	"testing"
)

// shape writes the additions of a tree as a sum with brackets.
func shape(n int, there func(int) bool) string {
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprint(i)
	}
	Tree(n, there, func(into, from int) { text[into] = "(" + text[into] + "+" + text[from] + ")" })
	return text[0]
}

func TestTreeIsTheOneThatIsWritten(t *testing.T) {
	for n, want := range map[int]string{1: "0", 2: "(0+1)", 3: "((0+1)+2)", 5: "(((0+1)+(2+3))+4)", 8: "(((0+1)+(2+3))+((4+5)+(6+7)))"} {
		if got := shape(n, nil); got != want {
			t.Errorf("%d leaves: %s, want %s", n, got, want)
		}
	}
	absent := func(l int) bool { return l != 4 && l != 3 }
	if got, want := shape(8, absent), "(((0+1)+2)+(5+(6+7)))"; got != want {
		t.Errorf("without leaves 3 and 4: %s, want %s", got, want)
	}
}

// TestBlocksAddUpAlone: owners of blocks add up their own, then their sums, and the brackets are
// those of one owner, whichever leaves are there. Where Blocks says no, some set of leaves shows
// why.
func TestBlocksAddUpAlone(t *testing.T) {
	for leaves := 1; leaves <= 12; leaves++ {
		for n := 1; n <= leaves; n++ {
			if leaves%n != 0 {
				if Blocks(leaves, n) {
					t.Errorf("%d owners of %d leaves cannot have equal blocks", n, leaves)
				}
				continue
			}
			same := true
			block := leaves / n
			for set := 1; set < 1<<leaves; set += 2 { // leaf 0 is there
				text := make([]string, leaves)
				for i := range text {
					text[i] = fmt.Sprint(i)
				}
				there := func(l int) bool { return set>>l&1 == 1 }
				add := func(at int) func(into, from int) {
					return func(into, from int) { text[at+into] = "(" + text[at+into] + "+" + text[at+from] + ")" }
				}
				sums := make([]string, n)
				owned := func(o int) bool { return set>>(o*block)&(1<<block-1) != 0 }
				for o := range n {
					if !owned(o) {
						continue
					}
					first := 0
					for !there(o*block + first) {
						first++
					}
					tree(0, block, func(l int) bool { return there(o*block + l) }, add(o*block))
					sums[o] = text[o*block+first]
				}
				Tree(n, owned, func(into, from int) { sums[into] = "(" + sums[into] + "+" + sums[from] + ")" })
				same = same && sums[0] == shape(leaves, there)
			}
			if same != Blocks(leaves, n) {
				t.Errorf("%d owners of %d leaves: the same brackets is %v, Blocks says %v", n, leaves, same, Blocks(leaves, n))
			}
		}
	}
}
