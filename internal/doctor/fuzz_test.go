package doctor

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"haul/internal/doctor/nsys"
	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
	"haul/internal/limits/limitstest"
)

// FuzzRanks joins a trace with itself, shifted in time and cut. Any two files are analysed or
// refused, and the parts of a report add up to at most the whole.
func FuzzRanks(f *testing.F) {
	// Small seeds: the fuzzer runs every one again before it begins, and shortens what it finds.
	for n := range 2 {
		s := newSynth()
		s.step(n, func() {
			s.dense(2, 50)
			s.exchange(s.gpu, 100, 1<<20)
		})
		f.Add(s.json(), uint16(n))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			if len(data) > 1<<14 {
				return
			}
			var list []*report.Report
			for _, part := range [][]byte{data, data[:len(data)-min(len(data), int(cut))]} {
				tr, err := trace.Read(bytes.NewReader(part))
				if err != nil {
					return
				}
				r, err := report.Diagnose(tr)
				if err != nil {
					return
				}
				list = append(list, r)
			}
			j := report.JoinRanks(list)
			if _, err := json.Marshal(j); err != nil {
				t.Fatal(err)
			}
			if err := j.WriteText(io.Discard, report.Text{Breakdown: true}); err != nil {
				t.Fatal(err)
			}
			if err := j.WriteHTML(io.Discard); err != nil {
				t.Fatal(err)
			}
			report.CompareRanks(j, j)
		}, data, cut)
	})
}

// FuzzNsys reads what claims to be a database: any bytes are refused or read, and end.
func FuzzNsys(f *testing.F) {
	sample, err := os.ReadFile("testdata/nsys.sqlite")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample[:min(len(sample), 1<<16)])
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			if len(data) > 1<<18 {
				return
			}
			_, _ = nsys.Read(bytes.NewReader(data), int64(len(data)), nil, func(nsys.Row) {})
		}, data)
	})
}
