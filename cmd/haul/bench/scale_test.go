package bench

import (
	"math"
	"testing"
)

// TestScaleModel: the fit finds the line that times lie on, and the batch for 90 % is where the
// model has 90 %.
func TestScaleModel(t *testing.T) {
	m := &scaleModel{Batch: 512, Bytes: 2.4e6, Sizes: []int{512, 256, 128}}
	for _, n := range m.Sizes {
		m.Times = append(m.Times, 1e-3+float64(n)*2e-5)
	}
	m.fit()
	m.predict()
	if math.Abs(m.Fixed-1e-3) > 1e-9 || math.Abs(m.Row-2e-5) > 1e-12 {
		t.Fatalf("fixed %v, per row %v", m.Fixed, m.Row)
	}
	for _, r := range m.Rows {
		c, step := m.exchange(r.link, r.Ranks), m.step(float64(r.Batch))
		if r.Batch > 0 && math.Abs(step/(step+c)-0.9) > 1e-9 {
			t.Errorf("%s, %d ranks: batch %v does not give 90 %%", r.Name, r.Ranks, r.Batch)
		}
		if r.Ranks == 1 && (r.Strong != 1 || r.Weak != 1) || r.Strong > r.Weak+1e-12 {
			t.Errorf("odd line %+v", r)
		}
	}
}
