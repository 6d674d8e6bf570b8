package cuda

import (
	"fmt"
	"math"

	"haul/internal/kernel"
)

func (b *binder) advantage(o *kernel.Advantage) ([]launch, error) {
	instances, starts := o.Adv.Shape[0], o.Adv.Shape[1]
	return []launch{{module: "tally", kernel: "advantage", grid: dim3{ceil(instances, 4), 1, 1}, block: dim3{128, 1, 1},
		args: []any{b.addr(o.Adv), b.addr(o.Length), b.addr(o.Base), b.state, i32(instances), i32(starts), i32(int(o.Mode)), o.Weight}}}, nil
}

// tally is one block: sums of a few ten thousand rows, in a fixed order, cost less than a second launch.
func (b *binder) tally(o *kernel.Tally) ([]launch, error) {
	starts := o.Length.Cols()
	return []launch{{module: "tally", kernel: "tally", grid: dim3{1, 1, 1}, block: dim3{1024, 1, 1},
		args: []any{b.metrics, b.state, b.control, b.addr(o.Length), b.addr(o.LogProb), b.addr(o.Entropy), b.addr(o.Steps), b.addr(o.Adv),
			b.addr(o.Base), math.Float64bits(o.EMADecay), i32(b.batch * starts), i32(starts)}}}, nil
}

func (b *binder) tallyTokens(o *kernel.TallyTokens) ([]launch, error) {
	heads := o.Sums.Cols() / 3
	if most := len(kernel.Metrics{}.Heads); heads > most {
		return nil, fmt.Errorf("%s: %d classifiers, the metrics hold %d", o.Kind(), heads, most)
	}
	return []launch{{module: "tally", kernel: "tally_tokens", grid: dim3{1, 1, 1}, block: dim3{256, 1, 1},
		args: []any{b.metrics, b.addr(o.Sums), i32(b.batch), i32(heads)}}}, nil
}
