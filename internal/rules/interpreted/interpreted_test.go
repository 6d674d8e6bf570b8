package interpreted

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

// TestTextIsThePlainForm draws instances of the built-in problems and walks random routes, and
// compares every call of both forms.
func TestTextIsThePlainForm(t *testing.T) {
	for _, b := range problems.All() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(8) {
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
				text, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				both := &rules.Compared{Form: eval.New(p), Other: text, Problem: p, Name: "the PTX text"}
				in := p.Draw(both, &rules.Drawing{Seed: seed, Purpose: rng.Instances}, seed, 1+r.IntN(70))
				rulestest.Walk(p, both, in, r)
				if both.Err != nil {
					t.Fatal(both.Err)
				}
			}
		})
	}
}
