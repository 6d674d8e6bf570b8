package doctor

import (
	"bytes"
	"fmt"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
)

// BenchmarkNames reads and analyses a step in which every operator and every kernel has a separate
// name. The time per name must not grow with their number, except for caches: 400,000 names have
// once taken twice as long each as 100,000.
//
//	go test ./internal/doctor -run '^$' -bench Names -benchtime 3x
func BenchmarkNames(b *testing.B) {
	for _, names := range []int{50_000, 100_000, 200_000, 400_000} {
		b.Run(fmt.Sprint(names), func(b *testing.B) {
			s := newSynth()
			s.step(0, func() {
				for i := range names / 2 {
					s.kernelOp(fmt.Sprintf("own::op%d", i), "", 4, 64)
				}
			})
			text := s.json()
			for b.Loop() {
				t, err := trace.Read(bytes.NewReader(text))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := report.Diagnose(t); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(names), "ns/name")
		})
	}
}
