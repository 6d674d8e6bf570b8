package ledger

import (
	"slices"
	"testing"

	"haul/internal/kernel"
)

// TestExchangeIsCommunication: what a process spends on others is a stage of its own, between the
// gradient and its use, and no stage of a program that exchanges nothing.
func TestExchangeIsCommunication(t *testing.T) {
	l := &kernel.Layout{}
	alone := &kernel.Program{Once: []kernel.Op{&kernel.Reduce{Layout: l}, &kernel.AdamW{Layout: l}}}
	shared := &kernel.Program{Once: []kernel.Op{&kernel.Reduce{Layout: l}, &kernel.Exchange{Layout: l}, &kernel.AdamW{Layout: l}}}
	if got := Stages(shared); !slices.Equal(got, []Stage{Optimizer, Communicate, Optimizer}) {
		t.Errorf("stages %v", got)
	}
	if got := ordered(Stages(alone)); slices.Contains(got, Communicate) {
		t.Errorf("a process alone communicates: %v", got)
	}
	if got := ordered(Stages(shared)); slices.Index(got, Communicate) != slices.Index(got, Backward)+1 {
		t.Errorf("stages in the order %v", got)
	}
}
