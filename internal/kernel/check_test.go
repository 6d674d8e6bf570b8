package kernel

import (
	"strings"
	"testing"
)

// TestCheckRefuses: what no device could run is said in one line, whichever device it would have
// been.
func TestCheckRefuses(t *testing.T) {
	l := &Layout{}
	sum := func(names ...string) *Tally {
		o := &Tally{}
		for _, n := range names {
			o.Sums = append(o.Sums, Sum{Name: n, Terms: []Term{{Weight: 1}}})
		}
		return o
	}
	batch := func(cols int) *Tensor {
		return &Tensor{Name: "x", Space: Batch, Shape: []int{2, cols}, Stride: cols}
	}
	many := make([]string, MaxSums+1)
	for i := range many {
		many[i] = strings.Repeat("s", i+1)
	}
	for _, c := range []struct {
		name string
		once []Op
		want string // "" passes
	}{
		{"in order", []Op{&Reduce{Layout: l}, &Exchange{Layout: l}, &AdamW{Layout: l}, sum("a", "b")}, ""},
		{"reduced twice", []Op{&Reduce{Layout: l}, &Reduce{Layout: l}}, "the gradient is reduced twice"},
		{"not reduced", []Op{&AdamW{Layout: l}}, "adamw without a reduced gradient before it"},
		{"reduced too late", []Op{&Exchange{Layout: l}, &Reduce{Layout: l}}, "exchange without a reduced gradient before it"},
		{"a sum twice", []Op{sum("a", "a")}, `sum "a" has no name or is there twice`},
		{"a sum without a name", []Op{sum("")}, `sum "" has no name`},
		{"too many sums", []Op{sum(many...)}, "33 sums, there is room for 32"},
		{"columns that do not fit", []Op{&Tally{Sums: []Sum{NewSum("a", batch(3), batch(2))}}}, "want a batch tensor of 1 or 3 columns"},
		{"a tensor of a shard", []Op{&Tally{Sums: []Sum{NewSum("a", &Tensor{Name: "x", Space: Shard, Shape: []int{2, 1}, Stride: 1}, nil)}}}, "want a batch tensor"},
	} {
		err := (&Program{Name: "p", Once: c.once}).Check()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want one line with %q", c.name, err, c.want)
		}
	}
	misplaced := &Program{Name: "p", Tensors: []*Tensor{{Name: "s", Space: Scalar, Type: F64, Shape: []int{1}, Offset: 1}}}
	if err := misplaced.Check(); err == nil || !strings.Contains(err.Error(), "is no scalar at place 0") {
		t.Errorf("a scalar at another place: %v", err)
	}
}
