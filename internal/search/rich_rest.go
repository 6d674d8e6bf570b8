package search

// Breaks. What a reader could break: they are taken in their order, at a stop, after its service or
// before it, where the route then ends soonest.

// rested is the soonest way to have some breaks behind at a stop.
type rested struct {
	at    int64
	slots []int32 // twice the index of the stop, plus 1 for before it
	ok    bool
}

// rest puts a kind's breaks between errands; false where one finds no place.
func (c *rchain) rest(k *kind, list []errand, stops []stop) ([]errand, bool) {
	loads := c.boardLoads(k, stops)
	n := len(k.breaks)
	ways := make([]rested, n+1)
	start := int64(0)
	if s := list[0].spans; len(s) > 0 {
		start = max(0, s[0].from)
	}
	ways[0] = rested{at: start + list[0].service, ok: true}
	spans := make([][]span, n)
	for b := range k.breaks {
		var ok bool
		if spans[b], ok = c.spansOf(k.breaks[b].Windows, 0, endless); !ok {
			return nil, false
		}
	}
	take := func(where int32, load []int32) {
		for b := range k.breaks {
			w := ways[b]
			if !w.ok {
				continue
			}
			fits := true
			for d, most := range k.breaks[b].MaxLoad {
				fits = fits && load[d] <= most
			}
			at := w.at
			if len(spans[b]) > 0 {
				at = -1
				for _, s := range spans[b] {
					if w.at <= s.to {
						at = max(w.at, s.from)
						break
					}
				}
			}
			if !fits || at < 0 {
				continue
			}
			next := rested{at: at + upUnits(k.breaks[b].Duration, c.timeUnit), ok: true}
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
			one := []errand{list[i]}
			if ways[b].ok = ways[b].ok && clockErrands(one, ways[b].at); ways[b].ok {
				ways[b].at = one[0].end()
			}
		}
	}
	if !ways[n].ok {
		return nil, false
	}
	var out []errand
	next := 0
	for i, e := range list {
		for ; next < n && ways[n].slots[next] == int32(2*i+1); next++ {
			out = append(out, errand{travel: e.travel, service: upUnits(k.breaks[next].Duration, c.timeUnit), spans: spans[next]})
			e.travel = 0
		}
		out = append(out, e)
		for ; next < n && ways[n].slots[next] == int32(2*i); next++ {
			out = append(out, errand{service: upUnits(k.breaks[next].Duration, c.timeUnit), spans: spans[next]})
		}
	}
	return out, true
}

// boardLoads is what is on board behind each errand.
func (c *rchain) boardLoads(k *kind, stops []stop) [][]int32 {
	var out [][]int32
	load, shipped := make([]int32, c.dims), make([]int32, c.dims)
	first := true
	loadTrip := func(from int) {
		copy(load, shipped)
		for d := range load {
			if first && k.initial != nil {
				load[d] += k.initial[d]
			}
			for j := from; j < len(stops)-1 && int(stops[j].node) >= c.depots; j++ {
				load[d] += c.amountsOf(stops[j].node)[d].del
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
		case int(v) < c.depots:
			loadTrip(i + 1)
		default:
			for d := range load {
				a := c.amountsOf(v)[d]
				load[d] += a.pick - a.del
				shipped[d] += c.shipped(v, d)
			}
		}
		if int(v) < c.nodes {
			out = append(out, append([]int32(nil), load...))
		}
	}
	return out
}
