package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// rows are T tokens, H heads of W columns; cut says how sequences fill a row.
type rows struct {
	shape
	cut  cut
	drop float32
}

type cut int

const (
	whole   cut = iota // one sequence a row
	several            // of random lengths
	single             // each token for itself
)

func (s rows) String() string {
	return fmt.Sprintf("T=%d H=%d W=%d cut=%d drop=%v", s.nodes, s.heads, s.width, s.cut, s.drop)
}

// sequenceRows are small ones in full, then rows about the tiles of 8, 16, 32 and 64, random ones,
// and the models' own.
func sequenceRows() []rows {
	var out []rows
	heads := []int{8, 16, 32}
	for n := 1; n <= 20; n++ {
		for _, c := range []cut{whole, several} {
			out = append(out, rows{shape{n, 1 + n%3, heads[n%3]}, c, 0})
		}
	}
	for i, w := range []int{1, 3, 4, 5, 12, 20, 24, 40, 64} {
		out = append(out, rows{shape{9 + i, 1 + i%4, w}, cut(i % 3), 0})
	}
	for i, n := range []int{31, 32, 33, 47, 63, 64, 65, 80} {
		out = append(out, rows{shape{n, 2, heads[i%3]}, cut(i % 2), 0}, rows{shape{n, 2, heads[(i+1)%3]}, several, 0.1})
	}
	random := rand.New(rand.NewPCG(14, 1))
	for range 8 {
		out = append(out, rows{shape{2 + random.IntN(60), 1 + random.IntN(4), heads[random.IntN(3)]}, several, []float32{0, 0.3}[random.IntN(2)]})
	}
	return append(out, rows{shape{13, 2, 16}, single, 0.2}, rows{shape{80, 4, 16}, several, 0.1}, rows{shape{164, 8, 16}, whole, 0.1}, rows{shape{164, 8, 16}, several, 0})
}

// first is where each token's sequence begins, for every instance of the batch.
func (s rows) first(batch int) []int32 {
	random := rand.New(rand.NewPCG(uint64(s.nodes), uint64(s.cut)))
	out := make([]int32, batch*s.nodes)
	for b := range batch {
		row, from := out[b*s.nodes:][:s.nodes], 0
		for i := range row {
			if s.cut == single || s.cut == several && random.IntN(1+s.nodes/3) == 0 {
				from = i
			}
			row[i] = int32(from)
		}
	}
	return out
}

// causal records attention over given rows, with its gradient where learn is set.
func (s rows) causal(r *recording, qkv *kernel.Tensor, learn bool) {
	n, d, k := s.nodes, s.heads*s.width, s.nodes+s.width
	y, sum, first := r.out("y", k, n, d), r.out("logsum", k, s.heads, n), r.givenInts("first", s.first(r.prog.Batch), n)
	drop := kernel.Drop{Rate: s.drop, Site: 3, Nodes: n, Seed: 77}
	r.do(&kernel.CausalAttention{Y: y, LogSum: sum, QKV: qkv, First: first, Heads: s.heads, Drop: drop})
	if learn {
		r.do(&kernel.CausalAttentionGrad{DQKV: r.out("dqkv", k, n, 3*d), DY: r.in("dy", n, d), Y: y, LogSum: sum, QKV: qkv, First: first, Heads: s.heads, Drop: drop})
	}
}

func testCausal(t *testing.T, dev kernel.Device) { causalOf(t, dev, sequenceRows()) }

func causalOf(t *testing.T, dev kernel.Device, all []rows) {
	for i, s := range all {
		if !tries(dev, i) {
			continue
		}
		// As for attention; the gradient is made from scores and a log-sum that were rounded apart, each
		// of a few units.
		c := trial{what: fmt.Sprint("causal ", s), nodes: s.nodes, batch: few(dev, s.nodes), amplify: 8, rounds: true, state: kernel.State{Instances: 1<<32 - 2}}
		if s.nodes > 100 {
			c.batch = min(c.batch, 3)
		}
		if s.nodes > 500 {
			c.batch = 1
		}
		c.record = func(r *recording) { s.causal(r, r.in("qkv", s.nodes, 3*s.heads*s.width), true) }
		c.try(t, dev)
	}
}

