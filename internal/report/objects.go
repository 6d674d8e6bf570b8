package report

import (
	"encoding/json"
	"io"

	"haul/internal/train"
)

// Objects prints one JSON object a line, an epoch each.
type Objects struct {
	quiet
	w   io.Writer
	err error
}

// NewObjects prints to w.
func NewObjects(w io.Writer) *Objects { return &Objects{w: w} }

// Epoch prints the report. After a failure nothing more is printed: a reader would take the stream for whole.
func (o *Objects) Epoch(r train.EpochReport) {
	if o.err != nil {
		return
	}
	line, err := json.Marshal(r)
	if err == nil {
		_, err = o.w.Write(append(line, '\n'))
	}
	o.err = err
}

// Close returns the first failure.
func (o *Objects) Close() error { return o.err }
