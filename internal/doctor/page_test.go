package doctor

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
)

func pageOf(t testing.TB, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var picture = regexp.MustCompile(`(?s)<svg.*?</svg>`)

func TestPageStandsAlone(t *testing.T) {
	for _, c := range truths {
		t.Run(c.name, func(t *testing.T) {
			r := diagnoseFile(t, recording(c.name))
			text := pageOf(t, r)
			for _, word := range []string{"<script", "<link", "@import", "url(", "src="} {
				if strings.Contains(text, word) {
					t.Errorf("the page reaches out: %s", word)
				}
			}
			if len(text) > 1<<20 {
				t.Errorf("the page has %d bytes", len(text))
			}
			pictures := picture.FindAllString(text, -1)
			if len(pictures) != 2 {
				t.Fatalf("%d pictures, want the step and the close-up", len(pictures))
			}
			for _, p := range pictures {
				d := xml.NewDecoder(strings.NewReader(p))
				for {
					if _, err := d.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatalf("a picture is no XML: %v", err)
					}
				}
				for _, l := range []string{">operators<", ">CUDA calls<", ">GPU<"} {
					if p == pictures[0] && !strings.Contains(p, l) {
						t.Errorf("the step has no lane %s", l)
					}
				}
			}
			for _, f := range r.Findings {
				if !strings.Contains(text, f.ID) {
					t.Errorf("the page does not name %s", f.ID)
				}
			}
		})
	}
}

// Without GPU work there is no lane for it, and no gap.
func TestPageWithoutGPU(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		for range 10 {
			s.op("aten::addmm", "", 100, nil)
		}
	})
	text := pageOf(t, diagnose(t, s.json()))
	for word, want := range map[string]bool{">GPU<": false, `class="gap"`: false, ">operators<": true, "aten::addmm": true} {
		if strings.Contains(text, word) != want {
			t.Errorf("%s is on the page: %v, want %v", word, !want, want)
		}
	}
}

// A name out of the trace must not become part of the page.
func TestPageEscapesNames(t *testing.T) {
	s := newSynth()
	s.step(1, func() {
		for range 30 {
			s.kernelOp("</svg><b>evil</b>&", "", 20, 4)
		}
		s.now += 4000
	})
	text := pageOf(t, diagnose(t, s.json()))
	if strings.Contains(text, "<b>evil") {
		t.Error("a name is written as it is")
	}
	if !strings.Contains(text, "&lt;b&gt;evil") {
		t.Error("the name is not shown at all")
	}
}

// The page of text for a person keeps its order: how busy, the verdict, causes, gaps.
func TestTextPage(t *testing.T) {
	var b bytes.Buffer
	if err := diagnoseFile(t, recording("item_sync")).WriteText(&b, Text{}); err != nil {
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
