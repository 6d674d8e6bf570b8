package reference

import "haul/internal/kernel"

// Decoder is kernel.Decoder for one instance.
type Decoder[F Float] struct {
	Proj, Pointer Matrix[F] // [N,≥3D], [N,D]
	Graph         []F
	Context       []F       // [C,D]
	Pair          Matrix[F] // [N,≥2D]; no rows: no scores of pairs
	PairContext   []F       // [C,D]
	PosX, PosY    []F
	Rules         kernel.Rules
	Nodes         []int32
	Heads         int
	Near          F
	Temperature   F
}

// Depart is the vehicle before its first step.
func (d *Decoder[F]) Depart() *Tour { return NewTour(d.Rules, d.Nodes) }

// weigh adds to x the context's features times their weights, a row for each.
func weigh[F Float](x, features, weights []F) {
	for k, f := range features {
		for c, w := range weights[k*len(x):][:len(x)] {
			x[c] += f * w
		}
	}
}

// Decision is what the policy says of one step. Slices run over Allowed, not over all nodes.
type Decision[F Float] struct {
	Allowed  []int
	Prob     []F
	LogProb  []F
	Entropy  F
	query    []F
	pair     []F   // what the vehicle's place and context ask of the other nodes' pair keys; nil without
	attended [][]F // a head: the glimpse's softmax
	glimpse  []F
	tanh     []F
}

func (d *Decoder[F]) node(j int) []F  { return d.Proj.Row(j)[:d.Pointer.Cols] }
func (d *Decoder[F]) key(j int) []F   { return d.Proj.Row(j)[d.Pointer.Cols:][:d.Pointer.Cols] }
func (d *Decoder[F]) value(j int) []F { return d.Proj.Row(j)[2*d.Pointer.Cols:][:d.Pointer.Cols] }

func (d *Decoder[F]) pairKey(j int) []F { return d.Pair.Row(j)[d.Pointer.Cols:][:d.Pointer.Cols] }

func (d *Decoder[F]) scales() (glimpse, pointer F) {
	width := d.Pointer.Cols
	return 1 / sqrt(F(width/d.Heads)), 1 / sqrt(F(width))
}

// Decide computes the policy at t. With one node allowed there is nothing to compute: it has
// probability 1, and log-probability and entropy are 0.
func (d *Decoder[F]) Decide(t *Tour) Decision[F] {
	out := Decision[F]{Allowed: t.Allowed()}
	if len(out.Allowed) == 1 {
		out.Prob, out.LogProb = []F{1}, []F{0}
		return out
	}
	width, w := d.Pointer.Cols, d.Pointer.Cols/d.Heads
	glimpseScale, pointerScale := d.scales()
	out.query = make([]F, width)
	context := ContextOf[F](t)
	for c, v := range d.node(t.From()) {
		out.query[c] = v + d.Graph[c]
	}
	weigh(out.query, context, d.Context)
	if d.Pair.Rows > 0 {
		out.pair = append(out.pair, d.Pair.Row(t.From())[:width]...)
		weigh(out.pair, context, d.PairContext)
	}
	out.glimpse = make([]F, width)
	for h := range d.Heads {
		p := make([]F, len(out.Allowed))
		for i, j := range out.Allowed {
			p[i] = dot(out.query[h*w:][:w], d.key(j)[h*w:][:w]) * glimpseScale
		}
		softmax(p)
		for i, j := range out.Allowed {
			for c, v := range d.value(j)[h*w:][:w] {
				out.glimpse[h*w+c] += p[i] * v
			}
		}
		out.attended = append(out.attended, p)
	}
	for _, j := range out.Allowed {
		score := dot(out.glimpse, d.Pointer.Row(j))*pointerScale + d.distanceBias(t.From(), j)
		if out.pair != nil {
			score += dot(out.pair, d.pairKey(j)) * pointerScale
		}
		th := tanh(score)
		out.tanh = append(out.tanh, th)
		out.LogProb = append(out.LogProb, kernel.Clip/d.Temperature*th)
	}
	normalise(&out)
	return out
}

