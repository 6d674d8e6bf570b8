package lab

import "context"

// The reports' own figures. Nothing is measured here: each result follows from other numbers in the
// same report and is the same on every machine.

// Figures of an epoch of tiny_1 in the reports.
const (
	routesPerBatch  = 128.0
	batchesPerEpoch = 25.0
	fastEpoch       = 22.0 // seconds; the target of every fix
)

func arithmetic001(_ context.Context, _ *env, r *Result) error {
	const cpu, gpu, item = 0.37e-3, 71.42e-3, 77.92e-3
	r.row("s", cpu, "report: 128 costs on the CPU")
	r.row("s", gpu, "report: the same on the GPU, a route at a time")
	r.row("s", item, "report: the same with .item()")
	r.finds(figure("001", "71.42 ms against 0.37 ms is 193× slower", "×", 193, 193), gpu/cpu)
	r.finds(figure("001", "77.92 ms against 0.37 ms is 213× slower", "×", 213, 213), item/cpu)
	won := (gpu - cpu) * batchesPerEpoch
	r.finds(figure("001", "costing on the CPU brings an epoch of 48–64 s back to 22 s, so it wins 26–42 s", "s", 48-fastEpoch, 64-fastEpoch), won)
	r.finds(figure("001", "costing on the CPU is a 2–3× improvement of an epoch of 48 s", "×", 2, 3), 48/(48-won))
	r.finds(figure("000", "the program had become 2–3× slower than 22 s (48 s, with the duplicates)", "×", 2, 3), 48/fastEpoch)
	r.finds(figure("000", "the program had become 2–3× slower than 22 s (64 s, without them)", "×", 2, 3), 64/fastEpoch)
	return nil
}

func arithmetic002(_ context.Context, _ *env, r *Result) error {
	const to, back = 238e-3, 2.4e-3
	const slow, slowest = 48.0, 70.0
	r.row("s", to, "report: moving 128 matrices to the GPU")
	r.row("s", back, "report: moving them back")
	r.finds(figure("002", "128 per batch, 25 batches: 3,200 transfers per epoch", "transfers", 3200, 3200), routesPerBatch*batchesPerEpoch)
	r.finds(figure("002", "3,200 transfers, where each matrix goes to the GPU and back", "transfers", 3200, 3200), 2*routesPerBatch*batchesPerEpoch)
	batch := to + back
	r.finds(figure("002", "238 ms and 2.4 ms are 240 ms per batch", "ms", 240, 240), 1e3*batch)
	epoch := batch * batchesPerEpoch
	r.finds(figure("002", "240 ms in 25 batches are 6 s per epoch", "s", 6, 6), epoch)
	r.row("s", to/routesPerBatch, "that is, for each matrix of 484 bytes")
	r.finds(figure("002", "these 6 s are the real issue: of the step from 22 s to 48 s they explain all", "%", 100, 100), 100*epoch/(slow-fastEpoch))
	r.finds(figure("002", "these 6 s are the real issue: of the step from 22 s to 70 s they explain all", "%", 100, 100), 100*epoch/(slowest-fastEpoch))
	r.finds(figure("002", "removing them is a 2–3× speedup of 48 s", "×", 2, 3), slow/(slow-epoch))
	r.finds(figure("002", "removing them is a 2–3× speedup of 70 s", "×", 2, 3), slowest/(slowest-epoch))
	return nil
}

// part is an expectation of report 003: lo to hi of the time is saved, of the epoch if whole, else
// of a part of it.
type part struct {
	lo, hi float64
	whole  bool
}

// parts003 are in the report's order: JIT of the route cost, creation of tensors on the GPU,
// torch.compile, tf32 and other settings, non-blocking copies.
var parts003 = []part{{0.15, 0.20, false}, {0.05, 0.10, false}, {0.10, 0.15, true}, {0.05, 0.10, false}, {0.02, 0.05, true}}

// combined returns the fraction that all parts save together, if each saves its fraction of the
// time that the others leave.
func combined(pick func(part) (share float64, ok bool)) float64 {
	left := 1.0
	for _, p := range parts003 {
		if s, ok := pick(p); ok {
			left *= 1 - s
		}
	}
	return 1 - left
}

