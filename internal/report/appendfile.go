package report

import (
	"errors"
	"fmt"
	"os"
)

// appendFile grows by whole pieces. A piece that could not be written stays pending and goes out
// before the next, over whatever part of it reached the disk: the file never keeps a torn piece.
type appendFile struct {
	f       *os.File
	size    int64 // what is whole
	pending []byte
}

// openAppend opens the file at its end; flags add to os.O_WRONLY|os.O_CREATE.
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

// add writes what is pending and piece.
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

// sync brings what was added to the disk.
func (a *appendFile) sync() error { return syncFile(a.f) }

// syncFile brings a file to the disk; tests record it.
var syncFile = (*os.File).Sync

// close tries once more, cuts off what is not whole, and says what is missing.
func (a *appendFile) close() error {
	err := a.add(nil)
	if err != nil {
		err = fmt.Errorf("%w; its last %d bytes are missing", err, len(a.pending))
		err = errors.Join(err, a.f.Truncate(a.size))
	}
	return errors.Join(err, a.f.Close())
}
