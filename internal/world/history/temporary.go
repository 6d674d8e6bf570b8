package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A temporary file belongs to the process that holds its lock. The system releases the lock at any
// end of the process. File names and process numbers are no proof: numbers are reused, and differ
// between containers.

const tempSuffix = ".tmp"

// createTemporary creates and locks the temporary file for a path. It removes temporary files of
// killed processes for the same path.
func createTemporary(path string) (*os.File, error) {
	removeStale(path)
	name := fmt.Sprintf("%s.%d%s", path, os.Getpid(), tempSuffix)
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if mine, known := hold(f); known && !mine { // a process in another container with the same number
			return nil, errors.Join(fmt.Errorf("another process is writing it (%s)", filepath.Base(name)), f.Close())
		}
		if there, err := os.Stat(name); err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(there, own) {
				return f, f.Truncate(0)
			}
		}
		f.Close() // another process removed it as stale before it was locked
	}
}

// isTemporary reports whether a name is a temporary file's for base, of any process.
func isTemporary(name, base string) bool {
	rest, ours := strings.CutPrefix(name, base+".")
	number, temp := strings.CutSuffix(rest, tempSuffix)
	return ours && temp && number != "" && strings.Trim(number, "0123456789") == ""
}

// removeStale removes the temporary files of path that no process has locked. Failures are ignored.
func removeStale(path string) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isTemporary(e.Name(), base) {
			continue
		}
		name := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if mine, known := hold(f); known && mine {
			os.Remove(name)
		}
		f.Close()
	}
}
