package cpu_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/kerneltest"
)

// Every instruction set passes the suite with shards so small that a batch outnumbers the lanes; the
// fastest also with shards as they are in use.
func TestDevice(t *testing.T) {
	suite := func(name string, o cpu.Options) {
		t.Run(name, func(t *testing.T) {
			kerneltest.Run(t, func(t *testing.T) kernel.Device {
				dev, err := cpu.Open(o)
				if err != nil {
					t.Fatal(err)
				}
				return dev
			})
		})
	}
	for i, set := range cpu.Sets() {
		if testing.Short() && i > 0 { // under the race detector one set shows all that workers share
			return
		}
		suite(set, cpu.Options{Set: set, Workers: 2, ShardRows: 24})
	}
	suite("shards in use", cpu.Options{Workers: 2})
}
