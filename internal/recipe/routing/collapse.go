package routing

import (
	"fmt"

	"haul/internal/config"
)

// lostShare is the excess of a validation cost over the best one, as a fraction, above which the
// policy counts as lost. Validations of a run that learns differ by a few per cent.
const lostShare = 0.5

// collapse returns a warning if a run has lost what it had learned: a validation cost far above the
// best one so far, or only zero gradients, after which no step changes a weight. Otherwise it
// returns "".
func collapse(c *config.Config, row *Epoch, best *float64, kept string) string {
	what := ""
	switch {
	case best != nil && row.ValCPC != nil && *row.ValCPC > (1+lostShare)**best:
		what = fmt.Sprintf("epoch %d: the validation cost of %.4f is %.0f %% above the best, %.4f: what was learned is lost; %s keeps the best",
			row.Epoch, *row.ValCPC, 100*(*row.ValCPC / *best - 1), *best, kept)
	case row.GradNorm == 0:
		what = fmt.Sprintf("epoch %d: every gradient was zero: nothing is learned any more", row.Epoch)
		if best != nil {
			what += fmt.Sprintf("; %s keeps the best, %.4f", kept, *best)
		}
	default:
		return ""
	}
	return fmt.Sprintf("%s. A lower training.learning_rate (%g now) or a longer training_advanced.warmup_steps (%d now) may prevent it",
		what, c.Training.LearningRate, c.Advanced.WarmupSteps)
}

// noteCollapse notes a collapse once per process.
func (t *trainer) noteCollapse(row *Epoch, best *float64) {
	if t.lost {
		return
	}
	if said := collapse(t.cfg, row, best, t.Dir.Best()); said != "" {
		t.lost = true
		t.Note(said)
	}
}
