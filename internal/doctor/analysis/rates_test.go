package analysis

import (
	"fmt"
	"math"
	"testing"
)

// A collective's rate is its bytes over its time, times what each link carries of them.
func TestRatesOfCollectives(t *testing.T) {
	list := []string{ev("user_annotation", "ProfilerStep#1", 1, 0, 2000, ""), ev("user_annotation", "ProfilerStep#2", 1, 2000, 2000, "")}
	for i, us := range []float64{200, 400} {
		list = append(list, ev("kernel", "gemm", 7, float64(1000*i), 500, `"device":0,"stream":7`),
			ev("kernel", "ncclDevKernel_AllReduce_Sum", 9, float64(1000*i+100), us, fmt.Sprintf(`"device":0,"stream":9,"Collective name":"allreduce","In msg nelems":%d,"dtype":"Float","Group size":8,"correlation":%d`, 1_000_000*(1+i), 1+i)))
	}
	b := read(t, list...).Breakdown()
	if len(b.Collectives) != 1 {
		t.Fatalf("%+v", b.Collectives)
	}
	c := b.Collectives[0]
	// 12 MB in 600 µs is 20 GB/s; each of 8 links carries 1.75 times the bytes.
	if math.Abs(c.BusGBps-35) > 1e-9 || math.Abs(c.MB-6e6/(1<<20)) > 1e-9 || math.Abs(c.MS-0.3) > 1e-9 || c.ExposedMS != 0 || c.Count != 1 || c.Kind != "all_reduce" {
		t.Errorf("%+v", c)
	}
}

// Copies are counted by direction, with their rate.
func TestRatesOfCopies(t *testing.T) {
	list := []string{ev("user_annotation", "ProfilerStep#1", 1, 0, 1000, ""), ev("user_annotation", "ProfilerStep#2", 1, 1000, 1000, "")}
	for i, us := range []float64{100, 300} {
		list = append(list, ev("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, float64(1000*i), us, fmt.Sprintf(`"device":0,"stream":7,"bytes":%d`, 4<<20)))
	}
	list = append(list, ev("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 7, 1500, 50, `"device":0,"stream":7,"bytes":1048576`))
	a := read(t, list...)
	b := a.Breakdown()
	if len(b.Copies) != 2 || a.Copies != 2 || a.Moved != 8<<20 || a.Copied != 400e3 {
		t.Fatalf("%+v, %d, %d bytes, %v ns", b.Copies, a.Copies, a.Moved, a.Copied)
	}
	up := b.Copies[1]
	if up.Direction != "to the GPU, page-locked" || up.Count != 1 || up.MB != 4 || math.Abs(up.MS-0.2) > 1e-9 || math.Abs(up.GBps-float64(8<<20)/400e3) > 1e-9 {
		t.Errorf("%+v", up)
	}
	if math.Abs(b.CopyShare-450.0/2000) > 1e-9 || math.Abs(b.IdleShare-1550.0/2000) > 1e-9 {
		t.Errorf("copies hold %v, idle %v", b.CopyShare, b.IdleShare)
	}
	if g := b.GPUs[0]; g.Gaps != 3 || math.Abs(g.WidestMS-0.9) > 1e-9 || math.Abs(g.IdleMS-0.775) > 1e-9 {
		t.Errorf("%+v", g)
	}
}

// The length of a queue is measured at each launch: work issued before it and not finished,
// including the launch itself.
func TestQueue(t *testing.T) {
	list := []string{ev("user_annotation", "ProfilerStep#1", 1, 0, 1000, "")}
	for i := range 3 { // issued at 10, 20, 30; run in sequence for 100 each from 50 on
		list = append(list, ev("cuda_runtime", "cudaLaunchKernel", 1, float64(5+10*i), 5, fmt.Sprintf(`"correlation":%d`, i+1)),
			ev("kernel", "gemm", 7, float64(50+100*i), 100, fmt.Sprintf(`"device":0,"stream":7,"correlation":%d`, i+1)))
	}
	depth, ms := read(t, list...).queue()
	if depth != 2 || math.Abs(ms-0.130) > 1e-9 {
		t.Errorf("%v pieces, %v ms", depth, ms)
	}
}

// Python inside the framework's own loops is the way to a launch, where they hold more than half of
// it.
func TestPythonInsideRegions(t *testing.T) {
	for from, inside := range map[float64]bool{150: false, 149: true, 170: false, 120: true} {
		a := read(t, ev("user_annotation", "ProfilerStep#1", 1, 0, 1000, ""),
			ev("cpu_op", "aten::add", 1, 0, 110, ""), ev("cuda_runtime", "cudaLaunchKernel", 1, 0, 5, `"correlation":1`), ev("kernel", "a", 7, 5, 95, `"device":0,"stream":7,"correlation":1`),
			ev("cpu_op", "Optimizer.zero_grad#Adam", 1, from, 190-from, ""),
			ev("cpu_op", "aten::mul", 1, 190, 20, ""), ev("cuda_runtime", "cudaLaunchKernel", 1, 195, 5, `"correlation":2`), ev("kernel", "b", 7, 200, 800, `"device":0,"stream":7,"correlation":2`))
		// the GPU waits from 100 to 200, in Python from 110 to 190
		between := 80e3
		if inside {
			between = 0
		}
		if got := a.Idle[IdleBetween]; got != between {
			t.Errorf("a region from %v on: %v ns between operators, want %v", from, got, between)
		}
	}
}

// A collective whose kernel tells no size has that of the annotation around its launch.
func TestAnAnnotationContainsTheSize(t *testing.T) {
	var list []string
	for i := range 2 {
		at := float64(1000 * i)
		list = append(list, ev("user_annotation", fmt.Sprintf("ProfilerStep#%d", i+1), 1, at, 1000, ""),
			ev("user_annotation", "nccl:all_reduce", 1, at+50, 40, `"Collective name":"allreduce","In msg nelems":1000000,"dtype":"Float","Group size":8`),
			ev("cuda_runtime", "cudaLaunchKernel", 1, at+60, 10, fmt.Sprintf(`"correlation":%d`, i+1)),
			ev("kernel", "ncclDevKernel_AllReduce_Sum", 9, at+100, 200, fmt.Sprintf(`"device":0,"stream":9,"correlation":%d`, i+1)))
	}
	b := read(t, list...).Breakdown()
	if len(b.Collectives) != 1 || math.Abs(b.Collectives[0].MB-4e6/(1<<20)) > 1e-9 {
		t.Errorf("%+v", b.Collectives)
	}
}
