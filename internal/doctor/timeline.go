package doctor

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
)

// A timeline is drawn from marks in lanes. A step holds far more marks than a screen has points, so
// the picture of a whole step shows each column in the colour that covers most of it, as strong as it
// covers; only the close-up draws marks one by one. Either way the size of the picture is bounded by
// its width, not by the trace.

const (
	drawWidth  = 1120
	labelWidth = 118
	laneHeight = 34
	laneGap    = 10
	axisHeight = 26
)

// The names of the CPU's lanes; the main thread's sorts last and is shown first.
const mainLane, backwardLane = "operators", "autograd"

// mark is one stretch of a lane. Its class is a style of the page.
type mark struct {
	span
	class, label string
}

type lane struct {
	label string
	marks []mark
}

var callClass = map[callKind]string{callLaunch: "launch", callCopy: "copy", callSet: "set", callWait: "wait", callAlloc: "alloc"}

// lanes collects what a window shows: the CPU's busiest threads, the driver's calls, the GPU.
func (r *Report) lanes(w span) []lane {
	a := r.a
	var cpu []lane
	var calls, gpu lane
	weight := map[*thread]int64{}
	threads := slices.Clone(a.threads)
	for _, th := range threads {
		for i := range inWindow(&th.ops, w, (*op).end, func(o *op) int64 { return o.start }) {
			o := th.ops.at(i)
			weight[th] += overlap(w, span{o.start, o.end()})
		}
	}
	slices.SortStableFunc(threads, func(x, y *thread) int { return cmp.Compare(weight[y], weight[x]) })
	class := r.causeClasses()
	for _, th := range threads {
		if weight[th] > 0 && len(cpu) < 2 {
			l := lane{label: mainLane}
			for i := range inWindow(&th.ops, w, (*op).end, func(o *op) int64 { return o.start }) {
				o := th.ops.at(i)
				name := shortName(a.names.list[o.name].text)
				if strings.HasPrefix(name, "backward") {
					l.label = backwardLane
				}
				l.marks = append(l.marks, mark{span{o.start, o.end()}, class[o.cause], name})
			}
			cpu = append(cpu, l)
		}
		for i := range inWindow(&th.calls, w, (*call).end, func(c *call) int64 { return c.start }) {
			c := th.calls.at(i)
			calls.marks = append(calls.marks, mark{span{c.start, c.end()}, callClass[c.kind], callClass[c.kind]})
		}
	}
	if len(cpu) == 0 {
		cpu = []lane{{label: mainLane}}
	}
	slices.SortStableFunc(cpu, func(x, y lane) int { return -cmp.Compare(x.label, y.label) })
	for _, s := range a.loader {
		if overlap(w, s) > 0 {
			cpu[0].marks = append(cpu[0].marks, mark{s, class[causeOf("loader-starved")], "data loader"})
		}
	}
	for i := range inWindow(&a.gpu, w, (*work).end, func(g *work) int64 { return g.start }) {
		g := a.gpu.at(i)
		kind := map[category]string{catKernel: "kernel", catCopy: "copy", catSet: "set"}[g.kind]
		gpu.marks = append(gpu.marks, mark{span{g.start, g.end()}, kind, shortName(a.names.list[g.name].text)})
	}
	if a.gpu.len() == 0 {
		return cpu
	}
	calls.label, gpu.label = "CUDA calls", "GPU"
	return append(cpu, calls, gpu)
}

// inWindow yields the positions of a log that overlap a window. Ends are nearly in order; one that
// starts long before the window and still runs in it may be missed, which costs a mark.
func inWindow[T any](l *log[T], w span, end, start func(*T) int64) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := sort.Search(l.len(), func(i int) bool { return end(l.at(i)) > w.start }); i < l.len() && start(l.at(i)) < w.end; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

func causeOf(id string) cause {
	return cause(slices.IndexFunc(rules, func(r rule) bool { return r.id == id }) + 1)
}

// causeClasses gives the operators of each finding the colour of its card.
func (r *Report) causeClasses() map[cause]string {
	out := map[cause]string{}
	for i := range rules {
		out[cause(i+1)] = "op"
	}
	out[0] = "op"
	for i, f := range r.Findings {
		out[causeOf(f.ID)] = fmt.Sprintf("f%d", min(i, 5))
	}
	return out
}

// picture draws lanes over a window as SVG.
func (r *Report) picture(w span, closeUp bool) string {
	lanes := r.lanes(w)
	height := axisHeight + len(lanes)*(laneHeight+laneGap) + 6
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" xmlns="http://www.w3.org/2000/svg">`, drawWidth, height)
	scale := float64(drawWidth-labelWidth) / float64(w.end-w.start)
	x := func(t int64) float64 { return labelWidth + float64(min(max(t, w.start), w.end)-w.start)*scale }
	top := func(i int) int { return axisHeight + i*(laneHeight+laneGap) }
	drawAxis(&b, w, r.originOf(w), x, height)
	for i, l := range lanes {
		fmt.Fprintf(&b, `<text class="lane" x="%d" y="%d">%s</text>`, labelWidth-12, top(i)+laneHeight/2+4, l.label)
		fmt.Fprintf(&b, `<rect class="track" x="%d" y="%d" width="%d" height="%d" rx="3"/>`, labelWidth, top(i), drawWidth-labelWidth, laneHeight)
	}
	if r.a.gpu.len() > 0 {
		r.drawGaps(&b, w, x, height)
	}
	for i, l := range lanes {
		if closeUp {
			drawMarks(&b, l.marks, top(i), x)
		} else {
			drawColumns(&b, l.marks, w, top(i))
		}
	}
	b.WriteString(`</svg>`)
	return b.String()
}

