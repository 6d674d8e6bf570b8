package doctor

import "fmt"

// fp32Matmul looks for matrix products and convolutions on the plain fp32 units of a card that has
// tensor cores. It reads the vendor's kernel families; a tf32 or bf16 kernel has another name.
//
// What goes away is bounded by the card's rates: at best the products run as much faster as tensor
// cores outrun the fp32 units. Threshold: 10 % of the step, in products of at least 20 µs. Shorter ones
// are bound by their launch, not by arithmetic.
var fp32Matmul = rule{
	id:     "fp32-matmul",
	remedy: "Let products use tensor cores: torch.set_float32_matmul_precision(\"high\") for tf32, or autocast to bf16 with fp32 weights.",
	find: func(a *analysis, _ cause) *cost {
		var ns float64
		n := 0
		for i := range a.gpu.len() {
			g := a.gpu.at(i)
			if _, ok := within(a.steps, g.start); ok && g.kind == catKernel && g.dur >= 20_000 && a.names.list[g.name].fp32 {
				ns += float64(g.dur)
				n++
			}
		}
		gain, card := a.tensorCores()
		ms := a.ms(min(ns, float64(a.busy))) * (1 - 1/gain)
		if n == 0 || a.share(a.ms(ns)) < 0.10 || ms <= 0 {
			return nil
		}
		return &cost{ms, []string{
			fmt.Sprintf("%s products a step in full fp32, %s ms: %s of the kernels' time", perStepCount(a.perStep(float64(n))), figure(a.ms(ns)), percent(ns/a.kernel)),
			fmt.Sprintf("%s multiplies up to %.3g times as fast on tensor cores", card, gain),
		}}
	},
}

// tensorCores is how many times the tf32 rate (bf16 where tf32 is no faster) exceeds the fp32 rate,
// from the makers' data sheets. A card without tensor cores for either gains nothing.
func (a *analysis) tensorCores() (gain float64, name string) {
	if len(a.cards) == 0 {
		return 8, "a card with tensor cores"
	}
	c := a.cards[0]
	if c.name == "" {
		c.name = "the card"
	}
	switch {
	case c.major == 0:
		return 8, c.name
	case c.major < 8:
		return 1, c.name
	case c.major == 8 && c.minor == 0: // A100: 156 against 19.5 TFLOP/s
		return 8, c.name
	case c.major == 8 || c.major == 12: // RTX and L40: 2 to 1
		return 2, c.name
	case c.major == 9: // H100, H200: 495 against 67
		return 7.4, c.name
	}
	return 14, c.name // B200: 1,125 against 80
}
