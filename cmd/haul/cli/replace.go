package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What a reader could break: a result gets its name only when all of it is on the disk, and a
// killed process leaves nothing behind. On systems with unnamed files (replace_linux.go) the
// content is written to one, which gets its name at the end. On others, and while such a file
// replaces an existing one, it is a hidden file beside the result, which a later write of the
// same result removes.

// replaceFile puts a file in the place of one that may be there.
func replaceFile(path string, data []byte) error {
	mode := os.FileMode(0o644)
	st, err := os.Stat(path)
	exists := err == nil
	if exists {
		mode = st.Mode().Perm()
	}
	sweepReplaced(path, time.Now())
	f, named, err := openUnnamed(path)
	if err != nil {
		return err
	}
	temp := ""
	if named {
		temp = f.Name()
	}
	err = fill(f, data, mode)
	if err == nil && !named {
		// a name that is free is taken at once, one that is not by way of another, for a moment
		if err = linkUnnamed(f, path); err != nil {
			temp = filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.p%d.tmp", filepath.Base(path), os.Getpid()))
			_ = os.Remove(temp) // of a killed process with this number
			if err = linkUnnamed(f, temp); err != nil {
				temp = ""
			} else if err = os.Rename(temp, path); err == nil {
				temp = ""
			}
		}
	}
	err = errors.Join(err, f.Close())
	if err == nil && temp != "" {
		err = os.Rename(temp, path)
	}
	if err != nil && temp != "" {
		err = errors.Join(err, os.Remove(temp))
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func fill(f *os.File, data []byte, mode os.FileMode) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Chmod(mode)
}

// openNamed opens a hidden file beside path.
func openNamed(path string) (*os.File, bool, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	return f, true, err
}

// sweepAfter is how old a hidden file must be to be a killed process's: nobody writes one for long.
const sweepAfter = time.Hour

// sweepReplaced takes hidden files away that killed processes left beside path.
func sweepReplaced(path string, now time.Time) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(path)+".")
		middle, tmp := strings.CutSuffix(middle, ".tmp")
		number, byProcess := strings.CutPrefix(middle, "p")
		if !ok || !tmp || number == "" || strings.Trim(number, "0123456789") != "" || !e.Type().IsRegular() {
			continue
		}
		gone := byProcess && ended(number)
		if info, err := e.Info(); gone || err == nil && now.Sub(info.ModTime()) > sweepAfter {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // what stays harms nobody
		}
	}
}
