package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"haul/internal/draw"
)

// Folder stores the history of a run in its folder: CSV rows and TensorBoard events with each
// record, pictures at the end. The owner must call Close, also if the run fails.
type Folder struct {
	Silent
	files
	now func() time.Time

	view   View
	tables map[string]*tableFile // by kind of record
	events *appendFile
	at     int // Record.At of the last record
}

// tableFile is a table and its file; the file is nil if it could not be opened.
type tableFile struct {
	*table
	name string
	file *appendFile
}

// NewFolder returns a Folder that reports failures by note, once per file.
func NewFolder(note func(string)) *Folder {
	return &Folder{files: newFiles(note), now: time.Now, tables: map[string]*tableFile{}}
}

const eventsName = eventPrefix + "*"

// Start opens the files. For a resumed run it drops rows after the checkpoint and passes the others
// to the view.
func (f *Folder) Start(i *Info) {
	f.dir, f.last, f.view, f.at = i.Dir, i.Last, i.View, i.At
	for _, t := range i.Tables {
		k := &tableFile{table: tableOf(t.Row), name: t.File}
		f.tables[t.Kind] = k
		file, rows, err := k.open(f.path(t.File), i.At)
		if err != nil {
			f.fail(t.File, err, true)
			continue
		}
		k.file = file
		if missing := t.Recorded - len(rows); missing > 0 {
			f.note(fmt.Sprintf("%s: %s are missing of %d that the run has written: the file was cut short; it goes on from here", f.path(t.File), Plural(int64(missing), "row"), t.Recorded))
		}
		for _, row := range rows {
			i.View.Add(&Record{Kind: t.Kind, At: k.at(row), Row: row}, true)
		}
	}
	var err error
	f.events, err = openEvents(i.Dir, i.Resumed, i.At, f.now())
	f.fail(eventsName, err, f.events == nil)
}

// Record appends a row and an event.
func (f *Folder) Record(r *Record) {
	k := f.tables[r.Kind]
	if k == nil {
		return // a record without a table is not stored
	}
	if k.file != nil {
		err := k.file.add(encode(k.cells(r.Row)))
		if err == nil {
			err = k.file.sync() // the checkpoint that follows requires it
		}
		f.fail(k.name, err, false)
	}
	f.at = r.At
	if f.events != nil && len(k.curves) > 0 {
		f.fail(eventsName, f.events.add(k.scalars(r.Row, r.At, f.now())), false)
	}
}

// resultName is the file with the summary of a run.
const resultName = "result.json"

// Done stores the summary of the run in result.json, and its numbers as curves of one point.
func (f *Folder) Done(e *Ending) {
	f.ended = true
	text, err := json.MarshalIndent(e.Row, "", "  ")
	if err == nil {
		err = f.whole(resultName, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	}
	f.fail(resultName, err, true)
	if t := curvesOf(e.Row); f.events != nil && len(t.curves) > 0 {
		f.fail(eventsName, f.events.add(t.scalars(e.Row, f.at, f.now())), false)
	}
}

// Close draws the pictures, closes the files and returns one error that names what they lack.
func (f *Folder) Close() error {
	if f.dir == "" {
		return nil // the run never started
	}
	for _, p := range f.view.Pictures() {
		for _, format := range []draw.Format{draw.SVG, draw.PNG} {
			f.picture(p.Name, format, func(w io.Writer) error { return p.Draw(w, format) })
		}
	}
	for _, k := range f.tables {
		if k.file != nil {
			f.fail(k.name, k.file.close(), true)
		}
	}
	if f.events != nil {
		f.fail(eventsName, f.events.close(), true)
	}
	return f.missing()
}
