package search

import (
	"testing"
)

// BenchmarkRows measures a search per way in which routes are stored and evaluated. An operation is
// one whole search with the iterations of its fingerprint, first routes included.
func BenchmarkRows(b *testing.B) {
	cases := fingerprintCases(b)
	for _, row := range []struct{ name, problem string }{
		{"plain", "plain-medium-160"},
		{"plain-parts", "plain-parts"},
		{"lists-16-bits", "vrpmb"},
		{"lists-32-bits", "routefinder-mdovrpmb"},
		{"lists-windows", "routefinder-vrptw"},
		{"segments-windows", "homberger"},
		{"segments-time", "time-dependent-cost"},
		{"segments-order", "cvrp-mixed"},
		{"segments-backhauls", "vrpb-empty"},
		{"segments-types", "fsm-large"},
		{"segments-reloads", "mtvrptwr"},
		{"segments-shipments", "li-lim"},
		{"segments-groups", "gvrp"},
		{"segments-dimensions", "two-dimensional"},
		{"clocked", "breaks"},
		{"walked", "li-lim-all"},
		{"matrix-free", "matrix-free-pickups"},
	} {
		for i := range cases {
			if c := &cases[i]; c.name == row.problem {
				b.Run(row.name, func(b *testing.B) {
					p := c.problem()
					for b.Loop() {
						fingerprint(b, c, p, 1)
					}
					b.ReportMetric(float64(c.iterations*b.N)/b.Elapsed().Seconds(), "iterations/s")
				})
			}
		}
	}
}
