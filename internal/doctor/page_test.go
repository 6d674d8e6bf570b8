package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/trace"
)

func pageOf(t testing.TB, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var dataBlock = regexp.MustCompile(`(?s)<script type="application/json" id="timeline-data">(.*?)</script>`)

// drawn is the page's timeline as its script reads it.
type drawn struct {
	Span, From, To int64
	Lanes          []struct {
		Label string
		Marks []int64
	}
	Labels, Classes []string
	Places          []struct {
		ID         string
		Start, End int64
	}
}

func dataOf(t testing.TB, page string) drawn {
	t.Helper()
	m := dataBlock.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page holds no data")
	}
	var d drawn
	if err := json.Unmarshal([]byte(m[1]), &d); err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Lanes {
		at := int64(0)
		for i := 0; i < len(l.Marks); i += 4 {
			at += l.Marks[i] + l.Marks[i+1]
			if l.Marks[i+1] < 0 || int(l.Marks[i+2]) >= len(d.Classes) || int(l.Marks[i+3]) >= len(d.Labels) || at > d.Span {
				t.Fatalf("lane %s, mark %d: %v, span %d", l.Label, i/4, l.Marks[i:i+4], d.Span)
			}
		}
	}
	return d
}

func (d drawn) lane(label string) []int64 {
	for _, l := range d.Lanes {
		if l.Label == label {
			return l.Marks
		}
	}
	return nil
}

// outside matches anything that a page would load.
var outside = regexp.MustCompile(`(?i)<link|@import|url\(|\ssrc=|https?://|<iframe|import\(|fetch\(|XMLHttp`)

func TestPageStandsAlone(t *testing.T) {
	for _, c := range truths {
		t.Run(c.name, func(t *testing.T) {
			r := diagnoseFile(t, recording(c.name))
			text := pageOf(t, r)
			if found := outside.FindString(text); found != "" {
				t.Errorf("the page reaches out: %s", found)
			}
			if len(text) > 1<<20 {
				t.Errorf("the page has %d bytes", len(text))
			}
			d := dataOf(t, text)
			for _, l := range []string{"operators", "driver calls", "GPU", "GPU waits for"} {
				if len(d.lane(l)) == 0 {
					t.Errorf("the timeline has no lane %s", l)
				}
			}
			for i, f := range r.Findings {
				if !strings.Contains(text, f.ID) {
					t.Errorf("the page does not name %s", f.ID)
				}
				id := fmt.Sprintf("f%d", i)
				if len(f.Places) > 0 && !slices.ContainsFunc(d.Places, func(p struct {
					ID         string
					Start, End int64
				}) bool {
					return p.ID == id
				}) {
					t.Errorf("nothing to jump to for %s", f.ID)
				}
			}
		})
	}
}

// Without GPU work there is no lane for it.
func TestPageWithoutGPU(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		for range 10 {
			s.op("aten::addmm", "", 100, nil)
		}
	})
	text := pageOf(t, diagnose(t, s.json()))
	d := dataOf(t, text)
	if d.lane("GPU") != nil || d.lane("driver calls") != nil || len(d.lane("operators")) != 40 || !slices.Contains(d.Labels, "aten::addmm") {
		t.Errorf("%+v", d)
	}
}

// A name out of the trace must not become part of the page.
func TestPageEscapesNames(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		for range 30 {
			s.kernelOp("</script><b>evil</b>&", "", 20, 4)
		}
		s.now += 4000
	})
	text := pageOf(t, diagnose(t, s.json()))
	if strings.Contains(text, "<b>evil") {
		t.Error("a name is written as it is")
	}
	if !slices.Contains(dataOf(t, text).Labels, "</script><b>evil</b>&") {
		t.Error("the name is not shown at all")
	}
}

// A kernel that began before the step still runs in it, and must be drawn.
func TestPageKeepsWorkThatBeganEarlier(t *testing.T) {
	s := newSynth()
	s.emit("kernel", "void early", -500, 900, "")
	s.step(1, func() { s.now += 1000; s.kernelOp("aten::add", "", 20, 4) })
	d := dataOf(t, pageOf(t, diagnose(t, s.json())))
	marks := d.lane("GPU")
	if len(marks) == 0 || marks[0] != 0 || marks[1] != 400_000 || d.Labels[marks[3]] != "early" {
		t.Errorf("%v %v", marks, d.Labels)
	}
}

// The thread that runs forward and backward is the main thread; a thread with only backward is
// autograd's.
func TestPageNamesThreads(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		for range 20 {
			s.kernelOp("aten::add", "", 20, 4)
		}
		s.kernelOp(trace.BackwardPrefix+": AddBackward0", "", 20, 4)
		s.sequence = 100
		s.backward(10)
	})
	d := dataOf(t, pageOf(t, diagnose(t, s.json())))
	if len(d.lane("operators")) != 21*4 || len(d.lane("autograd")) != 10*4 {
		t.Errorf("operators %d, autograd %d marks", len(d.lane("operators"))/4, len(d.lane("autograd"))/4)
	}
}

// The page of text for a person keeps its order: how busy, the verdict, causes, gaps.
func TestTextPage(t *testing.T) {
	var b bytes.Buffer
	if err := diagnoseFile(t, recording("item_sync")).WriteText(&b, report.Text{}); err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, part := range []string{
		"2 steps of 47.7 ms on average on NVIDIA H200; the GPU works 3.5 % of the time.",
		"What holds this run back, most costly first: sync-storm",
		"A step holds", "The GPU is idle for 46.0 ms per step, while the CPU is",
		"1. sync-storm: critical, costs 17.2 ms per step (36 %)", "128 single values read back per step", "aten::item", "in the step: from", "Remedy: ", "Wins back up to 17.2 ms",
		"2. launch-bound", "Widest gaps without GPU work",
	} {
		n := strings.Index(b.String()[at:], part)
		if n < 0 {
			t.Fatalf("%q is missing behind byte %d of\n%s", part, at, b.String())
		}
		at += n
	}
}
