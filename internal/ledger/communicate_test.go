package ledger

import (
	"slices"
	"testing"

	"haul/internal/kernel"
)

// TestExchangeIsCommunication: exchanges between ranks are a separate stage, between the gradient
// and its use. A program without exchanges does not have the stage.
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
