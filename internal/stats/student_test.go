package stats

import (
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestStudentCDF: the same number as gonum's distribution, to the bit: a baseline that is replaced
// on one machine is on all.
func TestStudentCDF(t *testing.T) {
	for _, nu := range []float64{1, 2, 9, 999, 10239} {
		for _, x := range []float64{-40, -3.5, -1.6448, -1e-9, 0, 1e-9, 0.7, 2.1, 60} {
			if got, want := studentCDF(x, nu), (distuv.StudentsT{Sigma: 1, Nu: nu}).CDF(x); got != want {
				t.Errorf("t = %g with %g degrees of freedom: %v, want %v", x, nu, got, want)
			}
		}
	}
}
