package recurrent

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/world/xland"
)

// TestPassesAreDealt: a pass takes every environment once. The order differs between passes and
// depends on the task's key.
func TestPassesAreDealt(t *testing.T) {
	l := &learner{order: make([]int, 40), key: 5}
	var orders [][]int
	deal := func() {
		l.shuffle()
		orders = append(orders, slices.Clone(l.order))
	}
	deal()
	deal()
	l.key, l.pass = 6, 0
	deal()
	for i, order := range orders {
		sorted := slices.Sorted(slices.Values(order))
		for e, v := range sorted {
			if v != e {
				t.Fatalf("pass %d: %v", i, order)
			}
		}
		if slices.Equal(order, sorted) || i > 0 && slices.Equal(order, orders[i-1]) {
			t.Errorf("pass %d: %v", i, order)
		}
	}
	l.key, l.pass = 5, 0
	if l.shuffle(); !slices.Equal(l.order, orders[0]) {
		t.Error("the same pass of the same task is dealt in another order")
	}
}

// TestGradientsThatAreNoNumbers: a learner whose weights are lost says so, and its pool returns
// that.
func TestGradientsThatAreNoNumbers(t *testing.T) {
	s, w := small(), room(t, 3, 5)
	p, err := NewPool(w, s, 8, []kernel.Device{openCPU(t, 1), openCPU(t, 1)}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, l := range p.learners {
		lost := make([]float32, l.net.model.Layout().Len)
		for i := range lost {
			lost[i] = float32(math.NaN())
		}
		l.onSteps = func(int) {
			if err := l.net.store.WriteWeights(lost); err != nil {
				t.Error(err)
			}
		}
	}
	err = p.Lives(context.Background(), make([][]xland.Step, 2), []xland.ID{3, 4}, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "the learner of ruleset ") || !strings.Contains(err.Error(), "is not finite: try a lower --rate") {
		t.Errorf("got %v", err)
	}
}

// TestHistoriesTogether: each learner is given several tasks, and no more histories than the host
// can keep.
func TestHistoriesTogether(t *testing.T) {
	s := small()
	p := &Pool{learners: []*learner{{Settings: &s}, {Settings: &s}}}
	if n, err := p.Together(3); n != 2*3*tasksTogether || err != nil {
		t.Errorf("%d histories together, %v", n, err)
	}
	s.Steps = 1 << 24
	if _, err := p.Together(1 << 16); err == nil || !strings.Contains(err.Error(), "--histories") {
		t.Errorf("terabytes of histories: %v", err)
	}
}
