package analysis

import (
	"cmp"
	"slices"
	"sort"

	"haul/internal/doctor/trace"
)

// Communication is counted apart from compute. It is exposed while no other kernel of the device
// runs: hiding, shrinking or not waiting for a collective gains that time. Overlapped communication
// costs nothing here.

// hostCollectives returns the intervals in which a collective runs on the CPU.
func (a *Analysis) hostCollectives() []trace.Span {
	var out []trace.Span
	for _, n := range a.Notes {
		if trace.OnHost(a.Names.List[n.Name].Text) {
			out = append(out, n.Span)
		}
	}
	return trace.Union(out)
}

// measureComm finds the collectives inside the steps and their exposed time.
func (a *Analysis) measureComm() {
	s := &a.Comm
	s.Families, s.exposedOn = map[string]*CommFamily{}, map[uint16][]trace.Span{}
	a.commOnDevices()
	if len(s.List) == 0 {
		a.commOnHost()
	}
	slices.SortStableFunc(s.List, func(x, y trace.Collective) int { return cmp.Compare(x.Start, y.Start) })
	for i := range s.List {
		c := &s.List[i]
		group := a.Names.List[c.Group].Text
		key := c.Kind + "\x00" + group
		f := s.Families[key]
		if f == nil {
			f = &CommFamily{Kind: c.Kind, Group: group}
			s.Families[key] = f
		}
		f.N++
		f.spans = append(f.spans, onDevice{c.Device, trace.Span{Start: c.Start, End: c.End}})
		f.Members = max(f.Members, c.Members)
		if c.Bytes > 0 {
			f.Bytes += c.Bytes
			f.Largest = max(f.Largest, c.Bytes)
			f.RateBytes += float64(c.Bytes)
			f.RateNS += float64(c.End - c.Start)
		}
	}
	for _, f := range s.Families {
		f.settle(s.exposedOn, max(1, len(a.Devices)))
	}
}

// settle sums a family's time. Collectives on separate streams overlap: each moment counts once per
// device. The sum is the mean over the devices.
func (f *CommFamily) settle(exposed map[uint16][]trace.Span, devices int) {
	by := map[uint16][]trace.Span{}
	for _, s := range f.spans {
		by[s.device] = append(by[s.device], s.Span)
	}
	for device, list := range by {
		list = trace.Union(list)
		f.NS += float64(trace.Total(list)) / float64(devices)
		for _, s := range list {
			f.Exposed += float64(trace.Covered(exposed[device], s)) / float64(devices)
		}
	}
	f.spans = nil
}

func (a *Analysis) commOnDevices() {
	announced := map[uint32]*trace.Collective{} // by correlation
	for i := range a.Collectives {
		announced[a.Collectives[i].Correlation] = &a.Collectives[i]
	}
	s := &a.Comm
	for _, d := range a.Devices {
		var comm, compute []trace.Span
		first := len(s.List)
		for _, i := range d.Works {
			g := a.GPU.At(int(i))
			if g.Kind != trace.CatKernel {
				continue
			}
			if !g.Comm {
				compute = append(compute, trace.Span{Start: g.Start, End: g.End()})
				continue
			}
			step, ok := trace.Within(a.Steps, g.Start)
			if !ok && (step >= len(a.Steps) || a.Steps[step].Start >= g.End()) {
				continue
			}
			comm = append(comm, trace.Span{Start: g.Start, End: g.End()})
			c := trace.Collective{Kind: a.Names.List[g.Name].Comm}
			if t := announced[g.Correlation]; t != nil && g.Correlation != 0 {
				c = *t
			} else if t != nil && t.Start == g.Start {
				c = *t
			}
			c.Start, c.End, c.Device, c.Step = g.Start, g.End(), g.Device, step
			if c.Members == 0 {
				c.Members = a.Job.World
			}
			a.describe(&c, g)
			s.Issued = append(s.Issued, a.IssuedAt(g)...)
			s.List = append(s.List, c)
		}
		if len(comm) == 0 {
			continue
		}
		compute = trace.Union(compute)
		comm = trace.Clip(trace.Union(comm), a.Steps)
		exposed, _ := trace.Without(comm, compute)
		for i := first; i < len(s.List); i++ {
			c := &s.List[i]
			c.Exposed = trace.Covered(exposed, trace.Span{Start: c.Start, End: c.End})
		}
		d.exposed, d.commBusy = trace.Total(exposed), trace.Total(comm)
		s.Total += float64(d.commBusy) / float64(len(a.Devices))
		s.Exposed += float64(d.exposed) / float64(len(a.Devices))
		s.exposedOn[d.ID] = exposed
		if s.ExposedSpans == nil {
			s.ExposedSpans = exposed
		}
	}
}

