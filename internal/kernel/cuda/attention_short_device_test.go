package cuda_test

import (
	"fmt"
	"math"
	"testing"

	"haul/internal/kernel/cuda"
)

// TestShortAgents: rows of at most 192 tokens, whose attention's gradient has a kernel of its own,
// and of one more, have the same card's gradients in fp32, with dropout, by the bound of
// TestAgentOverManyTiles: one below, at and one above a tile of queries, a group of keys, as many
// groups as warps have, and the most tokens; one sequence per row and several. With -short the
// rows that the sanitizers look at.
func TestShortAgents(t *testing.T) {
	bound := 2 * math.Ldexp(1, -8) * math.Sqrt(2*9*2)
	card, exact := open(t, cuda.BF16), open(t, cuda.FP32)
	defer card.Close()
	defer exact.Close()
	lengths := []int{2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 95, 96, 97, 127, 128, 129, 159, 160, 161, 164, 176, 177, 191, 192, 193}
	if testing.Short() {
		lengths = []int{33, 164, 192}
	}
	for _, tokens := range lengths {
		for _, compressed := range []bool{false, true} {
			if compressed && tokens < 60 {
				continue // no row of several sequences
			}
			got, _ := gradientsOf(t, card, tokens, 5, 8, compressed, 1, 0.1)
			want, _ := gradientsOf(t, exact, tokens, 5, 8, compressed, 1, 0.1)
			holdApart(t, fmt.Sprintf("%d tokens, compressed %v", tokens, compressed), got, want, bound)
		}
	}
}

// TestAgentsOfOtherHeads: layers behind a head that is not joined hand the stream's gradient on in
// fp32, and have the same card's gradients in fp32 by the bound of TestAgentOverManyTiles.
func TestAgentsOfOtherHeads(t *testing.T) {
	bound := 2 * math.Ldexp(1, -8) * math.Sqrt(2*9*2)
	card, exact := open(t, cuda.BF16), open(t, cuda.FP32)
	defer card.Close()
	defer exact.Close()
	defer func(n int) { agentActions = n }(agentActions)
	for _, agentActions = range []int{6, 64} {
		got, _ := gradientsOf(t, card, 164, 5, 8, true, 1, 0.1)
		want, _ := gradientsOf(t, exact, 164, 5, 8, true, 1, 0.1)
		holdApart(t, fmt.Sprintf("%d actions", agentActions), got, want, bound)
	}
}
