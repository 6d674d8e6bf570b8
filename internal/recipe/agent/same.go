package agent

import (
	"errors"
	"fmt"
	"io/fs"

	"haul/internal/config"
	"haul/internal/world/history"
)

// SameStart says why a run's checkpoint cannot stand for a run on the histories of this file: it
// has learned from others, or began with weights (from) where none are given, or without. A file
// that is gone tells nothing.
func SameStart(checkpoint, histories string, from bool) error {
	ck, at, err := readCheckpoint(checkpoint)
	if err != nil {
		return err
	}
	switch began := len(ck.Progress.Began) > 0; {
	case began && !from:
		return errors.New("the run began with the weights of another, and --from names none")
	case !began && from:
		return errors.New("the run began with weights of its own, and --from names others")
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
