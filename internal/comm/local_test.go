package comm

import (
	"errors"
	"testing"
)

// TestARankThatFailsLetsTheOthersGo: goroutines that wait for a rank which has failed end with an error, in the collective under way and in the next.
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
