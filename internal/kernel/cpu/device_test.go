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
	for _, set := range cpu.Sets() {
		suite(set, cpu.Options{Set: set, Workers: 2, ShardRows: 24})
	}
	suite("shards in use", cpu.Options{Workers: 2})
}
