package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// fp32Matmul looks for matrix products and convolutions on the fp32 units of a GPU that has faster
// units. It recognises the vendors' kernel families; a tf32 or bf16 kernel has another name.
//
// The GPU's rates limit the gain: products become at most as much faster as tensor cores are than
// the fp32 units. If tf32 exists, a switch gains it. If only fp16 exists (Volta, Turing), the model
// must train in mixed precision, which is a choice and no fault: a note, if nothing else slows the
// run. Threshold: 10 % of the step's time in such products.
const fp32Share = 0.10

var fp32Matmul = Rule{
	ID:     "fp32-matmul",
	remedy: "Let products use tensor cores: torch.set_float32_matmul_precision(\"high\") for tf32, or autocast to bf16 with fp32 weights.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		var issued []analysis.Place
		alone := a.Alone(func(g *trace.Work) bool { return a.Names.List[g.Name].FP32 }, func(g *trace.Work) { issued = append(issued, a.IssuedAt(g)...) })
		n, ns := alone.N, alone.Total
		u := fasterUnits(a)
		ms := a.Ms(alone.NS) * (1 - 1/u.gain)
		if n == 0 || a.Share(a.Ms(ns)) < fp32Share || ms <= 0 {
			return nil
		}
		return &cost{ms: ms, most: u.most, choice: u.most == Note, places: issued, remedy: u.remedy, evidence: []string{
			fmt.Sprintf("%s products and convolutions per step in full fp32, %s ms: %s of the kernels' time", phrase.PerStepCount(a.PerStep(float64(n))), phrase.Figure(a.Ms(ns)), phrase.Percent(ns/a.Kernel)),
			fmt.Sprintf("%s multiplies up to %.3g times as fast %s", u.gpu, u.gain, u.how),
		}}
	},
}

// units describes the units of a GPU that are faster than its fp32 units.
type units struct {
	gain     float64
	gpu, how string
	most     Severity
	remedy   string
}

const (
	halfRemedy = "This card has no tf32: run products in fp16 on its tensor cores, with torch.autocast(\"cuda\", torch.float16) and a GradScaler."
	bf16Remedy = "Run products in bf16: torch.autocast(\"cuda\", torch.bfloat16) with fp32 weights."
)

// fasterUnits returns the ratio of the rate of tf32 (or fp16 without tf32) to the rate of fp32,
// from the vendors' data sheets. If the trace does not name the GPU, the architecture in the
// kernels' names gives a lower bound.
func fasterUnits(a *analysis.Analysis) units {
	u := units{gpu: "the card", how: "in tf32 on tensor cores"}
	c, named := trace.GPUModel{}, len(a.GPUModels) > 0
	if named {
		c = a.GPUModels[0]
		if c.Name != "" {
			u.gpu = phrase.Printable(c.Name)
		}
	}
	chip := 10*c.Major + c.Minor
	if chip == 0 {
		chip = highestChip(a)
		named = false
	}
	half := func(gain float64) units {
		u.gain, u.how, u.most, u.remedy = gain, "in fp16 on tensor cores (it has no tf32)", Note, halfRemedy
		return u
	}
	switch {
	case named && c.Vendor() == trace.Amd:
		u.gain, u.how, u.most, u.remedy = 4, "in bf16 on matrix cores", Warning, bf16Remedy
		if c.Processors >= 300 {
			u.gain = 8
		}
		return u
	case chip == 0:
		u.gain, u.gpu, u.how, u.most = 8, "a card with tensor cores", "on them (the trace does not name the card: tf32 exists from Ampere on, fp16 from Volta on)", Warning
		return u
	case !named && chip < 80:
		u = half(8)
		u.gpu, u.how = "a card of this kind", "in fp16 on tensor cores (the trace does not name the card; its kernels are Volta's or Turing's, which have no tf32)"
		return u
	case chip < 70:
		u.gain = 1
		return u
	case chip == 70: // V100: 125 to 15.7 TFLOP/s
		return half(8)
	case chip < 80: // Turing: 108 to 13.5
		return half(8)
	case chip == 80: // A100: 156 to 19.5
		u.gain = 8
	case chip < 90 || chip >= 120: // RTX and L40: 2 to 1
		u.gain = 2
	case chip < 100: // H100, H200: 495 to 67
		u.gain = 7.4
	default: // B200: 1,125 to 80
		u.gain = 14
	}
	return u
}

// highestChip returns the newest architecture in the names of kernels that ran.
func highestChip(a *analysis.Analysis) int {
	chip := 0
	for i := range a.GPU.Len() {
		chip = max(chip, a.Names.List[a.GPU.At(i).Name].Chip)
	}
	return chip
}
