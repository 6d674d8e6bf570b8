package doctor

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

// The page stands alone: style and pictures are inside it, and it asks nothing of the network. Names
// out of the trace reach it through html/template or html.EscapeString, never as they are.

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ms":      figure,
	"percent": percent,
	"count":   perStepCount,
	"kb":      func(bytes float64) string { return figure(bytes / 1024) },
	"rank":    func(i int) int { return i + 1 },
	"color":   func(i int) string { return fmt.Sprintf("f%d", min(i, 5)) },
	"width":   func(share float64) string { return fmt.Sprintf("%.2f%%", 100*min(1, max(0, share))) },
}).Parse(pageText))

// WriteHTML writes the report as one page with the timeline of a step, its gaps and the findings.
func (r *Report) WriteHTML(w io.Writer) error {
	step := r.typicalStep()
	v := struct {
		*Report
		IdleMS        float64
		Bar           []segment
		Whole, Detail template.HTML
		From          string
	}{Report: r, IdleMS: r.StepMS * (1 - r.GPUBusyShare), Bar: r.bar()}
	v.Whole = template.HTML(r.picture(step, false))
	if near, ok := r.closeUp(step); ok {
		v.Detail = template.HTML(r.picture(near, true))
		v.From = fmt.Sprintf("%s µs, %s ms into the step", figure(float64(near.end-near.start)/1000), figure(float64(near.start-step.start)/1e6))
	}
	return page.Execute(w, v)
}

// segment is a piece of the bar that splits a step's time.
type segment struct {
	Class, What string
	MS, Share   float64
}

func (r *Report) bar() []segment {
	out := []segment{{"busy", "GPU working", r.StepMS * r.GPUBusyShare, r.GPUBusyShare}}
	for i, s := range r.Idle {
		out = append(out, segment{fmt.Sprintf("idle%d", min(i, 5)), "idle, the CPU " + s.What, s.MS, s.MS / r.StepMS})
	}
	return out
}

// WriteHTML of a comparison and of ranks.
func (d *Diff) WriteHTML(w io.Writer) error  { return d.After.WriteHTML(w) }
func (j *Ranks) WriteHTML(w io.Writer) error { return j.Ranks[0].WriteHTML(w) }
