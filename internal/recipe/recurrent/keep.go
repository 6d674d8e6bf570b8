package recurrent

import (
	"context"

	"haul/internal/world/xland"
)

// keeper notes what the first environments of a learner do.
type keeper struct {
	dst   [][]xland.Step
	from  []int // where each history begins in dst
	clock []int // steps of the episode under way
	world xland.World
}

// begin appends histories to dst from here on.
func (k *keeper) begin(dst [][]xland.Step, w xland.World) {
	k.dst, k.world = dst, w
	k.from, k.clock = k.from[:0], make([]int, len(dst))
	for _, steps := range dst {
		k.from = append(k.from, len(steps))
	}
}

// before notes what is seen and done, before it is done.
func (k *keeper) before(l *learner) {
	cells := l.inputs - 2
	for e := range k.dst {
		s := xland.Step{Action: l.actions[e]}
		copy(s.Seen[:], l.batch.Views[e*cells:][:cells])
		k.dst[e] = append(k.dst[e], s)
	}
}

// after notes what it led to.
func (k *keeper) after(l *learner) {
	for e := range k.dst {
		s := &k.dst[e][len(k.dst[e])-1]
		k.clock[e]++
		if s.Ends = l.batch.Ends[e]; l.batch.Rewards[e] > 0 {
			s.Reward = k.world.Paid(k.clock[e])
		}
		if s.Ends {
			k.clock[e] = 0
		}
	}
}

// label drops the episode that the end cut off, and gives every step the action that the policy of
// the end holds most likely there: it reads each history from its first step.
func (l *learner) label(ctx context.Context) error {
	k := &l.keep
	longest := 0
	for e, steps := range k.dst {
		end := len(steps)
		for end > k.from[e] && !steps[end-1].Ends {
			end--
		}
		k.dst[e] = steps[:end]
		longest = max(longest, end-k.from[e])
	}
	if err := l.net.act.WriteBatch(l.net.actState, l.idle); err != nil {
		return err
	}
	l.rest()
	cells, width := l.inputs-2, int(xland.NumActions)+1
	rewards := l.world.Space().Rewards
	for t := range longest {
		if err := ctx.Err(); err != nil {
			return err
		}
		for e := range k.dst {
			if at := k.from[e] + t; at < len(k.dst[e]) {
				copy(l.batch.Views[e*cells:][:cells], k.dst[e][at].Seen[:])
			}
		}
		l.show()
		if err := l.net.forward(); err != nil {
			return err
		}
		for e := range k.dst {
			at := k.from[e] + t
			if at >= len(k.dst[e]) {
				continue
			}
			s, out := &k.dst[e][at], l.net.outs[e*width:][:width-1]
			for a, v := range out {
				if v > out[s.Best] {
					s.Best = uint8(a)
				}
			}
			l.last[e], l.outcome[e] = int32(s.Action), outcome(float32(rewards[s.Reward]), s.Ends)
		}
	}
	return nil
}
