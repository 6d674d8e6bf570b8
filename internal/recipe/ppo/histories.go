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

// HistoryOptions configures the making of learning histories.
type HistoryOptions struct {
	Config *config.PPO
	Path   string
	// Each device runs one learner at a time. The histories do not depend on the number of devices.
	Devices []kernel.Device
	// Progress is called after each pass of a learner and after each finished learner. Calls are
	// sequential. It may be nil.
	Progress func(HistoryProgress)
}

// HistoryProgress reports how far the work has come.
type HistoryProgress struct {
	Goals, Of int     // finished learners, and all of them
	Steps     int64   // of all learners, unfinished ones included
	Share     float64 // return of the last episodes divided by the best possible one, mean over finished goals
}

// HistorySpeed reports the time that making histories took.
type HistorySpeed struct {
	Seconds        float64 `json:"seconds"`
	StepsPerSecond float64 `json:"steps_per_second"` // of all environments together
}

// MakeHistories trains one learner for each goal of the settings and writes its steps. The file
// appears when it is complete. After an error or a cancelled context no file remains.
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

// learnerBytes returns the memory in bytes that grows with the number of steps of a learner: its
// history, the encoded history, and the samples of a rollout.
func learnerBytes(c *config.PPO) int64 {
	const step = 2 + 2
	return run.Sum(run.Product(step, int64(c.TotalSourceTimesteps)), roundBytes(c))
}

// roundBytes returns the size in bytes of a rollout: each sample, and its position in the shuffled
// order.
func roundBytes(c *config.PPO) int64 { return run.Product(16+4, int64(c.NSteps), int64(c.NStream)) }

// pool is the worker pool that distributes goals to learners.
type pool struct {
	o      *HistoryOptions
	head   *history.Header
	writer *history.Writer

	mu     sync.Mutex // guards the fields below, and calls of Progress
	next   int
	done   int
	steps  int64 // taken and learned from, of all learners
	shares float64
}

// run returns when every goal is written, or with the first error.
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

// work trains one learner on one goal after another until no goal is left.
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
		if err := l.learn(ctx, goal, history, func(steps int) { s.addSteps(further(steps)) }); err != nil {
			return fmt.Errorf("the learner of goal %v: %w", goal, err)
		}
		if err := s.writer.WriteGoal(i, history); err != nil {
			return err
		}
		s.ended(further(len(history)), stats.ShareOf(finalReturn(s.head, history), s.head.Room.Optimal(goal)))
	}
}

// take returns the index of the next goal, or false if no goal is left.
func (s *pool) take() (int, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next - 1, s.next <= len(s.head.Goals)
}

// addSteps adds steps of a learner that is still training.
func (s *pool) addSteps(steps int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(steps)
}

// ended counts a learner whose history is written, and adds the last of its steps.
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

// finalEpisodes returns the number of episodes at the end of a history that its final return is a
// mean over: a tenth of all.
func finalEpisodes(h *history.Header) int { return max(1, h.Steps/h.Room.Horizon/10) }

// finalReturn returns the mean return of the last finalEpisodes whole episodes over all streams.
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
