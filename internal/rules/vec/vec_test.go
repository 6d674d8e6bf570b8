package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/rulestest"
	"haul/problems"
)

// TestMasksAreThePlainOnes walks random routes of the built-in problems and compares the masks of
// both forms, for instances below, at and above a block of nodes.
func TestMasksAreThePlainOnes(t *testing.T) {
	for _, b := range problems.All() {
		t.Run(b.Name, func(t *testing.T) {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 3))
				settings := map[string]string{}
				switch b.Name {
				case "vrp":
					settings["Mix"] = fmt.Sprint(int32(r.Uint32()))
				case "mdvrp":
					settings["Mix"], settings["MixSeveral"] = fmt.Sprint(int32(r.Uint32())), fmt.Sprint(int32(r.Uint32()))
				}
				p, err := rules.Compile(b.Name+".go", b.Source(), settings)
				if err != nil {
					t.Fatal(err)
				}
				n := []int{1, 10, 61, 62, 63, 64, 65, 130}[seed%8]
				plain, fast := eval.New(p), New(p)
				in := p.Draw(plain, &rules.Drawing{Seed: seed, Purpose: rng.Instances}, seed, n)
				both := &rules.Compared{Form: plain, Other: fast, Problem: p, Name: "the vector form"}
				rulestest.Walk(p, both, in, r)
				if both.Err != nil {
					t.Fatal(both.Err)
				}
			}
		})
	}
}
