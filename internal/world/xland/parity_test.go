package xland

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"os"
	"testing"

	"haul/internal/rng"
)

// parity is the JSON that scripts/xland_fixture.py writes.
type parity struct {
	Package string
	Drawn   []struct {
		Name  string
		Seed  uint32
		Count int
		CRC32 []uint32
	}
	Cases []struct {
		Layout      Layout
		Size, View  int
		Opaque      bool
		Envs, Steps int
		Seed, Start uint32
		Rulesets    []struct{ Goal, Rules, Tiles json.RawMessage }
		Ended, Paid int
		CRC32       []uint32
	}
}

func readParity(t *testing.T) *parity {
	t.Helper()
	text, err := os.ReadFile("testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var p parity
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// mix is the finalizer of MurmurHash3, by which the fixture's actions are made.
func mix(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x85EBCA6B
	x ^= x >> 13
	x *= 0xC2B2AE35
	return x ^ x>>16
}

// listed is a world of rulesets as the fixture has them.
func listed(t *testing.T, w World, sets []struct{ Goal, Rules, Tiles json.RawMessage }) World {
	t.Helper()
	w.Tasks = Tasks{Name: "fixture"}
	for i, s := range sets {
		var goal []uint8Number
		var rules, tiles [][]uint8Number
		for _, part := range []struct {
			text json.RawMessage
			into any
		}{{s.Goal, &goal}, {s.Rules, &rules}, {s.Tiles, &tiles}} {
			if err := json.Unmarshal(part.text, part.into); err != nil {
				t.Fatal(err)
			}
		}
		r := &Ruleset{}
		fill(r.Goal[:], goal)
		for _, e := range rules {
			var to [ruleBytes]uint8
			fill(to[:], e)
			r.Rules = append(r.Rules, to)
		}
		for _, e := range tiles {
			var to [2]uint8
			fill(to[:], e)
			r.Tiles = append(r.Tiles, to)
		}
		w.Tasks.IDs, w.Tasks.Listed = append(w.Tasks.IDs, int64(i)), append(w.Tasks.Listed, r.bytes())
	}
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	return w
}

// uint8Number keeps JSON from reading bytes as base64.
type uint8Number int

func fill(to []uint8, from []uint8Number) {
	for i, v := range from {
		to[i] = uint8(v)
	}
}

// TestParity: over a million steps, views, rewards, ends and starts equal the Python package's, in
// every layout, with rules and goals of every kind, on one core and on several.
func TestParity(t *testing.T) {
	steps := 0
	for _, c := range readParity(t).Cases {
		name := string(c.Layout)
		w := listed(t, World{Env: EnvName, Layout: c.Layout, Size: c.Size, View: c.View, Opaque: c.Opaque, Horizon: 3 * c.Size * c.Size}, c.Rulesets)
		tasks := make([]ID, c.Envs)
		for i := range tasks {
			tasks[i] = ID(i % len(c.Rulesets))
		}
		b, err := NewBatch(w, tasks, rng.NewJAXKey(c.Seed), 1+c.Envs%3)
		if err != nil {
			t.Fatal(err)
		}
		if got := crc32.ChecksumIEEE(b.Views); got != c.Start && !c.Opaque {
			t.Errorf("%s-%d seed %d: other starts than the package's", name, c.Size, c.Seed)
		}
		actions := make([]uint8, c.Envs)
		var crc uint32
		ended, paid := 0, 0
		bytes := make([]byte, 5*c.Envs)
		for step := range c.Steps {
			for e := range actions {
				actions[e] = uint8(mix(uint32(step*c.Envs+e)) % 6)
			}
			b.Step(actions)
			for e, r := range b.Rewards {
				binary.LittleEndian.PutUint32(bytes[4*e:], math.Float32bits(r))
				bytes[4*c.Envs+e] = 0
				if b.Ends[e] {
					bytes[4*c.Envs+e] = 1
					ended++
				}
				if r > 0 {
					paid++
				}
			}
			crc = crc32.Update(crc32.Update(crc, crc32.IEEETable, b.Views), crc32.IEEETable, bytes)
			if step%64 == 63 {
				if crc != c.CRC32[step/64] {
					t.Errorf("%s-%d seed %d: steps %d to %d differ from the package's", name, c.Size, c.Seed, step-63, step)
					break
				}
				crc = 0
			}
		}
		if ended != c.Ended || paid != c.Paid || paid == 0 {
			t.Errorf("%s-%d seed %d: %d episodes ended and %d paid, of the package %d and %d", name, c.Size, c.Seed, ended, paid, c.Ended, c.Paid)
		}
		steps += c.Envs * c.Steps
	}
	if steps < 1_000_000 {
		t.Errorf("%d steps were compared, want a million", steps)
	}
}

// TestDrawsAsThePublicGenerator: the public generator draws the same rulesets from the same
// seed.
func TestDrawsAsThePublicGenerator(t *testing.T) {
	p := readParity(t)
	if len(p.Drawn) != len(Recipes) {
		t.Fatalf("checksums of %d benchmarks, there are %d", len(p.Drawn), len(Recipes))
	}
	for _, d := range p.Drawn {
		draw, err := NewSampler(d.Name, d.Seed)
		if err != nil {
			t.Fatal(err)
		}
		crc := uint32(0)
		for i := range d.Count {
			r := draw.Next()
			if err := r.Check(9); err != nil {
				t.Fatal(err)
			}
			for len(r.Rules) > 0 && r.Rules[len(r.Rules)-1][0] == ruleNone {
				r.Rules = r.Rules[:len(r.Rules)-1]
			}
			for r.Tiles[len(r.Tiles)-1][0] == Empty {
				r.Tiles = r.Tiles[:len(r.Tiles)-1]
			}
			crc = crc32.Update(crc, crc32.IEEETable, r.bytes())
			if i%100 == 99 {
				if crc != d.CRC32[i/100] {
					t.Fatalf("%s: rulesets %d to %d differ from the public generator's", d.Name, i-99, i)
				}
				crc = 0
			}
		}
	}
}
