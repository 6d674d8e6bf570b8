package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Communication is counted apart from compute. It is exposed where no other kernel of the device
// runs beside it: that time goes away when the collective is hidden, shrunk or not waited for. Time
// in which both run is overlapped and costs nothing here.

// collective is one communication on one rank.
type collective struct {
	kind        string
	group       uint32 // a name; 0 where the trace tells none
	members     int
	bytes       uint64
	start, end  int64
	correlation uint32
	device      uint16
	host        bool // on a thread of the CPU
	exposed     int64
	step        int
}

// commSums is a trace's communication.
type commSums struct {
	list           []collective // inside the steps, in time order
	total, exposed float64      // ns, mean over the devices
	host           bool
	families       map[string]*commFamily
	issued         []place // where the CPU issued them
	exposedSpans   []span  // of the first device, or on the host
}

type commFamily struct {
	kind, group       string
	n                 int
	ns, exposed       float64
	bytes, largest    uint64
	members           int
	rateBytes, rateNS float64 // of those whose size is known
}

// hostCollectives are the stretches in which a collective runs on the CPU.
func (a *analysis) hostCollectives() []span {
	var out []span
	for _, n := range a.notes {
		if onHost(a.names.list[n.name].text) {
			out = append(out, n.span)
		}
	}
	return union(out)
}

// measureComm finds the collectives inside the steps and how much of each is exposed.
func (a *analysis) measureComm() {
	s := &a.comm
	s.families = map[string]*commFamily{}
	a.commOnDevices()
	if len(s.list) == 0 {
		a.commOnHost()
	}
	slices.SortStableFunc(s.list, func(x, y collective) int { return cmp.Compare(x.start, y.start) })
	for i := range s.list {
		c := &s.list[i]
		group := a.names.list[c.group].text
		key := c.kind + "\x00" + group
		f := s.families[key]
		if f == nil {
			f = &commFamily{kind: c.kind, group: group}
			s.families[key] = f
		}
		f.n++
		f.ns += float64(c.end - c.start)
		f.exposed += float64(c.exposed)
		f.members = max(f.members, c.members)
		if c.bytes > 0 {
			f.bytes += c.bytes
			f.largest = max(f.largest, c.bytes)
			f.rateBytes += float64(c.bytes)
			f.rateNS += float64(c.end - c.start)
		}
	}
}

func (a *analysis) commOnDevices() {
	told := map[uint32]*collective{} // by correlation
	for i := range a.collectives {
		told[a.collectives[i].correlation] = &a.collectives[i]
	}
	s := &a.comm
	for _, d := range a.devices {
		var comm, compute []span
		first := len(s.list)
		for _, i := range d.works {
			g := a.gpu.at(int(i))
			if g.kind != catKernel {
				continue
			}
			if !g.comm {
				compute = append(compute, span{g.start, g.end()})
				continue
			}
			step, ok := within(a.steps, g.start)
			if !ok && (step >= len(a.steps) || a.steps[step].start >= g.end()) {
				continue
			}
			comm = append(comm, span{g.start, g.end()})
			c := collective{kind: a.names.list[g.name].comm}
			if t := told[g.correlation]; t != nil && g.correlation != 0 {
				c = *t
			} else if t != nil && t.start == g.start {
				c = *t
			}
			c.start, c.end, c.device, c.step = g.start, g.end(), g.device, step
			if c.members == 0 {
				c.members = a.job.world
			}
			a.describe(&c, g)
			s.issued = append(s.issued, a.issuedAt(g)...)
			s.list = append(s.list, c)
		}
		if len(comm) == 0 {
			continue
		}
		compute = union(compute)
		comm = clip(union(comm), a.steps)
		exposed, _ := without(comm, compute)
		for i := first; i < len(s.list); i++ {
			c := &s.list[i]
			c.exposed = covered(exposed, span{c.start, c.end})
		}
		d.exposed, d.commBusy = total(exposed), total(comm)
		s.total += float64(d.commBusy) / float64(len(a.devices))
		s.exposed += float64(d.exposed) / float64(len(a.devices))
		if s.exposedSpans == nil {
			s.exposedSpans = exposed
		}
	}
}

// describe fills what the annotation around a collective's issue tells and its kernel does not.
func (a *analysis) describe(c *collective, g *work) {
	if c.bytes > 0 && c.kind != "send_recv" {
		return
	}
	th, i, ok := a.callOf(g)
	if !ok {
		return
	}
	at := th.calls.at(i).start
	for k := sort.Search(len(a.notes), func(k int) bool { return a.notes[k].start > at }) - 1; k >= 0; k-- {
		n := &a.notes[k]
		if n.thread == th && n.end > at {
			if c.bytes == 0 {
				c.bytes = n.bytes
			}
			if kind := a.names.list[n.name].comm; kind != "communication" && kind != "coalesced" {
				c.kind = kind
			}
			if c.group == 0 {
				c.group = n.group
			}
			return
		}
		if at-n.start > 1e9 {
			return
		}
	}
}

// commOnHost counts the collectives that run on threads of the CPU. Exposed is where the main
// thread is in no operator meanwhile, or, with a GPU, where the GPU is idle.
func (a *analysis) commOnHost() {
	s := &a.comm
	host := clip(a.hostCollectives(), a.steps)
	if len(host) == 0 {
		return
	}
	s.host = true
	var beside []span
	if len(a.devices) > 0 {
		for _, i := range a.devices[0].works {
			g := a.gpu.at(int(i))
			beside = append(beside, span{g.start, g.end()})
		}
	} else if th := a.main; th != nil {
		for i := range th.ops.len() {
			o := th.ops.at(i)
			beside = append(beside, span{o.start, o.end()})
		}
	}
	exposed, _ := without(host, union(beside))
	s.exposedSpans = exposed
	s.total, s.exposed = float64(total(host)), float64(total(exposed))
	for _, n := range a.notes {
		if !onHost(a.names.list[n.name].text) {
			continue
		}
		step, ok := within(a.steps, n.start)
		if !ok {
			continue
		}
		s.list = append(s.list, collective{kind: a.names.list[n.name].comm, group: n.group, members: a.job.world, bytes: n.bytes,
			start: n.start, end: n.end, host: true, step: step, exposed: covered(exposed, n.span)})
	}
}

// covered is how much of a span lies in a list.
func covered(list []span, g span) int64 {
	var ns int64
	for i := sort.Search(len(list), func(i int) bool { return list[i].end > g.start }); i < len(list) && list[i].start < g.end; i++ {
		ns += overlap(list[i], g)
	}
	return ns
}

// mainThread is the CPU thread that holds most operators inside the steps.
func (a *analysis) mainThread() *thread {
	var best *thread
	var most float64
	for _, th := range a.threads {
		var ns float64
		for i := range th.ops.len() {
			if o := th.ops.at(i); len(a.cpuSteps) > 0 && o.start >= a.cpuSteps[0].start {
				ns += float64(o.dur)
			}
		}
		if ns > most {
			best, most = th, ns
		}
	}
	return best
}

// traffic is the factor between a collective's bytes and what each link carries, as the makers'
// tests count it (bus bandwidth).
func traffic(kind string, members int) float64 {
	n := float64(max(2, members))
	switch kind {
	case "all_reduce":
		return 2 * (n - 1) / n
	case "all_gather", "reduce_scatter", "all_to_all":
		return (n - 1) / n
	}
	return 1
}

// size writes bytes as people read them.
func size(bytes float64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GB", bytes/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MB", bytes/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f kB", bytes/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", bytes)
}
