package check_test

import (
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestCostsInParts: PyVRP's solutions count the tenths or thousandths of a cost, which a refusal
// says.
func TestCostsInParts(t *testing.T) {
	square := clitest.Write(t, "square.vrp", clitest.SquareVRP)
	for cost, want := range map[string]string{"680": ", of which it counts the tenths", "68000": ", of which it counts the thousandths", "69": "its routes cost 68"} {
		inprocess.Refused(t, []string{"check", square, clitest.Write(t, "a.sol", "Route #1: 1 2\nRoute #2: 3 4\nCost "+cost+"\n")}, cli.ExitFailed, want)
	}
	near := clitest.Write(t, "near.vrp", "NAME : near\nTYPE : CVRP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nNODE_COORD_SECTION\n1 0 0\n2 1 1\nDEMAND_SECTION\n1 0\n2 3\nDEPOT_SECTION\n1\n-1\nEOF\n")
	for cost, want := range map[string]string{"2.8": "cost 2; by --set distance=dimacs it holds", "28": "by --set distance=dimacs they cost 2.8000, of which it counts the tenths", "5": "its routes cost 2\n"} {
		inprocess.Refused(t, []string{"check", near, clitest.Write(t, "b.sol", "Route #1: 1\nCost "+cost+"\n")}, cli.ExitFailed, want)
	}
}