func arithmetic003(_ context.Context, _ *env, r *Result) error {
	lo := func(p part) (float64, bool) { return p.lo, true }
	hi := func(p part) (float64, bool) { return p.hi, true }
	low, high := 0.0, 0.0
	for _, p := range parts003 {
		low, high = low+p.lo, high+p.hi
	}
	r.row("%", 100*low, "the five percentages, added, at the least")
	r.row("%", 100*high, "the five percentages, added, at the most")
	r.finds(figure("003", "combined, 30–40 % less time: compounded, at the least", "%", 30, 40), 100*combined(lo))
	r.finds(figure("003", "combined, 30–40 % less time: compounded, at the most", "%", 30, 40), 100*combined(hi))
	r.finds(figure("003", "combined, 30–40 %: without those said of a part only (costs, transfers, products), at the least", "%", 30, 40),
		100*combined(func(p part) (float64, bool) { return p.lo, p.whole }))
	r.finds(figure("003", "combined, 30–40 %: without those said of a part only (costs, transfers, products), at the most", "%", 30, 40),
		100*combined(func(p part) (float64, bool) { return p.hi, p.whole }))
	r.finds(figure("003", "under 20 s, from 28 s less 40 %", "s", 0, 20), 28*(1-0.40))
	r.finds(figure("003", "under 20 s, from 30 s less 30 %", "s", 0, 20), 30*(1-0.30))
	return nil
}

// Figures of an iteration on four GPUs in report 004.
const (
	slowIteration = 7.0 // seconds
	gpus004       = 4.0
	iterations004 = 100e3
)

// parts004 are in the report's order: loading, collating, the forward pass, the batch.
var parts004 = []struct{ lo, hi float64 }{{2, 3}, {1.5, 2}, {5, 10}, {1.5, 1.5}}

func arithmetic004(_ context.Context, _ *env, r *Result) error {
	const tokens, samples = 80.0, 512 / gpus004
	r.finds(figure("004", "3 tensors per batch instead of 240 are 80 times fewer", "×", 80, 80), 240.0/3)
	r.finds(figure("004", "160–240 tensors per batch, made by a loop over 80 tokens in a loop over 128 samples per GPU", "tensors", 160, 240), tokens*samples)
	low, high := 1.0, 1.0
	for _, p := range parts004 {
		low, high = low*p.lo, high*p.hi
	}
	r.finds(figure("004", "the parts make 25–70×: multiplied, at the least", "×", 25, 70), low)
	r.finds(figure("004", "the parts make 25–70×: multiplied, at the most", "×", 25, 70), high)
	// Loading, collating and the forward pass follow each other in an iteration. Dividing the time
	// of each by a factor divides their sum by no more than the largest factor.
	r.finds(figure("004", "the parts make 25–70×: loading, collating and the forward pass are parts of one iteration, so at the most 10×, times the batch's 1.5×", "×", 25, 70), 10*1.5)
	r.finds(figure("004", "the batch of 256 per GPU instead of 128 makes an iteration 1.5× as fast: twice the samples, each in 1/1.5 of the time", "×", 1.5, 1.5), 1.5/2)
	r.finds(figure("004", "25× of 7 s is 0.1–0.3 s", "s", 0.1, 0.3), slowIteration/25)
	r.finds(figure("004", "70× of 7 s is 0.1–0.3 s", "s", 0.1, 0.3), slowIteration/70)
	r.finds(figure("004", "0.5 s instead of 7 s is 15–35×", "×", 15, 35), slowIteration/0.5)
	r.finds(figure("004", "0.2 s instead of 7 s is 15–35×", "×", 15, 35), slowIteration/0.2)
	r.finds(figure("004", "100,000 iterations of 7 s take 194 hours", "h", 194, 194), iterations004*slowIteration/3600)
	r.finds(figure("004", "100,000 iterations of 0.2–0.5 s take 5.5–13 hours: at 0.2 s", "h", 5.5, 13), iterations004*0.2/3600)
	r.finds(figure("004", "100,000 iterations of 0.2–0.5 s take 5.5–13 hours: at 0.5 s", "h", 5.5, 13), iterations004*0.5/3600)
	r.note("the batch's share also counts twice in the hours: with twice the samples per iteration, 100,000 iterations are twice the training")
	return nil
}
