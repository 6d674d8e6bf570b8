package comm

import (
	"errors"
	"strings"
	"testing"
)

// TestARankThatFailsLetsTheOthersGo: after a rank has failed, the present and the next collective
// of the other ranks return an error.
func TestARankThatFailsLetsTheOthersGo(t *testing.T) {
	worlds := Local(3)
	said := make(chan error, 2)
	for _, w := range worlds[1:] {
		go func() {
			err := w.Barrier()
			if err != nil {
				err = w.Barrier()
			}
			said <- err
		}()
	}
	worlds[0].Fail(errors.New("no memory"))
	for range 2 {
		if err := <-said; !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	}
}

// TestRanksThatDivergeFail: if ranks make different calls, all of them get an error that names both
// calls, instead of a deadlock; likewise if a rank has ended.
func TestRanksThatDivergeFail(t *testing.T) {
	gather := func(w *World) error { return w.AllGather(make([]float32, 64), 1) }
	for name, other := range map[string]func(w *World) error{
		"another call":  func(w *World) error { _, err := w.Scatter(make([]float32, 64), 1); return err },
		"another size":  func(w *World) error { return w.AllGather(make([]float32, 32), 1) },
		"one has ended": (*World).Close,
	} {
		said := make(chan error, 3)
		for i, w := range Local(3) {
			does := gather
			if i == 1 {
				does = other
			}
			go func() {
				err := does(w)
				if err != nil && w.Barrier() == nil { // later calls fail too
					err = errors.New("ranks that parted meet again")
				}
				said <- err
			}()
		}
		for range 3 {
			if err := <-said; err == nil || !strings.Contains(err.Error(), "the ranks have parted: rank 0 came to complete 256 bytes, rank 1 to ") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
