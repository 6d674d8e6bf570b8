package train_test

import (
	"errors"
	"testing"

	"haul/cmd/haul/cli"
	"haul/internal/comm"
)

// Of ranks that a launcher started on one machine one tells of what all of them have; a rank that
// somebody started by hand has nobody to tell it.
func TestRanksByHandTellTheirErrors(t *testing.T) {
	bad := errors.New("cannot reach rank 0")
	for launcher, quiet := range map[string]bool{comm.Hand: false, "mpirun": true} {
		err := cli.OncePerMachine(comm.Place{Launcher: launcher, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}, bad)
		if errors.As(err, new(cli.Silent)) != quiet || !errors.Is(err, bad) {
			t.Errorf("%s: %v", launcher, err)
		}
	}
}
