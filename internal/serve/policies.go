package serve

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/vrp"
)

// What a reader could break: a bench (a one-core device with its loaded policies and programs)
// serves one request at a time. A request takes a bench out of the channel and puts it back when
// its work has ended; there are no other locks.

// policies are the trained policies at hand: those that ship with the program, and the best of
// every routing run.
type policies struct {
	shipped []Shipped
	runs    *watcher
	benches chan *bench
	count   int

	mu   sync.Mutex // guards read
	read map[string]*checkpoint
}

// checkpoint is a policy's weights, read once for all benches.
type checkpoint struct {
	name, from string
	info       os.FileInfo // of a run's file
	data       *run.Checkpoint
	settings   *config.Config
}

// policyInfo is a policy in a list.
type policyInfo struct {
	Name      string `json:"name"`
	From      string `json:"from" api:"enum=shipped|run"`
	Customers int    `json:"customers"`
	Capacity  int    `json:"capacity"`
	Hidden    int    `json:"hidden_dim"`
	Layers    int    `json:"num_layers"`
}

func newPolicies(shipped []Shipped, runs *watcher, benches int) *policies {
	p := &policies{shipped: shipped, runs: runs, benches: make(chan *bench, benches), count: benches, read: map[string]*checkpoint{}}
	for range benches {
		p.benches <- &bench{ready: map[string]*list.Element{}, order: list.New()}
	}
	return p
}

// maxCheckpoint bounds the file of a run's policy.
const maxCheckpoint = 256 << 20

// list says what there is, shipped ones first. Of a run its settings are looked at, not its
// weights.
func (p *policies) list() (out []policyInfo) {
	for _, s := range p.shipped {
		c, err := p.get(s.Name)
		if err != nil {
			continue
		}
		g, m := c.settings.Problem, c.settings.Model
		out = append(out, policyInfo{Name: s.Name, From: fromProgram, Customers: g.NumCustomers(), Capacity: g.VehicleCapacity, Hidden: m.HiddenDim, Layers: m.NumLayers})
	}
	for _, r := range p.runs.all() {
		if !policy.Is(r.Model) || r.policy == nil {
			continue
		}
		number := func(key string) (n int) {
			text := strings.Trim(r.Settings[key], "[]") // of a range the larger end
			n, _ = strconv.Atoi(strings.TrimSpace(text[strings.LastIndexByte(text, ',')+1:]))
			return n
		}
		if n := number("problem.num_customers"); n > 0 {
			out = append(out, policyInfo{Name: r.Name, From: fromRun, Customers: n, Capacity: number("problem.vehicle_capacity"),
				Hidden: number("model.hidden_dim"), Layers: number("model.num_layers")})
		}
	}
	return out
}

func (p *policies) names() (out []string) {
	for _, x := range p.list() {
		out = append(out, x.Name)
	}
	return out
}

// Where a policy comes from.
const (
	fromProgram = "shipped"
	fromRun     = "run"
)

// get is the policy of a name, as its file is at the moment.
func (p *policies) get(name string) (*checkpoint, error) {
	for _, s := range p.shipped {
		if s.Name == name {
			return p.load(name, fromProgram, nil, s.Read)
		}
	}
	r := p.runs.get(name)
	if r == nil || r.policy == nil || !policy.Is(r.Model) {
		there := "there are none: train one with haul train"
		if names := p.names(); len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		return nil, refuse(http.StatusUnprocessableEntity, "there is no policy %q; %s", line(name), there)
	}
	return p.load(name, fromRun, r.policy, func() ([]byte, error) {
		f, err := p.runs.open(r, run.BestName)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
		if len(text) > maxCheckpoint {
			err = fmt.Errorf("its checkpoint is larger than %s", size(maxCheckpoint))
		}
		return text, err
	})
}

func (p *policies) load(name, from string, info os.FileInfo, read func() ([]byte, error)) (*checkpoint, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.read[from+" "+name]
	if c != nil && (info == nil || c.info != nil && os.SameFile(info, c.info) && info.ModTime().Equal(c.info.ModTime())) {
		return c, nil
	}
	text, err := read()
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the policy %s cannot be read: %v", name, err)
	}
	c = &checkpoint{name: name, from: from, info: info}
	if c.data, err = run.Decode(name, "", text); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%v", err)
	}
	c.settings = c.data.Settings.(*config.Config)
	p.forget()
	p.read[from+" "+name] = c
	return c, nil
}

// keepRead is how many runs' checkpoints are kept in memory.
const keepRead = 4

// forget makes room for another run's checkpoint.
func (p *policies) forget() {
	n := 0
	for key, c := range p.read {
		if c.from == fromRun {
			if n++; n >= keepRead {
				delete(p.read, key)
			}
		}
	}
}

