package cli

import (
	"strings"
	"testing"

	"haul/internal/comm"
)

// Who waits says for whom: a single rank, whose NCCL takes its time to open, waits for nobody.
func TestOnlyRanksWithOthersWait(t *testing.T) {
	two := comm.Place{Launcher: comm.Hand, Rank: 1, Size: 2, Address: "host:29500"}
	if got := waits(two); !strings.Contains(got, "rank 1 of 2 waits for the others at host:29500") {
		t.Errorf("two by hand: %q", got)
	}
	for _, p := range []comm.Place{{Launcher: comm.Hand, Size: 1}, {Launcher: "mpirun", Size: 2, Rank: 1}} {
		if got := waits(p); got != "" {
			t.Errorf("%+v: %q", p, got)
		}
	}
}
