package search

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"haul/internal/vrp"
)

// Costs of many small problems, solved once: the reference of a policy's gap for sizes that cannot
// be solved exactly. A cached cost is trusted if its key matches. The key is a hash of everything
// that the cost depends on. A change of the search's results must raise referenceVersion, or
// generalVersion if plain problems keep theirs.

const (
	referenceVersion = 3
	generalVersion   = 10 // of the search over problems with further parts
)

// ReferenceOptions says how each problem is searched and where costs are kept.
type ReferenceOptions struct {
	Iterations int           // per problem; 0: by Time
	Time       time.Duration // per problem and core
	Seed       uint64
	// no search begins after it, but for the first two; zero: all are searched
	Until    time.Time
	Workers  int               // problems searched at the same time; below 1 counts as 1
	Cache    string            // folder of the cache; "" keeps nothing. See CacheDir
	Progress func(done int)    // one call at a time, with growing numbers; may be nil
	Warn     func(text string) // told once if the cache cannot be written; may be nil
}

// CacheDir is the folder for costs in the user's cache, "" where the machine names none.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "haul", "search")
}

// References returns what the search's routes cost for each problem. Problems whose costs are
// cached are not searched again, and each cost is kept as soon as it is known: a run that was
// interrupted goes on where it stopped. With Iterations a cost is a function of problem, seed and
// budget. The cost of a problem that Until left out is not a number.
func References(ctx context.Context, problems []*vrp.Problem, o ReferenceOptions) ([]float64, error) {
	if o.Iterations <= 0 && o.Time <= 0 {
		return nil, fmt.Errorf("search: a time or a number of iterations per problem is needed")
	}
	c := openCache(o)
	defer c.close()
	outer := ctx
	ctx, cancel := context.WithCancelCause(outer)
	defer cancel(nil)
	var (
		wg sync.WaitGroup
		// guards next, done and the cache, and keeps progress to one call at a time
		mu         sync.Mutex
		next, done int
		handed     int // to be searched
		costs      = make([]float64, len(problems))
	)
	finish := func() {
		if done++; o.Progress != nil {
			o.Progress(done)
		}
	}
	// take hands out the next problem that the cache does not know.
	take := func() (int, cacheKey, bool) {
		mu.Lock()
		defer mu.Unlock()
		for ; next < len(problems); next++ {
			key := o.key(problems[next])
			cost, known := c.costs[key]
			switch {
			case known:
				costs[next] = cost
				finish()
			case handed >= 2 && !o.Until.IsZero() && time.Now().After(o.Until):
				costs[next] = math.NaN()
			default:
				handed++
				next++
				return next - 1, key, true
			}
		}
		return 0, cacheKey{}, false
	}
	for range max(1, min(o.Workers, len(problems))) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i, key, ok := take()
				if !ok {
					return
				}
				r, err := Solve(ctx, problems[i], Options{Time: o.Time, Iterations: o.Iterations, Seed: o.Seed, Workers: 1})
				if err != nil {
					cancel(fmt.Errorf("problem %d: %w", i, err))
					return
				}
				if len(r.Unserved) > 0 {
					cancel(fmt.Errorf("problem %d: %d of its customers find no place", i, len(r.Unserved)))
					return
				}
				if r.Interrupted {
					return // half a search is no reference
				}
				mu.Lock()
				costs[i] = r.Cost
				c.add(key, r.Cost)
				finish()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := outer.Err(); err != nil {
		return nil, err // and not its cause, which callers need not know
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return costs, nil
}

type cacheKey [16]byte

// key hashes the problem's content and what else its cost depends on.
func (o ReferenceOptions) key(p *vrp.Problem) cacheKey {
	h := sha256.New()
	put := func(v any) { binary.Write(h, binary.LittleEndian, v) } // a hash never fails
	length := int64(o.Time)
	if o.Iterations > 0 {
		length = 0
	}
	put([]int64{referenceVersion, int64(o.Iterations), length, int64(o.Seed), int64(p.Capacity), int64(p.Metric), int64(p.Vehicles), int64(len(p.Demand)), int64(len(p.X)), int64(len(p.Weights)), int64(len(p.Service))})
	put(p.Open)
	put(p.MaxDuration)
	put(p.Demand)
	put(p.X)
	put(p.Y)
	put(p.Weights)
	put(p.Service)
	if p.Limited() != nil {
		// All other parts as text, in which Go writes every number so that it reads back the same.
		parts := *p
		parts.Name, parts.Comment, parts.IDs, parts.Names, parts.Notes = "", "", nil, nil, nil
		parts.Demand, parts.X, parts.Y, parts.Weights, parts.Service = nil, nil, nil, nil, nil
		fmt.Fprintf(h, "%d %#v", generalVersion, parts)
	}
	return cacheKey(h.Sum(nil)[:16])
}

// cache is a file of records that only grows: key, cost, and a sum that tells a torn record. Two
// runs may append at once; each record goes out in one write.
type cache struct {
	costs map[cacheKey]float64
	file  *os.File
	warn  func(string)
}

const recordSize = 32

func openCache(o ReferenceOptions) *cache {
	c := &cache{costs: map[cacheKey]float64{}, warn: o.Warn}
	if o.Cache == "" {
		return c
	}
	if err := os.MkdirAll(o.Cache, 0o755); err != nil {
		c.lost(err)
		return c
	}
	f, err := os.OpenFile(filepath.Join(o.Cache, fmt.Sprintf("references-v%d.bin", referenceVersion)), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		c.lost(err)
		return c
	}
	c.file = f
	data, err := io.ReadAll(f)
	if err != nil {
		c.lost(err)
	}
	for len(data) >= recordSize {
		key, cost, ok := decodeRecord(data[:recordSize])
		if !ok {
			data = data[1:] // a torn record: the next whole one begins somewhere behind
			continue
		}
		c.costs[key] = cost
		data = data[recordSize:]
	}
	return c
}

func (c *cache) lost(err error) {
	if c.warn != nil {
		c.warn(fmt.Sprintf("these costs cannot be kept and will be searched again: %v", err))
		c.warn = nil
	}
}

func (c *cache) add(key cacheKey, cost float64) {
	c.costs[key] = cost
	if c.file == nil {
		return
	}
	if _, err := c.file.Write(encodeRecord(key, cost)); err != nil {
		c.lost(err)
	}
}

func (c *cache) close() {
	if c.file != nil {
		c.file.Close() // every record is out already
	}
}

func encodeRecord(key cacheKey, cost float64) []byte {
	b := append(make([]byte, 0, recordSize), key[:]...)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(cost))
	sum := sha256.Sum256(b)
	return append(b, sum[:8]...)
}

func decodeRecord(b []byte) (key cacheKey, cost float64, ok bool) {
	sum := sha256.Sum256(b[:24])
	return cacheKey(b[:16]), math.Float64frombits(binary.LittleEndian.Uint64(b[16:])), string(sum[:8]) == string(b[24:])
}
