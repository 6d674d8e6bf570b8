package loader

import (
	"errors"
	"strings"
	"testing"
)

// TestTheFirstOfTwoBadRowsIsNamed: if two workers fail in a batch, the error names the earlier row,
// even if the later row failed first.
func TestTheFirstOfTwoBadRowsIsNamed(t *testing.T) {
	late := make(chan struct{}) // closed when the later row has failed
	o := testOptions(2, 1, 2, 32, 0)
	o.Fill = func(g uint64, _ [][]int32) error {
		switch g {
		case 20:
			defer close(late)
			return errors.New("the later row")
		case 3:
			<-late
			return errors.New("the earlier row")
		}
		return nil
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "row 3 (global index 3): the earlier row") {
		t.Errorf("got %v", err)
	}
}

func TestMeanReady(t *testing.T) {
	if got := (Stats{Ready: []int64{1, 2, 3}}).MeanReady(); got != (2+2*3)/6.0 {
		t.Errorf("%v batches ready on average, want 8 in 6 calls", got)
	}
	if got := (Stats{}).MeanReady(); got != 0 {
		t.Errorf("%v without a call", got)
	}
}
