package report

import (
	"errors"
	"fmt"
	"os"
)

// appendFile is a file that grows by whole pieces. A piece whose write failed stays pending and is
// written before the next one, over the bytes that reached the disk: the file never keeps part of a
// piece.
type appendFile struct {
	f       *os.File
	size    int64 // bytes of complete pieces
	pending []byte
}

// openAppend opens the file for appending; flags are added to os.O_WRONLY|os.O_CREATE.
func openAppend(path string, flags int) (*appendFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o644)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &appendFile{f: f, size: st.Size()}, nil
}

// add appends the pending pieces and then piece.
func (a *appendFile) add(piece []byte) error {
	a.pending = append(a.pending, piece...)
	if len(a.pending) == 0 {
		return nil
	}
	if _, err := a.f.WriteAt(a.pending, a.size); err != nil {
		return err
	}
	a.size += int64(len(a.pending))
	a.pending = a.pending[:0]
	return nil
}

// sync brings the written pieces to the disk.
func (a *appendFile) sync() error { return syncFile(a.f) }

// syncFile syncs a file to the disk; tests replace it.
var syncFile = (*os.File).Sync

// close retries pending pieces, truncates an incomplete one, and returns an error if any is
// missing.
func (a *appendFile) close() error {
	err := a.add(nil)
	if err != nil {
		err = fmt.Errorf("%w; its last %d bytes are missing", err, len(a.pending))
		err = errors.Join(err, a.f.Truncate(a.size))
	}
	return errors.Join(err, a.f.Close())
}
