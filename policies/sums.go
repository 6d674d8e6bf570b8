package policies

import (
	"fmt"
	"hash/crc32"
)

// sums are the CRC-32C of the packed files, by policy. scripts/train-policies prints those of new
// ones.
var sums = map[string]uint32{
	"cvrp100": 0xb0ed89d0,
	"cvrp20":  0x0d6fba12,
	"cvrp200": 0x9084ca81,
	"cvrp50":  0xf5a01137,
	"vrp100":  0x9da12f23,
	"vrp50":   0x1e882806,
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// intact returns an error for a packed file that is not the one that was shipped.
func intact(name string, packed []byte) error {
	want, ok := sums[name]
	if got := crc32.Checksum(packed, castagnoli); !ok || got != want {
		return fmt.Errorf("policy %s: damaged: its checksum is %08x, not %08x: install haul again", name, got, want)
	}
	return nil
}
