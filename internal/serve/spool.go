package serve

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
)

// What a reader could break: an upload takes none of the doctor's places while it arrives. A
// client may take ten minutes to send it; a place is taken once all of it is here. The temporary
// file is removed when the request ends, however it ends.

// spoolMemory is how much of an upload is held in memory; what is larger goes into a temporary
// file.
const spoolMemory = 1 << 20

// spool takes a body in whole and gives it back to be read. The caller closes it.
func spool(body io.Reader) (io.ReadCloser, error) {
	head, err := io.ReadAll(io.LimitReader(body, spoolMemory))
	if err != nil {
		return nil, cutOff(err)
	}
	if len(head) < spoolMemory {
		return io.NopCloser(bytes.NewReader(head)), nil
	}
	f, err := os.CreateTemp("", "haul-upload-")
	if err != nil {
		return nil, turnAway(body, noRoom(err))
	}
	file := &spooled{File: f}
	// an open file is read on without its name; where that is not so, Close removes it
	_ = os.Remove(f.Name())
	if _, err := f.Write(head); err != nil {
		return nil, errors.Join(turnAway(body, noRoom(err)), file.Close())
	}
	if _, err := io.Copy(toDisk{f}, body); err != nil {
		return nil, errors.Join(turnAway(body, cutOff(err)), file.Close())
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(noRoom(err), file.Close())
	}
	return file, nil
}

// toDisk tells what goes wrong with the file from what goes wrong with the body.
type toDisk struct{ f *os.File }

func (d toDisk) Write(b []byte) (int, error) {
	n, err := d.f.Write(b)
	if err != nil {
		err = noRoom(err)
	}
	return n, err
}

func noRoom(err error) error {
	return refuse(http.StatusInsufficientStorage, "the upload cannot be put aside in %s: %v", os.TempDir(), err)
}

// turnAway lets the rest of a body come in, within its limits, before it is refused: a client that
// still sends when its connection is reset never reads why.
func turnAway(body io.Reader, why error) error {
	_, _ = io.Copy(io.Discard, body) // that it is cut off now is no news
	return why
}

// cutOff words a body that ended before its length.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(http.StatusBadRequest, "the upload was cut off")
	}
	return err
}

// spooled is a temporary file that is gone once it is closed.
type spooled struct{ *os.File }

func (s *spooled) Close() error {
	err := s.File.Close()
	_ = os.Remove(s.Name()) // where an open file could not be removed
	return err
}
