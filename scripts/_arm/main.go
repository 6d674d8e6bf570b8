// Command arm serves scripts/arm-check and scripts/arm-count, on either processor:
//
//	arm step --steps 3 --batch 16        makes training steps of tiny_1 on one worker, no more
//	arm apart A B --bound 1e-4           holds the weights of two checkpoints to each other
//	go tool objdump -s F BINARY | arm loop    counts the inner loop of an arm64 function
//
// What a reader could break: step does the same work whatever the clock says, so that the
// instructions of one step are the difference of two runs. HAUL_SET says whose kernels they are.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strconv"
	"strings"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/recipe"
	"haul/internal/safetensors"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("arm: step, apart or loop is needed")
	}
	var err error
	switch verb, args := os.Args[1], os.Args[2:]; verb {
	case "step":
		err = step(args)
	case "apart":
		err = apart(args)
	case "loop":
		err = loop(os.Stdin)
	default:
		err = fmt.Errorf("no verb %s: use step, apart or loop", verb)
	}
	if err != nil {
		log.Fatal("arm: ", err)
	}
}

func step(args []string) error {
	flags := flag.NewFlagSet("step", flag.ExitOnError)
	steps := flags.Int("steps", 1, "training steps")
	batch := flags.Int("batch", 128, "instances per step")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg, err := config.LoadAny("", "tiny_1", []string{fmt.Sprintf("training.batch_size=%d", *batch)})
	if err != nil {
		return err
	}
	r, err := recipe.Find(cfg.Recipe())
	if err != nil {
		return err
	}
	dev, err := device.Open("cpu", device.Options{Workers: 1})
	if err != nil {
		return err
	}
	defer dev.Close()
	s, err := r.Step(dev, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	for range *steps {
		if err := s.Runner.Run(); err != nil {
			return err
		}
	}
	fmt.Println(dev.Name())
	return nil
}

// apart prints how far the weights of B lie from A's, by the length of A's, and fails past the
// bound.
func apart(args []string) error {
	flags := flag.NewFlagSet("apart", flag.ExitOnError)
	bound := flags.Float64("bound", 0, "the largest distance, by the length of A's weights")
	if len(args) < 2 {
		return fmt.Errorf("two checkpoints are needed")
	}
	if err := flags.Parse(args[2:]); err != nil {
		return err
	}
	a, err := safetensors.Load(args[0])
	if err != nil {
		return err
	}
	b, err := safetensors.Load(args[1])
	if err != nil {
		return err
	}
	var diff, norm float64
	floats := 0
	for _, t := range a.Tensors {
		u, ok := b.Tensor(t.Name)
		if !ok {
			return fmt.Errorf("%s has no %s", args[1], t.Name)
		}
		if t.DType != safetensors.F32 || strings.HasPrefix(t.Name, "optimizer") {
			continue // the run's state beside the weights
		}
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		x, y := make([]float32, n), make([]float32, n)
		if err := t.ReadFloat32s(x); err != nil {
			return err
		}
		if err := u.ReadFloat32s(y); err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		for i := range x {
			d := float64(x[i]) - float64(y[i])
			diff, norm = diff+d*d, norm+float64(x[i])*float64(x[i])
		}
		floats += n
	}
	d := math.Sqrt(diff / norm)
	fmt.Printf("%d weights, apart by %.2g of their length, bound %.2g\n", floats, d, *bound)
	if !(d <= *bound) || floats == 0 {
		return fmt.Errorf("%s and %s are apart by %.3g, %.3g at most", args[0], args[1], d, *bound)
	}
	return nil
}

// Words of arm64, by the bits that tell an instruction.
type word struct{ mask, bits uint32 }

func (w word) is(u uint32) bool { return u&w.mask == w.bits }

var (
	multiplyAdds = []word{{0xff80f400, 0x4f801000}, {0xffe0fc00, 0x4e20cc00}, {0xffe0fc00, 0x6e40ec00}} // fmla by element, by vector, bfmmla
	vectorLoads  = []word{{0xffc00000, 0xad400000}, {0xffe00c00, 0x3cc00400}, {0xffc00000, 0x3dc00000}} // ldp q, ldr q with and without moving on
	branches     = word{0xff000010, 0x54000000}                                                         // b.cond
)

func among(list []word, u uint32) bool {
	for _, w := range list {
		if w.is(u) {
			return true
		}
	}
	return false
}

// loop finds the loop with the most multiply-adds that holds no other. An operand must be loaded
// once: its loads are counted against the fewest that bring as many bytes, two vectors at a time
// where they lie side by side, which the generator's tiles need (rows of A one by one, B in pairs).
func loop(from io.Reader) error {
	var words []uint32
	for lines := bufio.NewScanner(from); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 3 || !strings.HasPrefix(f[1], "0x") {
			continue
		}
		u, err := strconv.ParseUint(f[2], 16, 32)
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		words = append(words, uint32(u))
	}
	most, loads, size := 0, 0, 0
	for end, u := range words {
		back := int(int32(u<<8) >> 13) // words, signed
		if !branches.is(u) || back >= 0 || end+back < 0 {
			continue
		}
		n, l, inner := 0, 0, true
		for _, v := range words[end+back : end] {
			switch {
			case among(multiplyAdds, v):
				n++
			case among(vectorLoads, v):
				l++
			case branches.is(v):
				inner = false
			}
		}
		if inner && n > most {
			most, loads, size = n, l, 1-back
		}
	}
	if most == 0 {
		return fmt.Errorf("no loop of multiply-adds among %d instructions", len(words))
	}
	share := float64(most+loads) / float64(size)
	fmt.Printf("%d instructions: %d multiply-adds, %d loads of vectors, %d others: %.3f are the first two\n", size, most, loads, size-most-loads, share)
	if share < 0.8 {
		return fmt.Errorf("%.3f of the loop are multiply-adds and loads, 0.8 at least", share)
	}
	return nil
}