func (r *Report) originOf(w span) int64 {
	step, _ := within(r.a.steps, w.start)
	return r.a.steps[min(step, len(r.a.steps)-1)].start
}

func drawMarks(b *strings.Builder, marks []mark, y int, x func(int64) float64) {
	for _, m := range marks {
		left, width := x(m.start), max(1, x(m.end)-x(m.start)-0.6)
		fmt.Fprintf(b, `<g><title>%s, %s µs</title><rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="2"/>`,
			html.EscapeString(m.label), figure(float64(m.end-m.start)/1000), m.class, left, y, width, laneHeight)
		if room := int(width / 6.6); room >= 4 {
			label := strings.TrimPrefix(strings.TrimPrefix(m.label, "aten::"), "backward of ")
			if len(label) > room {
				label = strings.ToValidUTF8(label[:room-1], "") + "…"
			}
			fmt.Fprintf(b, `<text class="name" x="%.1f" y="%d">%s</text>`, left+4, y+laneHeight/2+4, html.EscapeString(label))
		}
		b.WriteString(`</g>`)
	}
}

// drawColumns shows each point's column in the class that covers most of it.
func drawColumns(b *strings.Builder, marks []mark, w span, y int) {
	const columns = drawWidth - labelWidth
	cover := map[string]*[columns]float64{}
	per := float64(w.end-w.start) / columns
	for _, m := range marks {
		c := cover[m.class]
		if c == nil {
			c = new([columns]float64)
			cover[m.class] = c
		}
		from := max(0, float64(m.start-w.start)/per)
		to := min(columns, float64(m.end-w.start)/per)
		for i := int(from); i < columns && float64(i) < to; i++ {
			c[i] += min(to, float64(i+1)) - max(from, float64(i))
		}
	}
	classes := slices.Sorted(maps.Keys(cover))
	const shades = 16
	shade := func(i int) (class string, level int) {
		best, sum := 0.0, 0.0
		for _, k := range classes {
			sum += cover[k][i]
			if cover[k][i] > best {
				best, class = cover[k][i], k
			}
		}
		return class, int(math.Ceil(min(1, sum) * shades))
	}
	for i := 0; i < columns; {
		class, level := shade(i)
		n := 1
		for i+n < columns {
			if c, l := shade(i + n); c != class || l != level {
				break
			}
			n++
		}
		if level > 0 {
			fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" opacity="%.2f"/>`,
				class, labelWidth+i, y, n, laneHeight, 0.1+0.9*float64(level)/shades)
		}
		i += n
	}
}

// drawGaps shades the stretches without GPU work that are wide enough to see, and labels the wide ones.
func (r *Report) drawGaps(b *strings.Builder, w span, x func(int64) float64, height int) {
	for i := sort.Search(len(r.a.gaps), func(i int) bool { return r.a.gaps[i].end > w.start }); i < len(r.a.gaps) && r.a.gaps[i].start < w.end; i++ {
		g := r.a.gaps[i]
		left, right := x(g.start), x(g.end)
		if right-left < 2 {
			continue
		}
		fmt.Fprintf(b, `<rect class="gap" x="%.1f" y="%d" width="%.1f" height="%d"/>`, left, axisHeight-4, right-left, height-axisHeight)
		if right-left > 56 {
			fmt.Fprintf(b, `<text class="gaplabel" x="%.1f" y="%d">%s ms</text>`, (left+right)/2, height-laneHeight/2-12, figure(float64(g.end-g.start)/1e6))
		}
	}
}

func drawAxis(b *strings.Builder, w span, origin int64, x func(int64) float64, height int) {
	tick := niceTick(w.end - w.start)
	first := (w.start - origin + tick - 1) / tick * tick
	for t := origin + first; t <= w.end && x(t) < drawWidth-16; t += tick {
		fmt.Fprintf(b, `<line class="tick" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x(t), x(t), axisHeight-6, height-4)
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="14">%s ms</text>`, x(t), strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(t-origin)/1e6), "0"), "."))
	}
}

// niceTick is a round number of nanoseconds, some eight to the window.
func niceTick(width int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, m := range []int64{1, 2, 5} {
			if width/(unit*m) <= 9 {
				return unit * m
			}
		}
	}
}

// typicalStep is the step of middle length.
func (r *Report) typicalStep() span {
	steps := slices.Clone(r.a.steps)
	slices.SortStableFunc(steps, func(x, y window) int { return cmp.Compare(x.end-x.start, y.end-y.start) })
	return span(steps[(len(steps)-1)/2])
}

// closeUpOps is how many operators the close-up shows.
const closeUpOps = 26

// closeUp picks a stretch in the middle of what the first finding charges; without one, the middle of
// the step.
func (r *Report) closeUp(step span) (span, bool) {
	who := cause(0)
	if len(r.Findings) > 0 {
		who = causeOf(r.Findings[0].ID)
	}
	var best *thread
	var at []int
	for _, th := range r.a.threads {
		var own, all []int
		for i := range inWindow(&th.ops, step, (*op).end, func(o *op) int64 { return o.start }) {
			all = append(all, i)
			if o := th.ops.at(i); o.cause == who && o.holds != 0 {
				own = append(own, i)
			}
		}
		if len(own) == 0 {
			own = all
		}
		if len(own) > len(at) {
			best, at = th, own
		}
	}
	if len(at) == 0 {
		return span{}, false
	}
	first := at[len(at)/2]
	last := min(first+closeUpOps, best.ops.len()-1)
	w := span{best.ops.at(first).start - 2000, best.ops.at(last).end() + 2000}
	var inside int64
	for i := first; i <= last; i++ {
		inside += int64(best.ops.at(i).dur)
	}
	w.end = min(w.end, step.end, w.start+3*inside) // a long pause between two operators is not close
	return w, w.end > w.start
}
