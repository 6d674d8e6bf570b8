package train

import (
	"encoding/json"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
)

// oldState is what files of before hold where sums and scalars have names now: a field for each. Files of now have none of them.
type oldState struct {
	Device struct {
		EMA      float64
		EMASteps uint64
	} `json:"device"`
	Sums struct {
		Trajectory, Actions                    int64
		Cost, LogCost, BaseCost, Loss, Entropy float64
		Heads                                  []plan.HeadSums
	} `json:"sums"`
}

// takeOld moves what a file of before has in fields to the names of now.
func takeOld(state string, device *kernel.State, sums *kernel.Metrics) error {
	var old oldState
	if err := json.Unmarshal([]byte(state), &old); err != nil {
		return err
	}
	if d := old.Device; d.EMASteps > 0 {
		device.Scalars = map[string]float64{plan.MeanCost: d.EMA, plan.MeanBatches: float64(d.EMASteps)}
	}
	s := old.Sums
	if s.Trajectory > 0 {
		sums.Sums = kernel.SumsOf(map[string]float64{kernel.SumRows: float64(s.Trajectory), kernel.SumDecodes: float64(s.Actions), plan.SumCost: s.Cost,
			plan.SumLogCost: s.LogCost, plan.SumBaseline: s.BaseCost, plan.SumLoss: s.Loss, plan.SumEntropy: s.Entropy})
	}
	if len(s.Heads) == 2 && s.Heads[0].Labels > 0 {
		named := map[string]float64{}
		s.Heads[0].Put(named, model.HeadAction)
		s.Heads[1].Put(named, model.HeadType)
		sums.Sums = kernel.SumsOf(named)
	}
	return nil
}
