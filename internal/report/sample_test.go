package report

import (
	"fmt"
	"io"

	"haul/internal/draw"
)

// row has a column of every kind, and two curves.
type row struct {
	Epoch  int      `json:"epoch" csv:"epoch"`
	Cost   float64  `json:"cost" csv:"cost" tb:"train/cost"`
	Val    *float64 `json:"val" csv:"val" tb:"val/cost"`
	Of     *int     `json:"of" csv:"of"`
	Name   string   `json:"name" csv:"name"`
	Best   bool     `json:"best" csv:"best"`
	Hidden float64  `json:"hidden"`
	Nested struct {
		Deep float64 `json:"deep" csv:"deep"`
	} `json:"nested"`
	Asked
}

func rowOf(epoch int) *row {
	val := 0.4 + 1/float64(epoch+1)
	return &row{Epoch: epoch, Cost: val + 0.1, Val: &val, Name: "optimum", Asked: Asked{Launches: 25}}
}

const (
	sampleFile = "csv/history_sample.csv"
	sampleLast = 10
)

// sample is the view of a fictitious recipe.
type sample struct {
	rows []*row
	past int
}

func (v *sample) Banner(bool) (string, [][2]string) {
	return "2 customers", [][2]string{{"step", "128 instances in 8 shards of 16"}}
}
func (v *sample) Heading() (string, []string) { return "    epoch     cost", nil }
func (v *sample) Add(r *Record, past bool) {
	v.rows = append(v.rows, r.Row.(*row))
	if past {
		v.past++
	}
}
func (v *sample) Line(r *Record, _ bool) string {
	return fmt.Sprintf("epoch %d/%d  cost %.4f and figures enough for a line that no narrow screen can hold", r.At, sampleLast, r.Row.(*row).Cost)
}
func (v *sample) Status(t Tick) Status {
	return Status{Place: fmt.Sprintf("%d/%d", (t.Updates-1)/100+1, sampleLast), Share: 0.5, Speed: "3,500 inst/s", Left: 12, Figures: "  train 0.5000  val 0.4000  gap +5.00 %"}
}
func (v *sample) Chart() Chart {
	c := Chart{Last: sampleLast, Level: 0.39, Name: "optimum"}
	for _, r := range v.rows {
		c.Points = append(c.Points, Point{float64(r.Epoch), *r.Val})
	}
	return c
}
func (v *sample) Pictures() []Picture {
	return []Picture{{Name: "curves", Draw: func(w io.Writer, f draw.Format) error {
		_, err := io.WriteString(w, "a picture as "+string(f))
		return err
	}}}
}

func infoOf(dir string) (*Info, *sample) {
	v := &sample{}
	return &Info{Recipe: "GT+RL", Config: "quick", Parameters: 594700, Device: "cpu (avx512, 2 workers)", Precision: "fp32", Memory: 1 << 27, Dir: dir,
		Tables: []Table{{Kind: "epoch", File: sampleFile, Row: new(row)}}, View: v}, v
}

// tell reports an epoch as a run does: the view receives it first.
func send(l Listener, v *sample, epoch int) {
	r := &Record{Kind: "epoch", At: epoch, Row: rowOf(epoch)}
	v.Add(r, false)
	l.Record(r)
}

func endingOf(dir string) *Ending {
	e := &Ending{Title: "done: 10 epochs", Row: struct {
		Gap float64 `json:"test_gap"`
	}{0.055}}
	e.Line("test", "gap %+.2f %%", 5.5)
	e.Line("next", "haul eval --checkpoint %s", dir)
	return e
}
