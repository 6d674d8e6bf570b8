package model

import (
	"haul/internal/vrp"
)

// Opening hours of locations, and breaks, in units of time.

// readClocks makes units of setups and breaks.
func (m *Compiled) readClocks() {
	if m.P.Setup != nil {
		m.Setup = make([]int64, m.Nodes)
		for v := range m.Setup {
			m.Setup[v] = UpUnits(m.P.Setup[v], m.TimeUnit)
		}
	}
	for i := range m.Types {
		k := &m.Types[i]
		for _, b := range k.Breaks {
			spans, ok := m.SpansOf(b.Windows, 0, Endless)
			switch {
			case !ok:
				spans = []Span{{From: 0, To: -1}}
			case len(spans) == 0:
				spans = []Span{{From: 0, To: Never}}
			}
			k.Rests = append(k.Rests, breakTimes{spans, UpUnits(b.Duration, m.TimeUnit)})
		}
	}
}

// breakTimes is a break in units.
type breakTimes struct {
	Spans []Span
	Dur   int64
}

// Opens is the first moment from at on that lies in one of the spans.
func Opens(spans []Span, at int64) int64 {
	for i := range spans {
		if at <= spans[i].To {
			return max(at, spans[i].From)
		}
	}
	return Never
}

// Begins is the first moment from at on at which a place may be served.
func (m *Compiled) Begins(v int32, at int64) int64 {
	if m.Spans == nil || len(m.P.Windows[v]) == 0 {
		return at
	}
	return Opens(m.Spans[v], at)
}

// Ceases is the last moment up to at at which a place may be served; below 0: none.
func (m *Compiled) Ceases(v int32, at int64) int64 {
	if m.Spans == nil || len(m.P.Windows[v]) == 0 {
		return at
	}
	spans := m.Spans[v]
	for i := len(spans) - 1; i >= 0; i-- {
		if at >= spans[i].From {
			return min(at, spans[i].To)
		}
	}
	return -1
}

// Spends is how long a stop takes, where the vehicle comes from last.
func (m *Compiled) Spends(last, v int32) int64 {
	t := m.Locations[v].Service
	if m.Setup != nil && (int(last) == m.Nodes || !m.SamePlace(last, v)) {
		t += m.Setup[v]
	}
	return t
}

// Span is a window in units.
type Span struct{ From, To int64 }

// SpansOf makes units of windows, cut to [lo, hi]; false where nothing is left.
func (m *Compiled) SpansOf(ws []vrp.Window, lo, hi int64) ([]Span, bool) {
	if len(ws) == 0 {
		if lo <= 0 && hi >= Endless {
			return nil, true
		}
		return []Span{{lo, hi}}, lo <= hi
	}
	var out []Span
	for _, w := range ws {
		if s := (Span{max(UpUnits(w.From, m.TimeUnit), lo), min(downUnits(w.To, m.TimeUnit), hi)}); s.From <= s.To {
			out = append(out, s)
		}
	}
	return out, len(out) > 0
}

func (m *Compiled) SamePlace(a, b int32) bool {
	return a == b || m.P.X != nil && m.P.X[a] == m.P.X[b] && m.P.Y[a] == m.P.Y[b]
}
