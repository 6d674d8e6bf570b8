package report

import (
	"encoding/json"
	"io"

	"haul/internal/train"
)

// jsonLines prints one JSON object a line.
type jsonLines struct {
	w   io.Writer
	err error
}

// print writes a line. After a failure nothing more is printed: a reader would take the stream for whole.
func (o *jsonLines) print(v any) {
	if o.err != nil {
		return
	}
	line, err := json.Marshal(v)
	if err == nil {
		_, err = o.w.Write(append(line, '\n'))
	}
	o.err = err
}

// Close returns the first failure.
func (o *jsonLines) Close() error { return o.err }

// Objects prints one JSON object a line, an epoch each.
type Objects struct {
	quiet
	jsonLines
}

// NewObjects prints to w.
func NewObjects(w io.Writer) *Objects { return &Objects{jsonLines: jsonLines{w: w}} }

// Epoch prints the report.
func (o *Objects) Epoch(r train.EpochReport) { o.print(r) }
