// Package stats holds the few statistics that results are stated with.
package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// MeanSE is the mean and its standard error, 0 for fewer than two values.
func MeanSE(v []float64) (mean, se float64) {
	n := float64(len(v))
	if n == 0 {
		return 0, 0
	}
	for _, x := range v {
		mean += x
	}
	mean /= n
	if n < 2 {
		return mean, 0
	}
	var ss float64
	for _, x := range v {
		ss += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(ss / (n - 1) / n)
}

// Gap is the mean over instances of cost/reference - 1, each cost against its own reference, and
// its standard error. An instance whose reference is 0 (every customer at the depot) has no gap
// when its cost is 0 too.
func Gap(costs, references []float64) (mean, se float64) {
	gaps := make([]float64, len(costs))
	for i, c := range costs {
		switch r := references[i]; {
		case c == r:
		case r < 0:
			gaps[i] = 1 - c/r
		case r == 0:
			gaps[i] = c
		default:
			gaps[i] = c/r - 1
		}
	}
	return MeanSE(gaps)
}

// Geometric is the geometric mean and its standard error by the first-order expansion. A value of 0
// makes both 0: the mean is, and its error cannot be told from logarithms.
func Geometric(v []float64) (mean, se float64) {
	logs := make([]float64, len(v))
	for i, x := range v {
		if x == 0 {
			return 0, 0
		}
		logs[i] = math.Log(x)
	}
	m, s := MeanSE(logs)
	return math.Exp(m), math.Exp(m) * s
}

// PairedTest is the p-value of Student's one-sided paired test that candidate costs less than
// incumbent. Without any spread the difference itself decides.
func PairedTest(candidate, incumbent []float64) float64 {
	diff := make([]float64, len(candidate))
	for i := range diff {
		diff[i] = candidate[i] - incumbent[i]
	}
	mean, se := MeanSE(diff)
	switch {
	case len(diff) < 2:
		return 1
	case se == 0 && mean < 0:
		return 0
	case se == 0:
		return 1
	}
	return studentCDF(mean/se, float64(len(diff)-1))
}

// StudentTail is the chance that Student's t with nu degrees of freedom is above t.
func StudentTail(t, nu float64) float64 { return studentCDF(-t, nu) }

// studentCDF is the distribution function of Student's t with nu degrees of freedom. gonum's distuv
// has it too, but comes with all of its linear algebra, 2.7 MB of a binary that needs none.
func studentCDF(t, nu float64) float64 {
	tail := 0.5 * mathext.RegIncBeta(0.5*nu, 0.5, nu/(t*t+nu)) // beyond |t|, on one side
	if t > 0 {
		return 1 - tail
	}
	return tail
}

// ShareOf is got by best, and 0 where nothing can be had: a goal that no episode is long enough to
// reach.
func ShareOf(got, best float64) float64 {
	if best == 0 {
		return 0
	}
	return got / best
}
