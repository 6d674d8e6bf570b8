package e2e

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Files that tests of cmd/haul read too.
var (
	squareVRP   = sample("square.vrp")   // two routes of two customers each cost 68
	explicitVRP = sample("triangle.vrp") // distances and no coordinates
)

func sample(name string) string {
	text, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// manyVRP is n customers on a circle.
func manyVRP(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "NAME : many\nTYPE : CVRP\nDIMENSION : %d\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\nNODE_COORD_SECTION\n1 0 0\n", n+1)
	for i := range n {
		angle := 2 * math.Pi * float64(i) / float64(n)
		fmt.Fprintf(&b, "%d %.0f %.0f\n", i+2, 1000*math.Cos(angle), 1000*math.Sin(angle))
	}
	b.WriteString("DEMAND_SECTION\n1 0\n")
	for i := range n {
		fmt.Fprintf(&b, "%d 2\n", i+2)
	}
	return b.String() + "DEPOT_SECTION\n1\n-1\nEOF\n"
}

// smallNetwork are settings of a GT+RL run that takes a fraction of a second.
func smallNetwork() (args []string) {
	for _, set := range []string{"problem.num_customers=5", "training.num_batches_per_epoch=2", "training.batch_size=240", "training.validation_instances=20",
		"training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1", "baseline.starts=0", "baseline.eval_batches=1"} {
		args = append(args, "--set", set)
	}
	return args
}
