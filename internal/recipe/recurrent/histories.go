package recurrent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"haul/internal/kernel"
	"haul/internal/run"
	"haul/internal/world/xland"
)

// Pool makes learning histories: each of its devices trains one learner at a time.
type Pool struct {
	seed     uint64
	learners []*learner
	rooms    []*rooms // by learner

	mu      sync.Mutex // guards calls of told, and all
	onSteps func(transitions int64)
	all     int64
}

// NewPool compiles a learner for each device. Each learner's environments use the given number of
// cores. told receives the number of transitions of all learners so far. Its calls are sequential.
// It may be nil.
func NewPool(w xland.World, s Settings, seed uint64, devices []kernel.Device, cores int, onSteps func(transitions int64)) (*Pool, error) {
	if err := s.Check(w); err != nil {
		return nil, err
	}
	p := &Pool{seed: seed, onSteps: onSteps}
	for _, dev := range devices {
		r := newRooms(w, s.Envs, cores)
		l, err := newLearner(dev, &s, r.senses(), r)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("compile a learner: %w", err), p.Close())
		}
		l.onSteps = p.addSteps
		p.learners, p.rooms = append(p.learners, l), append(p.rooms, r)
	}
	return p, nil
}

// tasksTogether is the number of tasks per learner between two writes of histories. With fewer
// tasks, learners wait for the last one more often.
const tasksTogether = 4

// Together returns the number of histories to request per call of Lives, if each task has the given
// number of histories. The host keeps all of them in memory until the call returns.
func (p *Pool) Together(histories int) (int, error) {
	n := tasksTogether * len(p.learners) * histories
	steps := int64(p.learners[0].Steps)
	return n, run.FitsHost("--histories", "the host", "keeping histories until they are written", histories, run.Product(int64(n), steps, int64(unsafe.Sizeof(xland.Step{}))))
}

// Close frees the learners.
func (p *Pool) Close() (err error) {
	for _, l := range p.learners {
		err = errors.Join(err, l.close())
	}
	return err
}

func (p *Pool) addSteps(steps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all += int64(steps); p.onSteps != nil {
		p.onSteps(p.all)
	}
}

// Lives implements history.XLandOptions.Lives. Consecutive equal ids are histories of one task: one
// learner makes them, each in a separate environment. A call must contain all histories of its
// tasks.
func (p *Pool) Lives(ctx context.Context, dst [][]xland.Step, ids []xland.ID, _ uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	at := 0
	next := func() (from, to int) {
		mu.Lock()
		defer mu.Unlock()
		for from = at; at < len(ids) && ids[at] == ids[from]; at++ {
		}
		return from, at
	}
	var wait sync.WaitGroup
	for i, l := range p.learners {
		wait.Go(func() {
			for from, to := next(); from < to; from, to = next() {
				p.rooms[i].keep(dst[from:to])
				if err := l.learn(ctx, int64(ids[from]), p.seed); err != nil {
					cancel(fmt.Errorf("the learner of %v: %w", ids[from], err))
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}
