package clitest

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// The square: two routes of two customers each cost 2·(10+10+14) = 68 when rounded.
//
//go:embed testdata/square.vrp
var SquareVRP string

const SquareSOL = "Route #1: 1 2\nRoute #2: 3 4\nCost 68\n"

// ExplicitVRP gives distances and no coordinates.
//
//go:embed testdata/triangle.vrp
var ExplicitVRP string

// Patience is how long a test waits for what must happen, however busy the machine.
const Patience = 5 * time.Minute

// OnStandardInput runs f with a text there.
func OnStandardInput(t *testing.T, text string, f func()) {
	t.Helper()
	in, err := os.Open(Write(t, "stdin", text))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	was := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = was }()
	f()
}

// ManyVRP is n customers on a circle.
func ManyVRP(n int) string {
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
