package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"haul/internal/solve"
	"haul/internal/vrp"
)

// What a reader could break: a job that was accepted is not lost. With a folder, its request is
// on the disk before the client gets its id, and its result before anybody can read it. A server
// that starts again continues unfinished jobs. A job's fields change under jobs.mu only.

// States of a job. The last three are its end.
const (
	jobQueued    = "queued"
	jobRunning   = "running"
	jobDone      = "done"
	jobFailed    = "failed"
	jobCancelled = "cancelled"
)

// jobState is a job as clients see it and as the folder keeps it.
type jobState struct {
	ID        string     `json:"id" api:"pattern=^[A-Z2-7]{26}$"`
	State     string     `json:"state" api:"enum=queued|running|done|failed|cancelled"`
	Key       string     `json:"key,omitempty"` // Idempotency-Key of the request
	Created   time.Time  `json:"created"`
	Started   *time.Time `json:"started,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	Name      string     `json:"name"`
	Customers int        `json:"customers"`
	Method    string     `json:"method"`
	Time      float64    `json:"time"`               // seconds of search that were asked for
	Kept      bool       `json:"kept"`               // it survives a restart of the server
	Progress  *improved  `json:"progress,omitempty"` // of a search under way
	Result    *solved    `json:"result,omitempty"`   // of a job that is done, or the best routes of one that was cancelled
	Problem   *problem   `json:"problem,omitempty"`  // why it failed
}

func (s *jobState) ended() bool { return s.Ended != nil }

// job is one long solve.
type job struct {
	jobState
	sum    string             // SHA-256 of its request
	from   string             // the address that sent it
	owner  string             // of the key that sent it (ownerOf)
	bytes  int64              // that it takes
	cancel context.CancelFunc // while it runs
	asked  bool               // to be cancelled
	saved  time.Time          // when its progress was last written
	hub    *hub
}

// ownKey is an Idempotency-Key with the owner who gave it: keys of several owners do not meet.
type ownKey struct{ owner, key string }

func (one *job) ownKey() ownKey { return ownKey{one.owner, one.Key} }

// jobs runs long solves in the order in which they came.
type jobs struct {
	s     *Server
	store jobStore
	limit Limits

	mu      sync.Mutex
	all     map[string]*job
	byKey   map[ownKey]*job
	queue   []*job
	bytes   int64
	news    chan struct{} // has an entry when the queue may have one
	workers sync.WaitGroup
	closing sync.Once
	closed  bool // the store is
}

func newJobs(s *Server, folder string, workers int) (*jobs, error) {
	store, kept, err := openJobStore(folder, s.o.Log)
	if err != nil {
		return nil, err
	}
	j := &jobs{s: s, store: store, limit: s.limits, all: map[string]*job{}, byKey: map[ownKey]*job{}, news: make(chan struct{}, workers)}
	slices.SortFunc(kept, func(a, b *job) int { return a.Created.Compare(b.Created) })
	for _, one := range kept {
		one.hub = newHub()
		j.enter(one)
		if one.ended() {
			one.hub.close()
			continue
		}
		one.State, one.Started = jobQueued, nil
		j.queue = append(j.queue, one)
	}
	for range workers {
		j.workers.Go(j.work)
	}
	return j, nil
}

// enter adds a job to the tables. The caller holds mu, or is alone.
func (j *jobs) enter(one *job) {
	j.all[one.ID] = one
	j.bytes += one.bytes
	if one.Key != "" {
		j.byKey[one.ownKey()] = one
	}
}

// drop takes a job out of the tables and the store. The caller holds mu.
func (j *jobs) drop(one *job) {
	delete(j.all, one.ID)
	j.bytes -= one.bytes
	if j.byKey[one.ownKey()] == one {
		delete(j.byKey, one.ownKey())
	}
	j.queue = slices.DeleteFunc(j.queue, func(q *job) bool { return q == one })
	one.hub.close()
	if err := j.store.remove(one.ID); err != nil {
		j.s.o.Log(err.Error())
	}
}

// sweep forgets jobs that ended long ago, and where there are too many the oldest of those that
// have ended. The caller holds mu.
func (j *jobs) sweep(room int64) {
	var over []*job
	for _, one := range j.all {
		if one.ended() {
			over = append(over, one)
		}
	}
	slices.SortFunc(over, func(a, b *job) int { return a.Ended.Compare(*b.Ended) })
	for _, one := range over {
		if time.Since(*one.Ended) > j.limit.JobKeep || len(j.all) >= j.limit.Jobs || j.bytes+room > j.limit.JobBytes {
			j.drop(one)
		}
	}
}

// waiting counts the jobs that have not ended, of all and of one address. The caller holds mu.
func (j *jobs) waiting(from string) (all, his int) {
	for _, one := range j.all {
		if !one.ended() {
			if all++; one.from == from {
				his++
			}
		}
	}
	return all, his
}

// submit takes a request. The same key and request again is the same job: fresh is false then.
func (j *jobs) submit(ask *solveRequest, p *vrp.Problem, text []byte, key, from, owner string) (state jobState, fresh bool, err error) {
	digest := sha256.Sum256(text)
	sum := hex.EncodeToString(digest[:])
	j.mu.Lock()
	defer j.mu.Unlock()
	if was := j.byKey[ownKey{owner, key}]; key != "" && was != nil {
		if was.sum != sum {
			return jobState{}, false, refuse(http.StatusUnprocessableEntity, "Idempotency-Key %q belongs to another request, job %s: a new request needs a new key", key, was.ID)
		}
		return was.jobState, false, nil
	}
	if j.s.base.Err() != nil {
		return jobState{}, false, &problem{Status: http.StatusServiceUnavailable, Detail: "the server stops", retry: 5}
	}
	j.sweep(int64(len(text)))
	all, his := j.waiting(from)
	switch {
	case his >= j.limit.ClientJobs:
		return jobState{}, false, &problem{Status: http.StatusTooManyRequests, retry: 10,
			Detail: fmt.Sprintf("%d jobs of this address have not ended: wait for one of them, or cancel it", his)}
	case all >= j.limit.Jobs, j.bytes+int64(len(text)) > j.limit.JobBytes:
		return jobState{}, false, &problem{Status: http.StatusServiceUnavailable, retry: 10, Detail: fmt.Sprintf("%d jobs wait, and there is no room for another", all)}
	}
	one := &job{sum: sum, from: from, owner: owner, bytes: int64(len(text)), hub: newHub(), jobState: jobState{ID: rand.Text(), State: jobQueued, Key: key, Created: time.Now().UTC(),
		Name: p.Name, Customers: p.N(), Method: ask.Method, Time: ask.Time, Kept: j.store.kept()}}
	if err := j.store.begin(one, text); err != nil {
		return jobState{}, false, refuse(http.StatusInsufficientStorage, "the job cannot be kept in the folder of jobs: %v", err)
	}
	j.enter(one)
	j.queue = append(j.queue, one)
	j.wake()
	return one.jobState, true, nil
}

func (j *jobs) wake() {
	select {
	case j.news <- struct{}{}:
	default:
	}
}

// next takes a job from the queue; nil where the server stops.
func (j *jobs) next() (*job, context.Context) {
	for {
		j.mu.Lock()
		if j.s.base.Err() != nil {
			j.mu.Unlock()
			return nil, nil
		}
		if len(j.queue) > 0 {
			one := j.queue[0]
			j.queue = j.queue[1:]
			ctx, cancel := context.WithCancel(j.s.base)
			now := time.Now().UTC()
			one.cancel, one.State, one.Started = cancel, jobRunning, &now
			one.hub.tell("job", one.jobState)
			if len(j.queue) > 0 {
				j.wake()
			}
			j.mu.Unlock()
			return one, ctx
		}
		j.mu.Unlock()
		select {
		case <-j.news:
		case <-j.s.base.Done():
		}
	}
}

func (j *jobs) work() {
	for {
		one, ctx := j.next()
		if one == nil {
			return
		}
		result, err := j.run(ctx, one)
		one.cancel()
		j.end(one, result, err)
	}
}

// run solves a job's request. A search that was under way when a server stopped goes on from its
// best routes with the time that is left.
func (j *jobs) run(ctx context.Context, one *job) (*solved, error) {
	text, err := j.store.request(one)
	if err != nil {
		return nil, err
	}
	var ask solveRequest
	if err := ask.decode(text, &ask); err != nil {
		return nil, err
	}
	p, m, err := ask.check(j.limit.forJobs())
	if err != nil {
		return nil, err
	}
	spent, iterations := 0.0, 0
	if was := one.Progress; was != nil && was.Routes != nil && m.Name == solve.Search {
		if startable(p, was.Routes, was.Types) == nil {
			spent, iterations, ask.Start, ask.StartTypes = was.Seconds, was.Iterations, was.Routes, was.Types
			ask.Time = max(ask.Time-spent, 0.01)
		}
	}
	tell := func(n improved) {
		n.Seconds, n.Iterations = n.Seconds+spent, n.Iterations+iterations
		j.progress(one, n)
	}
	for {
		out, err := j.s.solveWith(ctx, freePass, p, m, &ask, tell)
		var refused *problem
		if errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable && ctx.Err() == nil {
			select { // a crowd of quick solves: a job has time
			case <-time.After(time.Second):
				continue
			case <-ctx.Done():
			}
		}
		if out != nil {
			out.Seconds, out.Iterations = out.Seconds+spent, out.Iterations+iterations
		}
		return out, err
	}
}

// saveEvery bounds how often the routes of a search under way go to the disk.
const saveEvery = 5 * time.Second

// progress books how a search stands and tells who listens.
func (j *jobs) progress(one *job, n improved) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[one.ID] != one { // it was deleted
		return
	}
	told := n
	if was := one.Progress; n.Routes == nil && was != nil {
		n.Routes, n.Types = was.Routes, was.Types
	}
	one.Progress = &n
	one.hub.tell("progress", told)
	if time.Since(one.saved) >= saveEvery {
		one.saved = time.Now()
		if err := j.store.save(one); err != nil {
			j.s.o.Log(err.Error())
		}
	}
}

// end books how a job ended. One that the server interrupts stays to be taken up again.
func (j *jobs) end(one *job, result *solved, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.all[one.ID] != one { // it was deleted meanwhile
		return
	}
	now := time.Now().UTC()
	one.cancel = nil
	switch {
	case one.asked:
		one.State, one.Ended = jobCancelled, &now
		if err == nil {
			one.Result = result
		}
	case j.s.base.Err() != nil && (err != nil || result.interrupted):
		one.State, one.Started = jobQueued, nil
	case err != nil:
		one.State, one.Ended, one.Problem = jobFailed, &now, asProblem(err)
	default:
		one.State, one.Ended, one.Result = jobDone, &now, result
	}
	if one.ended() {
		one.Progress = nil
		text, err := json.Marshal(&one.jobState)
		if err != nil { // a number that JSON has no word for: the job has failed, for everybody
			one.State, one.Result, one.Problem = jobFailed, nil, asProblem(refuse(http.StatusUnprocessableEntity, "the result cannot be written: %v", err))
			text, _ = json.Marshal(&one.jobState) // of words alone
		}
		j.bytes += int64(len(text)) - one.bytes // what it takes from here on
		one.bytes = int64(len(text))
	}
	j.keep(one)
	one.hub.tell("job", one.jobState)
	one.hub.close()
}

// keepAgain is how long after a failure a job's state is written again.
const keepAgain = 2 * time.Second

// keep writes how a job stands. One that cannot be written, as on a full disk, is written again
// until that works: a server that starts anew would run a job that has ended. The caller holds mu.
func (j *jobs) keep(one *job) {
	err := j.store.save(one)
	if err == nil {
		return
	}
	j.s.o.Log(err.Error())
	time.AfterFunc(keepAgain, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.all[one.ID] == one && !j.closed {
			j.keep(one)
		}
	})
}

// stop cancels a job; the best routes so far stay with it.
func (j *jobs) stop(id, owner string) (jobState, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := j.of(id, owner)
	if one == nil {
		return jobState{}, noJob(id)
	}
	switch {
	case one.cancel != nil:
		one.asked = true
		one.cancel()
	case !one.ended():
		now := time.Now().UTC()
		one.State, one.Ended = jobCancelled, &now
		j.queue = slices.DeleteFunc(j.queue, func(q *job) bool { return q == one })
		j.keep(one)
		one.hub.tell("job", one.jobState)
		one.hub.close()
	}
	return one.jobState, nil
}

// forget cancels a job and takes it away.
func (j *jobs) forget(id, owner string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	one := j.of(id, owner)
	if one == nil {
		return noJob(id)
	}
	if one.cancel != nil {
		one.cancel()
	}
	j.drop(one)
	return nil
}

func noJob(id string) error {
	return refuse(http.StatusNotFound, "there is no job %q: it was never there, or ended long ago", line(id))
}

// get is a job as it stands.
func (j *jobs) get(id, owner string) (jobState, *hub, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if one := j.of(id, owner); one != nil {
		return one.jobState, one.hub, nil
	}
	return jobState{}, nil, noJob(id)
}

// of is a job of an owner, nil where there is none. The caller holds mu.
func (j *jobs) of(id, owner string) *job {
	if one := j.all[id]; one != nil && one.owner == owner {
		return one
	}
	return nil
}

// list is every job of an owner without its routes, the newest first.
func (j *jobs) list(owner string) []jobState {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]jobState, 0, len(j.all))
	// Pointers are sorted, not the states: every type of struct has a sort of its own in the
	// program.
	for _, one := range slices.SortedFunc(maps.Values(j.all), func(a, b *job) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) }) {
		if one.owner != owner {
			continue
		}
		short := one.jobState
		if short.Progress != nil {
			p := *short.Progress
			p.Routes = nil
			short.Progress = &p
		}
		short.Result = nil
		out = append(out, short)
	}
	return out
}

// count is how many jobs are in a state.
func (j *jobs) count(state string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.all {
		if one.State == state {
			n++
		}
	}
	return n
}

// close waits until every job under way has been put aside. The server's context has ended.
func (j *jobs) close() {
	j.workers.Wait()
	j.closing.Do(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, one := range j.all {
			one.hub.close()
		}
		j.closed = true
		if err := j.store.close(); err != nil {
			j.s.o.Log(err.Error())
		}
	})
}
