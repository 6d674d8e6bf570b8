package device

import (
	"fmt"
	"runtime"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
)

// Candidate is one device that Auto considered.
type Candidate struct {
	Name      string  `json:"device"`
	Precision string  `json:"precision,omitempty"` // where several were tried
	Seconds   float64 `json:"seconds_per_step"`    // 0 when it could not run, or had no rival
	Problem   string  `json:"problem,omitempty"`
	Picked    bool    `json:"picked"`
}

// Trial times one step of the job at hand on a device, after warming up.
type Trial func(kernel.Device) (seconds float64, err error)

// choice is a device by name, a precision of its products, and of a CPU the workers; 0: as asked.
type choice struct {
	name, precision string
	workers         int
}

// spread doubles the CPU's choices where its cores are of two kinds: the fast ones, then all.
func spread(from []choice, fast, all int) (out []choice) {
	for _, c := range from {
		if c.name == "cpu" && fast < all {
			c.workers = fast
			out = append(out, c)
			c.workers = all
		}
		out = append(out, c)
	}
	return out
}

// choices are what Auto tries. The CPU leaves fp32 only where somebody asked for bf16, or for
// precision auto on a processor that has bf16 of its own; a GPU has its own way to choose.
func choices(name, precision string) (out []choice) {
	names := []string{name}
	if name == "auto" {
		names[0] = "cpu"
		if driver, err := cu.Open(); err == nil {
			if cards, err := driver.Devices(); err == nil {
				for i := range cards {
					names = append(names, fmt.Sprintf("cuda:%d", i))
				}
			}
		}
	}
	for _, n := range names {
		switch {
		case n == "cpu" && precision == Any && cpu.HasBF16():
			out = append(out, choice{name: n, precision: "fp32"}, choice{name: n, precision: "bf16"})
		case precision == Any, n == "cpu" && precision == "tf32" && name == "auto" && len(names) > 1:
			out = append(out, choice{name: n})
		default:
			out = append(out, choice{name: n, precision: precision})
		}
	}
	return out
}

// Auto times the devices that the name allows, "auto" being the CPU and every GPU, in every
// precision that the options allow, on the job itself and returns the fastest, open, with the
// table. Nothing is assumed to be faster: small problems often belong on the CPU.
func Auto(name string, o Options, trial Trial) (kernel.Device, []Candidate, error) {
	names := choices(name, o.Precision)
	if o.Spread {
		names = spread(names, cpu.PerformanceCores(), runtime.GOMAXPROCS(0))
	}
	if len(names) == 1 { // nothing to choose
		o.Precision = names[0].precision
		dev, err := Open(names[0].name, o)
		if err != nil {
			return nil, nil, err
		}
		return dev, []Candidate{{Name: dev.Name(), Picked: true}}, nil
	}
	var best kernel.Device
	table := make([]Candidate, len(names))
	picked := -1
	for i, c := range names {
		opt := o
		opt.Precision = c.precision
		if c.workers > 0 {
			opt.Workers = c.workers
		}
		table[i].Name = c.name
		if o.Precision == Any {
			table[i].Precision = c.precision
		}
		dev, err := Open(c.name, opt)
		if err != nil {
			table[i].Problem = err.Error()
			continue
		}
		table[i].Name = dev.Name()
		seconds, err := trial(dev)
		if err != nil {
			table[i].Problem = err.Error()
			dev.Close()
			continue
		}
		table[i].Seconds = seconds
		if picked >= 0 && table[picked].Seconds <= seconds {
			dev.Close()
			continue
		}
		if best != nil {
			best.Close()
		}
		best, picked = dev, i
	}
	if best == nil {
		return nil, table, fmt.Errorf("device auto: no device can run this: %s", table[0].Problem)
	}
	table[picked].Picked = true
	return best, table, nil
}
