package routing

import (
	"math"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/stats"
)

// Schedules change from epoch to epoch: during an epoch the device reads one Control block. Epochs
// count from 0 in this file.

// cosine returns the value of a cosine schedule that falls from `from` at share 0 to `to` at share
// 1.
func cosine(from, to, share float64) float64 {
	return to + (from-to)*(1+math.Cos(math.Pi*share))/2
}

// learningRate returns the rate of an epoch. It would reach min_lr in the epoch after the last,
// because an epoch at min_lr learns nothing. The optimizer adds the warm-up by steps. The rate
// depends only on the planned number of epochs, so a run may be interrupted and resumed anywhere.
func learningRate(c *config.Config, epoch int) float64 {
	a, rate, epochs := &c.Advanced, c.Training.LearningRate, float64(c.Training.NumEpochs)
	switch {
	case !a.UseLRScheduling || a.SchedulerType == config.SchedulerConstant:
		return rate
	case a.SchedulerType == config.SchedulerLinear:
		left := (epochs - float64(epoch)) / (a.DecayShare * epochs)
		return a.MinLR + (rate-a.MinLR)*min(1, left)
	}
	return cosine(rate, a.MinLR, float64(epoch)/epochs)
}

// share returns the position of epoch between the first (0) and the last (1).
func share(c *config.Config, epoch int) float64 {
	if c.Training.NumEpochs < 2 {
		return 0
	}
	return float64(epoch) / float64(c.Training.NumEpochs-1)
}

// entropyCoef returns a coefficient that falls from entropy_coef in the first epoch to entropy_min
// in the last.
func entropyCoef(c *config.Config, epoch int) float64 {
	return cosine(c.Advanced.EntropyCoef, c.Advanced.EntropyMin, share(c, epoch))
}

// temperature returns the cosine schedule's value, or the adaptive one, which the state stores.
func (p *state) temperature(c *config.Config, epoch int) float64 {
	if c.Advanced.UseAdaptiveTemperature {
		return p.Temperature
	}
	return cosine(c.Advanced.TempStart, c.Advanced.TempMin, share(c, epoch))
}

// control returns the Control block of an epoch.
func (p *state) control(c *config.Config, epoch int) kernel.Control {
	return kernel.Control{
		LearningRate: float32(learningRate(c, epoch)),
		Temperature:  float32(p.temperature(c, epoch)),
		Coefficients: map[string]float32{plan.EntropyBonus: float32(entropyCoef(c, epoch))},
	}
}

// The window of validations that the adaptive temperature depends on.
const (
	windowLen = 10
	windowMin = 5
)

// adapt adds a validation to the window and changes the temperature: lower if the newer half of the
// window is better than the older half, otherwise higher.
func (p *state) adapt(a *config.Advanced, cpc float64) {
	if !a.UseAdaptiveTemperature {
		return
	}
	p.Window = append(p.Window, cpc)
	if len(p.Window) > windowLen {
		p.Window = p.Window[len(p.Window)-windowLen:]
	}
	if len(p.Window) < windowMin {
		return
	}
	cut := len(p.Window) - len(p.Window)/2
	older, _ := stats.MeanSE(p.Window[:cut])
	recent, _ := stats.MeanSE(p.Window[cut:])
	factor := 1 + a.TempAdaptationRate
	if recent < older {
		factor = 1 - a.TempAdaptationRate
	}
	p.Temperature = min(max(p.Temperature*factor, a.TempMin), a.TempStart)
}

// patience counts validations since the last gain of more than the delta. It reports whether the
// run should stop.
func (p *state) patience(a *config.Advanced, cpc float64) (stop bool) {
	if p.StopBest == nil || cpc < *p.StopBest-a.EarlyStoppingDelta {
		p.StopBest, p.StopCount = &cpc, 0
		return false
	}
	p.StopCount++
	return a.UseEarlyStopping && p.StopCount >= a.EarlyStoppingPatience
}
