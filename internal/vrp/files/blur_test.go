package files_test

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/vrp/files"
)

// TestUnitSquareIsNoted: a file whose places lie in the unit square was solved with distances of 0
// and 1, for it says EUC_2D, and nothing told so.
func TestUnitSquareIsNoted(t *testing.T) {
	for _, c := range []struct {
		far    string // the last place's x
		stated string
		d      files.Distance
		want   bool
	}{
		{"0.5", "EUC_2D", files.AsStated, true},
		{"9.999", "EUC_2D", files.AsStated, true},
		{"0.5", "CEIL_2D", files.AsStated, true},
		{"10", "EUC_2D", files.AsStated, false},
		{"10.001", "EUC_2D", files.AsStated, false},
		{"0.5", "EUC_2D", files.ExactDistance, false},
		{"0.5", "EUC_2D", files.RoundedDistance, false},
		{"1", "EUC_2D", files.AsStated, false}, // on a grid
	} {
		y := "0.25"
		if c.far == "1" {
			y = "0"
		}
		text := fmt.Sprintf("NAME : u\nTYPE : CVRP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : %s\nCAPACITY : 3\nNODE_COORD_SECTION\n1 0 0\n2 0 %s\n3 %s 0\n"+
			"DEMAND_SECTION\n1 0\n2 1\n3 1\nDEPOT_SECTION\n1\n-1\nEOF\n", c.stated, y, c.far)
		p, err := files.ReadProblem(strings.NewReader(text), "u.vrp", files.Options{Distance: c.d})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(p.Notes, ""), "--distance exact keeps their digits"); got != c.want {
			t.Errorf("%+v: notes %q", c, p.Notes)
		}
	}
}