// longRows are rows about the tiles of kernels that stream them, by every width of a head, and long
// ones.
func longRows() []rows {
	var out []rows
	for i, n := range []int{1, 63, 64, 65, 127, 128, 129, 164, 255, 256, 257, 288, 300} {
		out = append(out, rows{shape{n, 2, 16}, cut(i % 2), []float32{0.1, 0}[i%2]}, rows{shape{n, 1, []int{8, 64, 24, 32, 40}[i%5]}, cut((i + 1) % 2), []float32{0, 0.1}[i/5%2]})
	}
	out = append(out, rows{shape{300, 2, 16}, several, 0.1}, rows{shape{270, 1, 16}, single, 0})
	for _, n := range []int{1000, 1023, 1024, 1025} {
		out = append(out, rows{shape{n, 2, 16}, whole, 0.1})
	}
	return append(out, rows{shape{1000, 1, 16}, several, 0}, rows{shape{700, 1, 32}, whole, 0.1}, rows{shape{700, 1, 64}, several, 0.1}, rows{shape{4096, 1, 16}, whole, 0.1})
}

// RunLongRows runs causal attention over rows of up to so many tokens on devices whose products
// round by unit: against the reference, and twice with the same bits.
func RunLongRows(t *testing.T, unit float64, tokens int, open func(t *testing.T) kernel.Device) {
	all := slices.DeleteFunc(longRows(), func(s rows) bool { return s.nodes > tokens })
	parts := []part{
		{"rows", func(t *testing.T, dev kernel.Device) { causalOf(t, dev, all) }},
		{"causal", testCausal},
		{"causality", testCausality},
		{"again", func(t *testing.T, dev kernel.Device) { testCausalAgain(t, dev, min(tokens, 1000)) }},
	}
	run(t, parts, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}

// testCausalAgain expects the same bits of a second run.
func testCausalAgain(t *testing.T, dev kernel.Device, n int) {
	for _, width := range []int{16, 32, 64} {
		s := rows{shape{n, 2, width}, several, 0.1}
		c := trial{what: fmt.Sprint("again ", s), nodes: n, batch: 3}
		c.record = func(r *recording) { s.causal(r, r.in("qkv", n, 3*s.heads*s.width), true) }
		_, once := c.run(t, dev, false)
		_, again := c.run(t, dev, false)
		for _, name := range []string{"y", "logsum", "dqkv"} {
			for i, v := range once.floats[name] {
				if math.Float64bits(v) != math.Float64bits(again.floats[name][i]) {
					t.Errorf("%s: %s[%d] is %v, then %v", c.what, name, i, v, again.floats[name][i])
					break
				}
			}
		}
	}
}

// grouped are shapes with fewer heads of keys and values, kv, than of queries.
type grouped struct {
	shape
	kv int
}

func (s grouped) String() string {
	return fmt.Sprintf("T=%d H=%d/%d W=%d", s.nodes, s.heads, s.kv, s.width)
}

// columns are those of queries, keys and values.
func (s grouped) columns() int { return (s.heads + 2*s.kv) * s.width }

// testRotate turns queries and keys by positions of every kind, and back.
func testRotate(t *testing.T, dev kernel.Device) {
	for i, s := range []grouped{{shape{21, 8, 16}, 2}, {shape{1, 1, 2}, 1}, {shape{5, 2, 4}, 2}, {shape{7, 2, 3}, 2}, {shape{9, 3, 6}, 1}, {shape{17, 2, 16}, 2}, {shape{33, 1, 34}, 1},
		{shape{40, 4, 64}, 4}, {shape{11, 6, 16}, 3}, {shape{8, 4, 8}, 1}} {
		if !tries(dev, i) {
			continue
		}
		n, columns, positions := s.nodes, s.columns(), 3000
		c := trial{what: fmt.Sprint("rotate ", s), nodes: n, batch: few(dev, n)}
		index := make([]int32, c.batch*n*2)
		for k := range c.batch * n {
			index[2*k], index[2*k+1] = 7, []int32{0, 1, int32(k), -1, int32(positions - 1)}[k%5]
		}
		c.record = func(r *recording) {
			o := kernel.Rotate{Index: r.givenInts("index", index, n, 2), Heads: s.heads, KVHeads: s.kv, Positions: positions}
			back := o
			o.X, o.Y = r.in("qkv", n, columns), r.out("turned", 2, n, columns)
			back.X, back.Y, back.Back = r.in("dy", n, columns), r.out("back", 2, n, columns), true
			r.do(&o)
			r.do(&back)
		}
		c.try(t, dev)
	}
}

// testSpread spreads keys and values over groups of every size, and adds up their gradients.
func testSpread(t *testing.T, dev kernel.Device) {
	for _, s := range []grouped{{shape{13, 8, 16}, 2}, {shape{1, 1, 1}, 1}, {shape{5, 2, 3}, 1}, {shape{7, 4, 4}, 2}, {shape{9, 6, 5}, 3}, {shape{17, 4, 8}, 1},
		{shape{3, 8, 16}, 8}, {shape{21, 8, 16}, 1}, {shape{6, 12, 12}, 4}, {shape{33, 4, 32}, 2}, {shape{10, 3, 40}, 1}, {shape{4, 9, 2}, 3}, {shape{2, 2, 256}, 1}} {
		n, wide := s.nodes, 3*s.heads*s.width
		c := trial{what: fmt.Sprint("spread ", s), nodes: n, linear: true}
		c.record = func(r *recording) {
			r.do(&kernel.Spread{Y: r.out("y", 1, n, wide), X: r.in("x", n, s.columns()), Heads: s.heads, KVHeads: s.kv})
			r.do(&kernel.SpreadGrad{DX: r.out("dx", s.heads/s.kv, n, s.columns()), DY: r.in("dy", n, wide), Heads: s.heads, KVHeads: s.kv})
		}
		c.try(t, dev)
		s.compact(t, dev)
	}
}

// compact does the same over tensors that a device may hold in bf16: copies keep their bits, and a
// sum is rounded once more.
func (s grouped) compact(t *testing.T, dev kernel.Device) {
	t.Helper()
	what := fmt.Sprint("compact spread ", s)
	batch, n, narrow, wide := few(dev, s.nodes), s.nodes, s.columns(), 3*s.heads*s.width
	p := plan.New(what, dev, batch, n, &kernel.Layout{})
	b := p.B()
	x, dy := p.Rows("x", b, n, narrow), p.Rows("dy", b, n, wide)
	held := func(x *kernel.Tensor) *kernel.Tensor {
		y := plan.Compact(p.Shard("held "+x.Name, x.Shape...))
		p.Append(&kernel.Dropout{Y: y, X: x})
		return y
	}
	shown := func(x *kernel.Tensor) *kernel.Tensor {
		y := p.Rows("shown "+x.Name, x.Shape...)
		p.Append(&kernel.Dropout{Y: y, X: x})
		return y
	}
	y, dx := p.Spread("y", held(x), s.heads, s.kv), plan.Compact(p.Shard("dx", b, n, narrow))
	p.Append(&kernel.SpreadGrad{DX: dx, DY: held(dy), Heads: s.heads, KVHeads: s.kv})
	y, dx = shown(y), shown(dx)
	store, err := dev.NewStore(&kernel.Layout{}, false)
	check(t, err)
	run, err := p.Compile(dev, store)
	check(t, err)
	defer run.Close()
	values := (&recording{what: what}).normals("x", batch*n*(narrow+wide))
	check(t, run.WriteBatch(x, values[:batch*n*narrow]))
	check(t, run.WriteBatch(dy, values[batch*n*narrow:]))
	check(t, run.Run())
	// What each column of dx is the sum of, by their sizes, and of y the one that it is a copy of.
	group := s.heads / s.kv
	wantX, sizes := make([]float64, batch*n*narrow), make([]float64, batch*n*narrow)
	wantY := make([]float64, batch*n*wide)
	for e := range wantY {
		m, c := e/wide, e%wide
		head, part := c/s.width%s.heads, c/(s.heads*s.width)
		from := m*narrow + c
		if part > 0 {
			from = m*narrow + (s.heads+(part-1)*s.kv+head/group)*s.width + c%s.width
		}
		wantY[e] = float64(values[from])
		v := float64(values[batch*n*narrow+e])
		wantX[from] += v
		sizes[from] += math.Abs(v)
	}
	compare(t, what+" y", readBatch(t, run, y, len(wantY)), wantY, func(i int) float64 { return unitOf(dev) * math.Abs(wantY[i]) })
	compare(t, what+" dx", readBatch(t, run, dx, len(wantX)), wantX, func(i int) float64 { return bound(group, sizes[i]) + 2*unitOf(dev)*sizes[i] })
}

// testCausality moves one token and expects every result of an earlier token, and of every other
// sequence, to keep its bits.
func testCausality(t *testing.T, dev kernel.Device) {
	for _, s := range []rows{{shape{19, 2, 8}, several, 0}, {shape{19, 2, 16}, whole, 0.2}, {shape{37, 1, 32}, several, 0.1}, {shape{70, 2, 16}, several, 0}} {
		n, d := s.nodes, s.heads*s.width
		c := trial{what: fmt.Sprint("causality ", s), nodes: n, batch: few(dev, n)}
		c.batch = min(c.batch, 4)
		var qkv []float32
		c.record = func(r *recording) {
			if qkv == nil {
				qkv = r.normals("qkv", c.batch*n*3*d)
			}
			s.causal(r, r.given("qkv", qkv, n, 3*d), false)
		}
		_, before := c.run(t, dev, false)
		first := s.first(c.batch)
		for token := 0; token < n; token += 1 + n/20 {
			was := qkv
			qkv = slices.Clone(was)
			for b := range c.batch {
				for e := range 3 * d {
					qkv[(b*n+token)*3*d+e] += 1
				}
			}
			_, after := c.run(t, dev, false)
			qkv = was
			sees := func(m int) bool { return m%n >= token && first[m] == first[m-m%n+token] }
			unmoved(t, fmt.Sprintf("%s, token %d moved", c.what, token), before.floats["y"], after.floats["y"], d, sees)
		}
	}
}

// unmoved expects the rows of d columns that do not see a change to keep their bits, and the first
// that does to show it.
func unmoved(t *testing.T, what string, before, after []float64, d int, sees func(row int) bool) {
	t.Helper()
	shown := false
	for m := range len(before) / d {
		same := true
		for c := range d {
			same = same && math.Float64bits(before[m*d+c]) == math.Float64bits(after[m*d+c])
		}
		if !same && !sees(m) {
			t.Errorf("%s: row %d changed, which stands before it or in another sequence", what, m)
			return
		}
		shown = shown || !same
	}
	if !shown {
		t.Errorf("%s: nothing changed", what)
	}
}

// testCached fills caches step by step and compares each step with causal attention over the whole
// row.
func testCached(t *testing.T, dev kernel.Device) {
	for _, s := range []grouped{{shape{1, 1, 8}, 1}, {shape{7, 3, 8}, 3}, {shape{20, 2, 16}, 2}, {shape{33, 2, 32}, 2}, {shape{40, 8, 16}, 8}, {shape{11, 3, 5}, 3},
		{shape{40, 8, 16}, 2}, {shape{19, 6, 8}, 1}, {shape{35, 6, 5}, 3}} {
		n, d, columns := s.nodes, s.heads*s.width, s.columns()
		what := fmt.Sprint("cached ", s)
		row := trial{what: what, nodes: n, batch: few(dev, 1)}
		row.record = func(r *recording) {
			qkv := r.in("qkv", n, columns)
			if s.kv < s.heads {
				narrow := qkv
				qkv = r.tensor("spread", kernel.F32, []int{n, 3 * d})
				r.do(&kernel.Spread{Y: qkv, X: narrow, Heads: s.heads, KVHeads: s.kv})
			}
			rows{shape: s.shape}.causal(r, qkv, false)
		}
		r, whole := row.run(t, reference64(), false)
		qkv := r.inputs[0].values.([]float32)

		c := trial{what: what, nodes: 1, batch: row.batch, amplify: 8, rounds: true}
		var at, y, in *kernel.Tensor
		c.record = func(r *recording) {
			at, in = r.tensor("at", kernel.I32, []int{1}), r.tensor("token", kernel.F32, []int{1, columns})
			y = r.tensor("y", kernel.F32, []int{1, d})
			r.do(&kernel.CacheAttention{Y: y, QKV: in, Keys: r.in("keys", n, s.kv*s.width), Values: r.in("values", n, s.kv*s.width), At: at, Heads: s.heads})
		}
		cached := c.on(dev, false)
		run := cached.start(t, dev)
		// Instance b lags b%3 steps behind: not every one is at the same place.
		for step := range n + 2 {
			where, tokens := make([]int32, c.batch), make([]float32, c.batch*columns)
			want := make([]float64, c.batch*d)
			for b := range c.batch {
				i := min(max(step-b%3, 0), n-1)
				where[b] = int32(i)
				copy(tokens[b*columns:][:columns], qkv[(b*n+i)*columns:])
				copy(want[b*d:][:d], whole.floats["y"][(b*n+i)*d:])
			}
			check(t, run.WriteBatch(at, where))
			check(t, run.WriteBatch(in, tokens))
			check(t, run.Run())
			off := largest(want) * c.amplify
			compare(t, fmt.Sprintf("%s, step %d", what, step), readBatch(t, run, y, c.batch*d), want, func(int) float64 {
				return bound(n+s.width, off) + 8*unitOf(dev)*off
			})
		}
		check(t, run.Close())
	}
}

// testEmbed sums rows of tables, some of them absent.
func testEmbed(t *testing.T, dev kernel.Device) {
	for i, d := range append(widths(), 512, 128, 128, 128) {
		if !tries(dev, i) {
			continue
		}
		n, sizes := nodesFor(i), [][]int{{3}, {2, 5}, {9, 9, 5, 2, 3, 40}, {9, 200, 1, 2, 100, 5, 3, 1}}[i%4]
		c := trial{nodes: n, linear: true}
		index := func(r *recording) *kernel.Tensor {
			random := rand.New(rand.NewPCG(uint64(i), 3))
			values := make([]int32, r.prog.Batch*n*len(sizes))
			for e := range values {
				values[e] = int32(random.IntN(sizes[e%len(sizes)]+1)) - 1
			}
			return r.givenInts("index", values, n, len(sizes))
		}
		c.what, c.record = fmt.Sprintf("embed T=%d D=%d F=%d", n, d, len(sizes)), func(r *recording) {
			o := &kernel.Embed{Y: r.out("y", len(sizes), n, d), Index: index(r)}
			for f, rows := range sizes {
				o.Tables = append(o.Tables, r.weight(fmt.Sprint("table", f), rows, d))
			}
			r.do(o)
		}
		c.try(t, dev)
		c.rounds = true // ones and zeros times dy: a device may make a product of it
		c.what, c.record = fmt.Sprintf("embed.grad T=%d D=%d F=%d", n, d, len(sizes)), func(r *recording) {
			o := &kernel.EmbedGrad{DY: r.in("dy", n, d), Index: index(r)}
			for f, rows := range sizes {
				o.DTables = append(o.DTables, r.grad(r.weight(fmt.Sprint("table", f), rows, d), r.prog.Batch*n))
			}
			r.do(o)
		}
		c.try(t, dev)
	}
	testPlaces(t, dev)
	testOwnRows(t, dev)
	testManyFields(t, dev)
}

// testManyFields has more tables than a launch of a kernel may take, up to as many as a token has,
// in columns that vectors read and in others; one field has no table. The last is a token of
// XLand-MiniGrid: a view of 25 tiles, action, reward, type and a place in a long context. A device
// does both ops twice, and the second time has the same bits.
func testManyFields(t *testing.T, dev kernel.Device) {
	for i, s := range []struct{ fields, n, d int }{{8, 5, 128}, {9, 3, 128}, {25, 4, 64}, {63, 2, 10}, {64, 3, 128}, {kernel.MaxFields + 2, 5, 32},
		{kernel.MaxFields + 2, 3, 7}, {29, 400, 128}} {
		if !tries(dev, i) {
			continue
		}
		sizes := make([]int, s.fields)
		for f := range sizes {
			sizes[f] = 1 + (7*f+i)%23
		}
		c := trial{nodes: s.n, linear: true, batch: batchOf(dev, s.n, 1)}
		if s.n == 400 {
			c.batch = 2
			for f := range 25 {
				sizes[f] = 156
			}
			copy(sizes[25:], []int{6, 244, 3, 400})
		}
		index := func(r *recording) *kernel.Tensor {
			random := rand.New(rand.NewPCG(uint64(i), 5))
			values := make([]int32, r.prog.Batch*s.n*s.fields)
			for e := range values {
				size := sizes[e%s.fields]
				if values[e] = int32(random.IntN(size+1)) - 1; size == 400 {
					values[e] = int32(e / s.fields % s.n)
				}
			}
			return r.givenInts("index", values, s.n, s.fields)
		}
		none := s.fields - 1 // the last field has no table: what is summed ends before it
		if s.n == 400 {
			none = s.fields
		}
		for _, what := range []struct {
			name   string
			record func(r *recording)
		}{{"embed", func(r *recording) {
			o := &kernel.Embed{Y: r.out("y", s.fields, s.n, s.d), Index: index(r)}
			for f, rows := range sizes[:none] {
				o.Tables = append(o.Tables, r.weight(fmt.Sprint("table", f), rows, s.d))
			}
			r.do(o)
		}}, {"embed.grad", func(r *recording) {
			o := &kernel.EmbedGrad{DY: r.in("dy", s.n, s.d), Index: index(r)}
			for f, rows := range sizes[:none] {
				o.DTables = append(o.DTables, r.grad(r.weight(fmt.Sprint("table", f), rows, s.d), r.prog.Batch*s.n))
			}
			r.do(o)
		}}} {
			c.rounds = what.name == "embed.grad"
			c.what, c.record = fmt.Sprintf("%s T=%d D=%d F=%d", what.name, s.n, s.d, s.fields), what.record
			c.try(t, dev)
			_, a := c.run(t, dev, false)
			r, b := c.run(t, dev, false)
			for _, o := range append(r.outputs, r.grads...) {
				if !slices.Equal(a.floats[o.t.Name], b.floats[o.t.Name]) {
					t.Errorf("%s: two runs differ in %s", c.what, o.t.Name)
				}
			}
		}
	}
}

// testPlaces has a large table of places in an instance beside a small one, as a long context's
// positions are: every token at its place, some without one, and one elsewhere.
func testPlaces(t *testing.T, dev kernel.Device) {
	const rows, d = 400, 128
	for i, n := range []int{rows, rows - 1, rows / 2, rows + 1} { // the last two: not one of places
		for _, stray := range []bool{false, true} {
			c := trial{nodes: n, batch: 3, linear: true, rounds: true, what: fmt.Sprintf("embed.grad of places T=%d stray=%v", n, stray)}
			c.record = func(r *recording) {
				random := rand.New(rand.NewPCG(uint64(i), 4))
				values := make([]int32, 2*c.batch*n)
				for m := range c.batch * n {
					values[2*m], values[2*m+1] = int32(random.IntN(5)), int32(min(m%n, rows-1))
					if random.IntN(7) == 0 {
						values[2*m+1] = -1
					}
				}
				if stray {
					values[2*n+1] = 7
				}
				o := &kernel.EmbedGrad{DY: r.in("dy", n, d), Index: r.givenInts("index", values, n, 2)}
				for f, size := range []int{5, rows} {
					o.DTables = append(o.DTables, r.grad(r.weight(fmt.Sprint("table", f), size, d), c.batch*n))
				}
				r.do(o)
			}
			c.try(t, dev)
		}
	}
}

// testOwnRows has a row for every token of a batch, as the embeddings of an active search are:
// every token at its own, some without one, and one at another's; then a row more, and one less.
func testOwnRows(t *testing.T, dev kernel.Device) {
	const n, d, batch = 150, 128, 3
	for _, rows := range []int{batch * n, batch*n + 1, batch*n - 1} {
		for _, stray := range []bool{false, true} {
			c := trial{nodes: n, batch: batch, linear: true, rounds: true, what: fmt.Sprintf("embed.grad of a row for every token, %d rows stray=%v", rows, stray)}
			c.record = func(r *recording) {
				random := rand.New(rand.NewPCG(uint64(rows), 5))
				values := make([]int32, batch*n)
				for m := range values {
					if values[m] = int32(min(m, rows-1)); random.IntN(7) == 0 {
						values[m] = -1
					}
				}
				if stray {
					values[n+3] = 7
				}
				o := &kernel.EmbedGrad{DY: r.in("dy", n, d), Index: r.givenInts("index", values, n, 1)}
				o.DTables = append(o.DTables, r.grad(r.weight("table", rows, d), batch*n))
				r.do(o)
			}
			c.try(t, dev)
		}
	}
}
