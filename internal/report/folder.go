package report

import (
	"io"
	"time"

	"haul/internal/draw"
	"haul/internal/train"
)

// The files of a run folder that this package writes, beside the event files.
const (
	historyName = "csv/history_gt_rl.csv"
	curvesName  = "curves" // .svg and .png
	routesName  = "routes" // .svg and .png
)

// Folder keeps the history of a run in its folder: CSV and TensorBoard events an epoch at a time, pictures at the end.
// The owner calls Close however the run ends.
type Folder struct {
	quiet
	papers
	now func() time.Time

	info    train.Info
	rows    []train.EpochReport
	history *appendFile
	events  *appendFile
	example *train.Example
}

// NewFolder notes failures to note, once a file.
func NewFolder(note func(string)) *Folder {
	return &Folder{papers: newPapers(note), now: time.Now}
}

// Rows are the epochs of the run, those before a resume included. They are there once Start has been called.
func (f *Folder) Rows() []train.EpochReport { return f.rows }

// Start opens the files; of a resumed run it drops what lies past the checkpoint.
func (f *Folder) Start(i train.Info) {
	f.info, f.dir = i, i.Dir
	var err error
	if f.history, f.rows, err = epochs.open(f.path(historyName), i.EpochsDone); err != nil {
		f.history = nil
		f.fail(historyName, err, true)
	}
	if f.events, err = openEvents(i.Dir, i.Resumed, i.EpochsDone, f.now()); err != nil {
		f.fail(eventPrefix+"*", err, f.events == nil)
	}
}

// Epoch adds a row and an event.
func (f *Folder) Epoch(r train.EpochReport) {
	f.rows = append(f.rows, r)
	if f.history != nil {
		f.fail(historyName, f.history.add(encode(epochs.cells(&r))), false)
	}
	if f.events != nil {
		f.fail(eventPrefix+"*", f.events.add(scalarEvent(epochScalars, &r, r.Epoch, f.now())), false)
	}
}

// Done keeps the example for its picture.
func (f *Folder) Done(s train.Summary) { f.example = &s.Example }

// Close draws the pictures, closes the files and returns what is missing from them, in one error.
func (f *Folder) Close() error {
	if f.info.Dir == "" {
		return nil // the run never started
	}
	for _, format := range []draw.Format{draw.SVG, draw.PNG} {
		f.picture(curvesName, format, len(f.rows) > 0, func(w io.Writer) error { return drawCurves(w, format, &f.info, f.rows) })
		f.picture(routesName, format, f.example != nil, func(w io.Writer) error { return drawExample(w, format, &f.info, f.rows, f.example) })
	}
	for _, a := range []struct {
		name string
		file *appendFile
	}{{historyName, f.history}, {eventPrefix + "*", f.events}} {
		if a.file != nil {
			f.fail(a.name, a.file.close(), true)
		}
	}
	return f.missing()
}
