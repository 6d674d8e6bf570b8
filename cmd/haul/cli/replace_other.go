//go:build !linux

package cli

import (
	"errors"
	"os"
)

func openUnnamed(path string) (*os.File, bool, error) { return openNamed(path) }

func linkUnnamed(*os.File, string) error { return errors.ErrUnsupported }

func ended(string) bool { return false }

// syncFolder brings names to the disk, where the system can.
func syncFolder(dir string) error {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		return d.Close()
	}
	return nil
}