// distanceBias is what the distance from one node to another adds to the pointer's score.
func (d *Decoder[F]) distanceBias(from, to int) F {
	if d.Near == 0 {
		return 0
	}
	dx, dy := d.PosX[from]-d.PosX[to], d.PosY[from]-d.PosY[to]
	return -d.Near / 2 * log(dx*dx+dy*dy+kernel.NearFloor)
}

// normalise turns logits into log-probabilities, probabilities and their entropy.
func normalise[F Float](out *Decision[F]) {
	top := out.LogProb[0]
	for _, v := range out.LogProb {
		top = max(top, v)
	}
	var sum F
	for _, v := range out.LogProb {
		sum += exp(v - top)
	}
	whole := log(sum)
	for i, v := range out.LogProb {
		lp := v - top - whole
		p := exp(lp)
		out.LogProb[i] = lp
		out.Prob = append(out.Prob, p)
		out.Entropy -= p * lp
	}
}

// greedy is the position in Allowed of the most likely node, the lowest on ties.
func (s *Decision[F]) greedy() int {
	best := 0
	for i, v := range s.tanh {
		if v > s.tanh[best] {
			best = i
		}
	}
	return best
}

// sample is the first position whose cumulative probability passes u times the total.
func (s *Decision[F]) sample(u F) int {
	var total, cumulative F
	for _, p := range s.Prob {
		total += p
	}
	for i, p := range s.Prob {
		if cumulative += p; cumulative > u*total {
			return i
		}
	}
	return len(s.Prob) - 1
}

// DecoderGrad is where the gradient of one instance's decoder goes: all of it is added to.
type DecoderGrad[F Float] struct {
	Proj, Pointer Matrix[F]
	Graph         []F
	Context       []F
	Pair          Matrix[F]
	PairContext   []F
}

// grad adds the gradient of wLog·LogProb[taken] + wEnt·Entropy of a decision at t.
//
//	dlogit_i = wLog·(δ(i=taken) - p_i) - wEnt·p_i·(logp_i + entropy)
//
// and then back through tanh, pairs, pointer, glimpse and query.
func (d *Decoder[F]) grad(g DecoderGrad[F], t *Tour, s *Decision[F], taken int, wLog, wEnt F) {
	if len(s.Allowed) == 1 {
		return
	}
	width, w := d.Pointer.Cols, d.Pointer.Cols/d.Heads
	glimpseScale, pointerScale := d.scales()
	context := ContextOf[F](t)
	dglimpse := make([]F, width)
	for i, j := range s.Allowed {
		dlogit := -wLog*s.Prob[i] - wEnt*s.Prob[i]*(s.LogProb[i]+s.Entropy)
		if i == taken {
			dlogit += wLog
		}
		du := dlogit * kernel.Clip / d.Temperature * (1 - s.tanh[i]*s.tanh[i]) * pointerScale
		dpointer := g.Pointer.Row(j)
		for c, v := range d.Pointer.Row(j) {
			dglimpse[c] += du * v
			dpointer[c] += du * s.glimpse[c]
		}
		if s.pair == nil {
			continue
		}
		dquery, dkey := g.Pair.Row(t.From()), g.Pair.Row(j)[width:]
		for c, v := range d.pairKey(j) {
			dquery[c] += du * v
			dkey[c] += du * s.pair[c]
			for k, f := range context {
				g.PairContext[k*width+c] += du * v * f
			}
		}
	}
	dquery := make([]F, width)
	for h, p := range s.attended {
		lo, hi := h*w, (h+1)*w
		dp := make([]F, len(p))
		for i, j := range s.Allowed {
			dp[i] = dot(dglimpse[lo:hi], d.value(j)[lo:hi])
		}
		mean := dot(p, dp)
		for i, j := range s.Allowed {
			dz := p[i] * (dp[i] - mean) * glimpseScale
			key, dkey, dvalue := d.key(j), g.Proj.Row(j)[width:], g.Proj.Row(j)[2*width:]
			for c := lo; c < hi; c++ {
				dquery[c] += dz * key[c]
				dkey[c] += dz * s.query[c]
				dvalue[c] += p[i] * dglimpse[c]
			}
		}
	}
	for c, v := range dquery {
		g.Proj.Row(t.From())[c] += v
		g.Graph[c] += v
		for k, f := range context {
			g.Context[k*width+c] += v * f
		}
	}
}
