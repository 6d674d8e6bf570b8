package ppo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// HistoryOptions say what learning histories to make, where, and on what.
type HistoryOptions struct {
	Config *config.PPO
	Path   string
	// each runs one learner at a time; the histories do not depend on how many there are
	Devices []kernel.Device
	// Progress hears each pass of a learner and each learner that ends; it may be nil. Calls come one
	// at a time.
	Progress func(HistoryProgress)
}

// HistoryProgress is where the work stands.
type HistoryProgress struct {
	Goals, Of int     // learners that have ended
	Steps     int64   // of all learners, those under way too
	Share     float64 // mean over the goals done of the last episodes' return, by the best possible
}

// HistorySpeed is what making histories took.
type HistorySpeed struct {
	Seconds        float64 `json:"seconds"`
	StepsPerSecond float64 `json:"steps_per_second"` // of the rooms, all learners together
}

// MakeHistories lets one learner live through every goal that the settings ask for and writes what
// they did. The file appears when all is in it; an error or a cancelled context leaves none.
func MakeHistories(ctx context.Context, o HistoryOptions) (HistorySpeed, error) {
	c, began := o.Config, time.Now()
	settings, err := c.YAML()
	if err != nil {
		return HistorySpeed{}, err
	}
	room := roomOf(c)
	head := history.Header{Room: room, Goals: room.Sample(c.EnvSplitSeed, c.TrainEnvRatio, c.Goals()), SplitSeed: c.EnvSplitSeed, TrainRatio: c.TrainEnvRatio,
		Streams: c.NStream, Steps: c.TotalSourceTimesteps / c.NStream, Settings: string(settings)}
	if err := run.FitsHost("total_source_timesteps", "the host", fmt.Sprintf("keeping %d learners' histories", len(o.Devices)), c.TotalSourceTimesteps, run.Product(int64(len(o.Devices)), learnerBytes(c))); err != nil {
		return HistorySpeed{}, err
	}
	if err := run.FitsDisk(o.Path, run.Product(2, int64(len(head.Goals)), int64(c.TotalSourceTimesteps))); err != nil {
		return HistorySpeed{}, err
	}
	w, err := history.Create(o.Path, head)
	if err != nil {
		return HistorySpeed{}, err
	}
	defer w.Discard()
	p := pool{o: &o, head: &head, writer: w}
	if err := p.run(ctx); err != nil {
		return HistorySpeed{}, err
	}
	if err := w.Close(); err != nil {
		return HistorySpeed{}, err
	}
	seconds := time.Since(began).Seconds()
	return HistorySpeed{seconds, float64(len(head.Goals)*head.Streams*head.Steps) / seconds}, nil
}

// learnerBytes is what grows with a learner's steps: its history, that once more as bytes, and what
// lies between two updates.
func learnerBytes(c *config.PPO) int64 {
	const step = 2 + 2
	return run.Sum(run.Product(step, int64(c.TotalSourceTimesteps)), roundBytes(c))
}

// roundBytes is what lies between two updates: every sample, and its place in the order that it is
// learned in.
func roundBytes(c *config.PPO) int64 { return run.Product(16+4, int64(c.NSteps), int64(c.NStream)) }

// pool is the worker pool: it hands goals to learners.
type pool struct {
	o      *HistoryOptions
	head   *history.Header
	writer *history.Writer

	mu     sync.Mutex // guards what follows, and calls of Progress
	next   int
	done   int
	steps  int64 // taken and learned from, of all learners
	shares float64
}

// run ends when every goal is written, or with the first error.
func (s *pool) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, dev := range s.o.Devices {
		wg.Go(func() {
			if err := s.work(ctx, dev); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// work teaches one learner goal after goal.
func (s *pool) work(ctx context.Context, dev kernel.Device) (err error) {
	l, err := newLearner(dev, s.o.Config, nil)
	if err != nil {
		return fmt.Errorf("compile a learner: %w", err)
	}
	defer func() { err = errors.Join(err, l.close()) }()
	history := make([]grid.Step, s.head.Streams*s.head.Steps)
	for {
		i, ok := s.take()
		if !ok {
			return nil
		}
		goal, before := s.head.Goals[i], 0
		further := func(steps int) int64 {
			more := steps - before
			before = steps
			return int64(more)
		}
		if err := l.learn(ctx, goal, history, func(steps int) { s.tell(further(steps)) }); err != nil {
			return fmt.Errorf("the learner of goal %v: %w", goal, err)
		}
		if err := s.writer.WriteGoal(i, history); err != nil {
			return err
		}
		s.ended(further(len(history)), stats.ShareOf(finalReturn(s.head, history), s.head.Room.Optimal(goal)))
	}
}

// take returns the next goal's index; false when none is left.
func (s *pool) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next - 1, s.next <= len(s.head.Goals)
}

// tell counts further steps of a learner under way.
func (s *pool) tell(steps int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(steps)
}

// ended counts a learner whose history is written, and the last of its steps.
func (s *pool) ended(steps int64, share float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	s.shares += share
	s.count(steps)
}

func (s *pool) count(steps int64) {
	s.steps += steps
	if s.o.Progress != nil {
		s.o.Progress(HistoryProgress{s.done, len(s.head.Goals), s.steps, s.shares / float64(max(1, s.done))})
	}
}

// finalEpisodes is how many of a history count as its end: a tenth.
func finalEpisodes(h *history.Header) int { return max(1, h.Steps/h.Room.Horizon/10) }

// finalReturn is the mean return of the last whole episodes over all streams.
func finalReturn(h *history.Header, history []grid.Step) float64 {
	last := finalEpisodes(h)
	end := h.Steps / h.Room.Horizon * h.Room.Horizon
	sum := 0
	for s := range h.Streams {
		for _, step := range history[s*h.Steps+end-last*h.Room.Horizon : s*h.Steps+end] {
			sum += int(step.Reward())
		}
	}
	return float64(sum) / float64(h.Streams*last)
}
