package device

import (
	"fmt"

	"haul/internal/cu"
	"haul/internal/kernel"
)

// Candidate is one device that Auto considered.
type Candidate struct {
	Name    string  `json:"device"`
	Seconds float64 `json:"seconds_per_step"` // 0 when it could not run, or had no rival
	Problem string  `json:"problem,omitempty"`
	Picked  bool    `json:"picked"`
}

// Trial times one step of the job at hand on a device, after warming up.
type Trial func(kernel.Device) (seconds float64, err error)

// Auto times the CPU and every GPU on the job itself and returns the fastest, open, with the table.
// Nothing is assumed to be faster: small problems often belong on the CPU.
func Auto(o Options, trial Trial) (kernel.Device, []Candidate, error) {
	names := []string{"cpu"}
	if driver, err := cu.Open(); err == nil {
		if cards, err := driver.Devices(); err == nil {
			for i := range cards {
				names = append(names, fmt.Sprintf("cuda:%d", i))
			}
		}
	}
	if len(names) == 1 { // nothing to choose
		dev, err := Open(names[0], o)
		if err != nil {
			return nil, nil, err
		}
		return dev, []Candidate{{Name: dev.Name(), Picked: true}}, nil
	}
	var best kernel.Device
	table := make([]Candidate, len(names))
	picked := -1
	for i, name := range names {
		opt := o
		if name == "cpu" {
			opt.Precision = ""
		}
		table[i].Name = name
		dev, err := Open(name, opt)
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
