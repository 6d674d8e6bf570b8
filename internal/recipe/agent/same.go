package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"haul/internal/config"
	"haul/internal/run"
	"haul/internal/world/history"
)

// SameStart returns nil if a run's checkpoint comes from a run on the histories of this file whose
// initial weights were those of checkpoint from (nil: a random initialisation). Otherwise the error
// gives the difference. A missing file of histories is not compared.
func SameStart(checkpoint, histories string, from *run.Checkpoint) error {
	ck, at, err := readCheckpoint(checkpoint)
	if err != nil {
		return err
	}
	began := ck.Progress.Began
	switch {
	case from == nil && len(began) > 0:
		return errors.New("the run began with the weights of another, and --from names none")
	case from != nil && len(began) == 0:
		return errors.New("the run began with weights of its own, and --from names others")
	case from != nil && !slices.Equal(began, from.Chain(about.RowsOf(from.Settings))):
		return errors.New("the run began with other weights than those of --from")
	}
	h, err := history.Open(histories)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d, err := newDataset(h, ck.Settings.(*config.AD))
	if err == nil && d.checksum != at.Histories {
		err = fmt.Errorf("the run learned from other histories than those of %s (checksum %s, not %s)", histories, at.Histories, d.checksum)
	}
	return errors.Join(err, h.Close())
}
