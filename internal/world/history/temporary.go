package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What a reader could break: a temporary file belongs to the process that holds its lock, which
// the system releases however the process ends. Names and process numbers prove nothing: numbers
// are used again, and mean something else in each container.

const tempSuffix = ".tmp"

// createTemporary makes the temporary of a file, locked, and removes those that killed processes
// have left of it.
func createTemporary(path string) (*os.File, error) {
	removeStale(path)
	name := fmt.Sprintf("%s.%d%s", path, os.Getpid(), tempSuffix)
	for {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if mine, known := hold(f); known && !mine { // another container's process of the same number
			return nil, errors.Join(fmt.Errorf("another process is writing it (%s)", filepath.Base(name)), f.Close())
		}
		if there, err := os.Stat(name); err == nil {
			if own, err := f.Stat(); err == nil && os.SameFile(there, own) {
				return f, f.Truncate(0)
			}
		}
		f.Close() // somebody took it for a stale one before it was locked
	}
}

// isTemporary tells whether a name is that of base's temporary, whoever made it.
func isTemporary(name, base string) bool {
	rest, ours := strings.CutPrefix(name, base+".")
	number, temp := strings.CutSuffix(rest, tempSuffix)
	return ours && temp && number != "" && strings.Trim(number, "0123456789") == ""
}

// removeStale removes the temporaries of path that nobody holds. What cannot be removed is left: it
// is in nobody's way.
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