// describe fills in facts from the annotation around a collective's issue that its kernel lacks.
func (a *Analysis) describe(c *trace.Collective, g *trace.Work) {
	if c.Bytes > 0 && c.Kind != "send_recv" {
		return
	}
	th, i, ok := a.callOf(g)
	if !ok {
		return
	}
	at := th.Calls.At(i).Start
	for k := sort.Search(len(a.Notes), func(k int) bool { return a.Notes[k].Start > at }) - 1; k >= 0; k-- {
		n := &a.Notes[k]
		if n.Thread == th && n.End > at {
			if c.Bytes == 0 {
				c.Bytes = n.Bytes
			}
			if kind := a.Names.List[n.Name].Comm; kind != "communication" && kind != "coalesced" {
				c.Kind = kind
			}
			if c.Group == 0 {
				c.Group = n.Group
			}
			return
		}
		if at-n.Start > 1e9 {
			return
		}
	}
}

// commOnHost sums the collectives on CPU threads. They are exposed while the main thread is in no
// operator or, with a GPU, while the GPU is idle.
func (a *Analysis) commOnHost() {
	s := &a.Comm
	host := trace.Clip(a.hostCollectives(), a.Steps)
	if len(host) == 0 {
		return
	}
	s.Host = true
	var hiding []trace.Span
	if len(a.Devices) > 0 {
		for _, i := range a.Devices[0].Works {
			g := a.GPU.At(int(i))
			hiding = append(hiding, trace.Span{Start: g.Start, End: g.End()})
		}
	} else if th := a.Main; th != nil {
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			hiding = append(hiding, trace.Span{Start: o.Start, End: o.End()})
		}
	}
	exposed, _ := trace.Without(host, trace.Union(hiding))
	s.ExposedSpans = exposed
	s.exposedOn[0] = exposed
	s.Total, s.Exposed = float64(trace.Total(host)), float64(trace.Total(exposed))
	for _, n := range a.Notes {
		if !trace.OnHost(a.Names.List[n.Name].Text) {
			continue
		}
		step, ok := trace.Within(a.Steps, n.Start)
		if !ok {
			continue
		}
		s.List = append(s.List, trace.Collective{Kind: a.Names.List[n.Name].Comm, Group: n.Group, Members: a.Job.World, Bytes: n.Bytes,
			Start: n.Start, End: n.End, Arrived: arrival(&n), Host: true, Step: step, Exposed: trace.Covered(exposed, n.Span)})
	}
}

// mainThread returns the CPU thread with most operators inside the steps.
func (a *Analysis) mainThread() *trace.Thread {
	var best *trace.Thread
	var most float64
	for _, th := range a.Threads {
		var ns float64
		for i := range th.Ops.Len() {
			if o := th.Ops.At(i); len(a.CPUSteps) > 0 && o.Start >= a.CPUSteps[0].Start {
				ns += float64(o.Dur)
			}
		}
		if ns > most {
			best, most = th, ns
		}
	}
	return best
}

// Traffic returns the bytes per link divided by the collective's bytes, as in the vendors' tests
// (bus bandwidth).
func Traffic(kind string, members int) float64 {
	n := float64(max(2, members))
	switch kind {
	case "all_reduce":
		return 2 * (n - 1) / n
	case "all_gather", "reduce_scatter", "all_to_all":
		return (n - 1) / n
	}
	return 1
}

// arrival returns the time at which a rank's data is ready on the host. For tensors on a GPU the
// backend first waits for the copy to the host, inside its annotation; until then the others wait.
func arrival(n *trace.Note) int64 {
	th := n.Thread
	i := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).Start >= n.Start })
	for ; i < th.Calls.Len(); i++ {
		c := th.Calls.At(i)
		if c.Start >= n.End {
			break
		}
		if c.Kind == trace.CallWait && c.End() <= n.End {
			return c.End()
		}
	}
	return n.Start
}