// pick is the policy that was asked for, or the one trained on the size nearest to n: of shipped
// ones where there are any. For a problem it must have learned its kind.
func (p *policies) pick(name string, n int, prob *vrp.Problem) (*checkpoint, error) {
	if name != "" {
		c, err := p.get(name)
		if err == nil && prob != nil {
			if why := policy.Takes(c.settings, prob); why != nil {
				return nil, refuse(http.StatusUnprocessableEntity, "the policy %s cannot route it: %v", name, why)
			}
		}
		return c, err
	}
	best, nearest := "", math.Inf(1)
	for _, x := range p.list() {
		if len(p.shipped) > 0 && x.From != fromProgram {
			break
		}
		if prob != nil {
			if c, err := p.get(x.Name); err != nil || policy.Takes(c.settings, prob) != nil {
				continue
			}
		}
		// Sizes are compared as ratios: 20 is as far from 10 as from 40.
		if d := math.Abs(math.Log(float64(n) / float64(x.Customers))); d < nearest {
			best, nearest = x.Name, d
		}
	}
	if best == "" && len(p.list()) > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, "no policy here has learned such problems: use search")
	}
	if best == "" {
		return nil, refuse(http.StatusUnprocessableEntity, "there is no trained policy yet: haul train makes one, and it is found here as soon as it has an epoch")
	}
	return p.get(best)
}

// with runs work on a free bench.
func (p *policies) with(ctx context.Context, work func(b *bench) error) error {
	select {
	case b := <-p.benches:
		defer func() { p.benches <- b }()
		return work(b)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// solve routes a problem by a policy on a free bench. The seed is of routes that are drawn; nil is
// the training run's.
func (p *policies) solve(ctx context.Context, c *checkpoint, prob *vrp.Problem, d policy.Decode, seed *uint64) (s vrp.Solution, cost float64, err error) {
	err = p.with(ctx, func(b *bench) error {
		step, err := b.program(c, prob.N(), prob.Load(), d, seed)
		if err != nil {
			return err
		}
		s, cost, err = step.Solve(ctx, prob)
		return err
	})
	return s, cost, err
}

// close waits for the benches and gives back what they hold.
func (p *policies) close() {
	all := make([]*bench, p.count)
	for i := range all {
		// none goes back before the last is here: it would be taken twice, and one at work not at all
		all[i] = <-p.benches
	}
	for _, b := range all {
		b.close()
		p.benches <- b
	}
}

// keepReady is how many programs a bench keeps.
const keepReady = 24

// bench is a device of one core, and the programs that were asked for last.
type bench struct {
	dev   kernel.Device
	ready map[string]*list.Element // of *program, by key
	order *list.List               // the last used in front
}

// program is a policy compiled for one size, capacity and way to decode; key "" of size 0 is the
// policy itself.
type program struct {
	key    string
	policy *policy.Policy
	step   *policy.Stepper
	from   *checkpoint
}

func (b *bench) open() error {
	if b.dev != nil {
		return nil
	}
	var err error
	b.dev, err = device.Open("cpu", device.Options{Workers: 1})
	return err
}

// policy puts a checkpoint's weights onto the bench.
func (b *bench) policy(c *checkpoint) (*policy.Policy, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	return policy.New(b.dev, c.data)
}

// program finds or compiles the program for a size. Programs of one policy share its weights.
func (b *bench) program(c *checkpoint, n int, capacity int32, d policy.Decode, seed *uint64) (*policy.Stepper, error) {
	key := fmt.Sprintf("%s/%s/%d/%d/%s", c.from, c.name, n, capacity, d)
	seeded := seed != nil && d.Draws()
	if seeded {
		key = fmt.Sprintf("%s/%d", key, *seed)
	}
	if e := b.ready[key]; e != nil {
		if x := e.Value.(*program); x.from == c {
			b.order.MoveToFront(e)
			return x.step, nil
		}
		b.drop(e) // the run has better weights since
	}
	policy, err := b.share(c)
	if err != nil {
		return nil, err
	}
	drawnBy := policy.Seed
	if seeded {
		drawnBy = *seed
	}
	step, err := policy.PrepareSeeded(n, capacity, d, drawnBy)
	if err != nil {
		return nil, errors.Join(err, b.release(policy))
	}
	// It is in the list before others leave: the last of them would take the weights along.
	b.ready[key] = b.order.PushFront(&program{key: key, policy: policy, step: step, from: c})
	for b.order.Len() > keepReady {
		b.drop(b.order.Back())
	}
	return step, nil
}

// share finds the weights on the bench, or puts them there.
func (b *bench) share(c *checkpoint) (*policy.Policy, error) {
	for e := b.order.Front(); e != nil; e = e.Next() {
		if x := e.Value.(*program); x.from == c {
			return x.policy, nil
		}
	}
	return b.policy(c)
}

// release closes a policy that no program uses.
func (b *bench) release(p *policy.Policy) error {
	for e := b.order.Front(); e != nil; e = e.Next() {
		if e.Value.(*program).policy == p {
			return nil
		}
	}
	return p.Close()
}

func (b *bench) drop(e *list.Element) {
	x := e.Value.(*program)
	b.order.Remove(e)
	delete(b.ready, x.key)
	_ = x.step.Close()
	_ = b.release(x.policy)
}

func (b *bench) close() {
	for b.order.Len() > 0 {
		b.drop(b.order.Back())
	}
	if b.dev != nil {
		_ = b.dev.Close()
		b.dev = nil
	}
}

// policyList is what GET /api/v1/policies answers.
type policyList struct {
	Policies []policyInfo `json:"policies"`
}

func (s *Server) listPolicies(http.ResponseWriter, *http.Request) (policyList, error) {
	return policyList{append([]policyInfo{}, s.policies.list()...)}, nil
}
