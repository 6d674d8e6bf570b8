package search

import (
	"haul/internal/search/model"
)

// Breaks. They are taken in their order, at a stop, after its service or before it, where the route
// then ends soonest.

// rested is the soonest way to have some breaks behind at a stop.
type rested struct {
	at    int64
	slots []int32 // twice the index of the stop, plus 1 for before it
	ok    bool
}

// rest puts a kind's breaks between activities; false where one finds no place.
func (c *candidate) rest(k *model.VehicleType, list []activity, stops []stop) ([]activity, bool) {
	loads := c.boardLoads(k, stops)
	n := len(k.Breaks)
	ways := make([]rested, n+1)
	start := int64(0)
	if s := list[0].spans; len(s) > 0 {
		start = max(0, s[0].From)
	}
	ways[0] = rested{at: start + list[0].service, ok: true}
	spans := make([][]model.Span, n)
	for b := range k.Breaks {
		var ok bool
		if spans[b], ok = c.SpansOf(k.Breaks[b].Windows, 0, model.Endless); !ok {
			return nil, false
		}
	}
	take := func(where int32, load []int32) {
		for b := range k.Breaks {
			w := ways[b]
			if !w.ok {
				continue
			}
			fits := true
			for d, most := range k.Breaks[b].MaxLoad {
				fits = fits && load[d] <= most
			}
			at := w.at
			if len(spans[b]) > 0 {
				at = -1
				for _, s := range spans[b] {
					if w.at <= s.To {
						at = max(w.at, s.From)
						break
					}
				}
			}
			if !fits || at < 0 {
				continue
			}
			next := rested{at: at + model.UpUnits(k.Breaks[b].Duration, c.TimeUnit), ok: true}
			if !ways[b+1].ok || next.at < ways[b+1].at {
				next.slots = append(append([]int32(nil), w.slots...), where)
				ways[b+1] = next
			}
		}
	}
	for i := 1; i < len(list); i++ {
		take(int32(2*(i-1)), loads[i-1])
		for b := range ways {
			ways[b].at += list[i].travel
		}
		take(int32(2*i+1), loads[i-1])
		for b := range ways {
			one := []activity{list[i]}
			if ways[b].ok = ways[b].ok && forwardTimes(one, ways[b].at); ways[b].ok {
				ways[b].at = one[0].end()
			}
		}
	}
	if !ways[n].ok {
		return nil, false
	}
	var out []activity
	next := 0
	for i, e := range list {
		for ; next < n && ways[n].slots[next] == int32(2*i+1); next++ {
			out = append(out, activity{travel: e.travel, service: model.UpUnits(k.Breaks[next].Duration, c.TimeUnit), spans: spans[next]})
			e.travel = 0
		}
		out = append(out, e)
		for ; next < n && ways[n].slots[next] == int32(2*i); next++ {
			out = append(out, activity{service: model.UpUnits(k.Breaks[next].Duration, c.TimeUnit), spans: spans[next]})
		}
	}
	return out, true
}

// boardLoads is what is on board behind each activity.
func (c *candidate) boardLoads(k *model.VehicleType, stops []stop) [][]int32 {
	var out [][]int32
	load, shipped := make([]int32, c.Dims), make([]int32, c.Dims)
	first := true
	loadTrip := func(from int) {
		copy(load, shipped)
		for d := range load {
			if first && k.Initial != nil {
				load[d] += k.Initial[d]
			}
			for j := from; j < len(stops)-1 && int(stops[j].node) >= c.Depots; j++ {
				load[d] += c.AmountsOf(stops[j].node)[d].Del
			}
		}
		first = false
	}
	for i, at := range stops {
		v := at.node
		switch {
		case i == 0:
			loadTrip(1)
		case i == len(stops)-1:
			copy(load, shipped)
		case int(v) < c.Depots:
			loadTrip(i + 1)
		default:
			for d := range load {
				a := c.AmountsOf(v)[d]
				load[d] += a.Pick - a.Del
				shipped[d] += shipmentChange(c.Compiled, v, d)
			}
		}
		if int(v) < c.Nodes {
			out = append(out, append([]int32(nil), load...))
		}
	}
	return out
}
