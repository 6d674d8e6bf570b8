package ptx

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// frame returns a kernel with a body: every thread has four separate words in %r1 to %r4 and stores
// %r5 to %r8.
func frame(body string) string {
	return `.version 7.5
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
{
	.reg .pred %p<10>;
	.reg .b16 %rs<10>;
	.reg .b32 %r<60>;
	.reg .f32 %f<60>;
	.reg .b64 %rd<20>;
	.reg .f64 %fd<10>;
	mov.u32 %r0, %tid.x;
	ld.param.u64 %rd1, [k_param_0];
	ld.param.u64 %rd2, [k_param_1];
	mul.wide.u32 %rd3, %r0, 16;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd4];
	mov.b32 %r5, 0;
	mov.b32 %r6, 0;
	mov.b32 %r7, 0;
	mov.b32 %r8, 0;
` + body + `
	st.global.v4.u32 [%rd5], {%r5, %r6, %r7, %r8};
	ret;
}
`
}

type words = [4]uint32

// aligned returns n words at a multiple of 16 bytes.
func aligned(n int) []words {
	room := make([]uint32, 4*n+3)
	from := -int(uintptr(unsafe.Pointer(&room[0]))/4) & 3
	return unsafe.Slice((*words)(unsafe.Pointer(&room[from])), n)
}

// launched runs a body with a thread for each element of in.
func launched(body string, in []words, change func(*Launch)) ([]words, error) {
	m, err := Parse([]byte(frame(body)))
	if err != nil {
		return nil, err
	}
	p, err := m.Compile("k")
	if err != nil {
		return nil, err
	}
	in, out := append(aligned(len(in))[:0], in...), aligned(len(in))
	var memory Memory
	a, b := uint64(uintptr(unsafe.Pointer(&in[0]))), uint64(uintptr(unsafe.Pointer(&out[0])))
	memory.Add(a, 16*len(in))
	memory.Add(b, 16*len(in))
	l := Launch{Program: p, Grid: [3]int{1, 1, 1}, Block: [3]int{len(in), 1, 1}, Dynamic: 1024, Memory: &memory, Limit: 1 << 20,
		Params: p.Lay([][]byte{unsafe.Slice((*byte)(unsafe.Pointer(&a)), 8), unsafe.Slice((*byte)(unsafe.Pointer(&b)), 8)})}
	if change != nil {
		change(&l)
	}
	_, err = Run(l)
	runtime.KeepAlive(in)
	return out, err
}

func f(v float32) uint32 { return math.Float32bits(v) }

// TestInstructions: results computed by hand, for ties, signs, ends of ranges and NaN.
func TestInstructions(t *testing.T) {
	nan := uint32(0x7fc00000)
	for _, c := range []struct {
		code     string
		in, want words
	}{
		{"add.s32 %r5, %r1, %r2;", words{0xffffffff, 2}, words{1}},
		{"sub.s32 %r5, %r1, %r2;", words{1, 2}, words{0xffffffff}},
		{"mul.lo.s32 %r5, %r1, %r2;", words{0x10001, 0x10001}, words{0x20001}},
		{"mul.hi.u32 %r5, %r1, %r2; mul.hi.s32 %r6, %r1, %r2;", words{0xffffffff, 0xffffffff}, words{0xfffffffe, 0}},
		{"mad.lo.s32 %r5, %r1, %r2, %r3;", words{7, 6, 0xffffffff}, words{41}},
		{"{.reg .u64 t; mul.wide.u32 t, %r1, %r2; mov.b64 {%r5, %r6}, t;}", words{0xffffffff, 0xffffffff}, words{1, 0xfffffffe}},
		{"mul.wide.s32 %rd6, %r1, %r2; mov.b64 {%r5, %r6}, %rd6;", words{0xffffffff, 3}, words{0xfffffffd, 0xffffffff}},
		{"div.s32 %r5, %r1, %r2; rem.s32 %r6, %r1, %r2; div.u32 %r7, %r1, %r2;", words{0xfffffff9, 2}, words{0xfffffffd, 0xffffffff, 0x7ffffffc}},
		{"min.s32 %r5, %r1, %r2; max.s32 %r6, %r1, %r2; min.u32 %r7, %r1, %r2;", words{0xffffffff, 1}, words{0xffffffff, 1, 1}},
		{"shl.b32 %r5, %r1, 31; shl.b32 %r6, %r1, 32; shr.s32 %r7, %r2, 40; shr.u32 %r8, %r2, 31;", words{3, 0x80000000}, words{0x80000000, 0, 0xffffffff, 1}},
		{"shf.l.wrap.b32 %r5, %r1, %r1, 13;", words{0x80000001}, words{0x3000}},
		{"bfe.u32 %r5, %r1, 4, 8; bfe.s32 %r6, %r1, 4, 8; bfe.u32 %r7, %r1, 28, 8; bfe.u32 %r8, %r1, 0, 0;", words{0x9000_0fa5}, words{0xfa, 0xfffffffa, 9, 0}},
		{"lop3.b32 %r5, %r1, %r2, %r3, 0xe8; lop3.b32 %r6, %r1, %r2, %r3, 0x96;", words{0xf0, 0xcc, 0xaa}, words{0xe8, 0x96}},
		{"prmt.b32 %r5, %r1, %r2, 0x7531; prmt.b32 %r6, %r1, %r2, 0xb0;", words{0x83020100, 0x07060504}, words{0x07058301, 0x0000ff00}},
		{"clz.b32 %r5, %r1; popc.b32 %r6, %r1; clz.b32 %r7, %r2;", words{0xf0, 0}, words{24, 4, 32}},
		{"setp.lt.s32 %p1, %r1, %r2; selp.b32 %r5, 7, 9, %p1; setp.lt.u32 %p2, %r1, %r2; selp.b32 %r6, 7, 9, %p2;", words{0xffffffff, 1}, words{7, 9}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; setp.lt.f32 %p1, %f1, %f2; setp.ltu.f32 %p2, %f1, %f2; selp.b32 %r5, 1, 0, %p1; selp.b32 %r6, 1, 0, %p2; setp.neu.f32 %p3, %f1, %f1; selp.b32 %r7, 1, 0, %p3;",
			words{nan, f(1)}, words{0, 1, 1}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.f32 %f3, %f1, %f2; max.f32 %f4, %f1, %f2; mov.b32 %r5, %f3; mov.b32 %r6, %f4;", words{nan, f(2)}, words{f(2), f(2)}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.f32 %f3, %f1, %f2; max.f32 %f4, %f1, %f2; mov.b32 %r5, %f3; mov.b32 %r6, %f4;", words{0, 1 << 31}, words{1 << 31, 0}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.NaN.f32 %f3, %f1, %f2; max.NaN.f32 %f4, %f1, %f2; mov.b32 %r5, %f3; mov.b32 %r6, %f4;", words{nan, f(2)}, words{nan, nan}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; min.NaN.f32 %f3, %f1, %f2; max.NaN.f32 %f4, %f1, %f2; mov.b32 %r5, %f3; mov.b32 %r6, %f4;", words{0, 1 << 31}, words{1 << 31, 0}},
		// (1+2^-12)² - 1 needs the exact product
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; fma.rn.f32 %f3, %f1, %f1, %f2; mov.b32 %r5, %f3;", words{f(1 + 0x1p-12), f(-1)}, words{f(0x1p-11 + 0x1p-24)}},
		{"mov.b32 %f1, %r1; cvt.rna.tf32.f32 %r5, %f1; mov.b32 %f2, %r2; cvt.rna.tf32.f32 %r6, %f2;", words{0x3f801000, 0xbf800fff}, words{0x3f802000, 0xbf800000}},
		// 1+2^-11 is halfway between two fp16 numbers and rounds to even; -(1+3·2^-11) too, away
		// from zero
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.f16x2.f32 %r5, %f1, %f2;", words{f(1 + 0x1p-11), f(-1 - 3*0x1p-11)}, words{0x3c00bc02}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.f16x2.f32 %r5, %f1, %f2;", words{f(65520), f(0x1p-25)}, words{0x7c000000}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.f16x2.f32 %r5, %f1, %f2;", words{nan, f(-0x3p-26)}, words{0x7fff8001}},
		{"mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.bf16x2.f32 %r5, %f1, %f2;", words{0x3f808000, 0xbf818000}, words{0x3f80bf82}},
		{"{.reg .b16 l, h; mov.b32 {l, h}, %r1; cvt.f32.f16 %f1, l; cvt.f32.f16 %f2, h;} mov.b32 %r5, %f1; mov.b32 %r6, %f2;", words{0x0001c100}, words{f(-2.5), f(0x1p-24)}},
		{"fma.rn.bf16x2 %r5, %r1, %r2, %r3; fma.rn.relu.bf16x2 %r6, %r1, %r2, %r3;", words{0x3f803f81, 0xc0003f81, 0x00003b80}, words{0xc0003f83, 0x00003f83}},
		{"max.f16x2 %r5, %r1, %r2;", words{0x7e003c00, 0xc0004000}, words{0xc0004000}},
		{"mov.b32 %f1, %r1; ex2.approx.ftz.f32 %f2, %f1; mov.b32 %r5, %f2; mov.b32 %f3, %r2; ex2.approx.ftz.f32 %f4, %f3; mov.b32 %r6, %f4;", words{f(-3), f(-126.5)}, words{f(0.125), 0}},
		{"mov.b32 %f1, %r1; rcp.approx.ftz.f32 %f2, %f1; mov.b32 %r5, %f2; mov.b32 %f3, %r2; lg2.approx.ftz.f32 %f4, %f3; mov.b32 %r6, %f4;", words{1, f(8)}, words{0x7f800000, f(3)}},
		{"mov.b32 %f1, %r1; cvt.rzi.s32.f32 %r5, %f1; cvt.rn.f32.s32 %f2, %r2; mov.b32 %r6, %f2;", words{f(-2.9), 0x01000001}, words{0xfffffffe, f(16777216)}},
		{"cvt.u16.u32 %rs1, %r1; cvt.s16.s8 %rs2, %rs1; cvt.u32.u16 %r5, %rs2; cvt.s64.s32 %rd6, %r2; mov.b64 {%r6, %r7}, %rd6;", words{0x12380, 0x80000000}, words{0xff80, 0x80000000, 0xffffffff}},
		{"st.shared.u32 [smem+4], %r1; ld.shared.u16 %rs1, [smem+6]; cvt.u32.u16 %r5, %rs1; ld.shared.u32 %r6, [smem+8];", words{0xabcd1234}, words{0xabcd, 0xffffffff}},
		{"setp.ne.u32 %p1, %r1, 0; and.pred %p2, %p1, %p1; not.pred %p3, %p2; @%p3 mov.b32 %r5, 5; @!%p3 mov.b32 %r6, 6;", words{1}, words{0, 6}},
	} {
		out, err := launched(c.code, []words{c.in}, nil)
		if err != nil || out[0] != c.want {
			t.Errorf("%s\nof %x: %x, %v; want %x", c.code, c.in, out, err, c.want)
		}
	}
}

// numbered returns threads whose first word is their number and whose second word is its square.
func numbered(n int) []words {
	in := make([]words, n)
	for i := range in {
		in[i] = words{uint32(i), uint32(i * i), f(float32(i)), 0}
	}
	return in
}

// TestExchanges: values that lanes exchange, by the lanes' numbers.
func TestExchanges(t *testing.T) {
	for _, c := range []struct {
		code string
		want func(i int) uint32
	}{
		{"shfl.sync.bfly.b32 %r5, %r1, 5, 31, 0xffffffff;", func(i int) uint32 { return uint32(i ^ 5) }},
		{"and.b32 %r9, %r1, 0; or.b32 %r9, %r9, 3; shfl.sync.bfly.b32 %r5, %r1, %r9, 31, 0xffffffff;", func(i int) uint32 { return uint32(i ^ 3) }},
		{"shfl.sync.up.b32 %r5, %r1, 3, 0, 0xffffffff;", func(i int) uint32 {
			if i < 3 {
				return uint32(i)
			}
			return uint32(i - 3)
		}},
		{"shfl.sync.idx.b32 %r5, %r2, 9, 31, 0xffffffff;", func(int) uint32 { return 81 }},
		{"setp.gt.u32 %p1, %r1, 29; vote.sync.ballot.b32 %r5, %p1, 0xffffffff;", func(int) uint32 { return 3 << 30 }},
		{"redux.sync.add.s32 %r5, %r1, 0xffffffff;", func(int) uint32 { return 31 * 16 }},
		{"redux.sync.max.s32 %r5, %r2, 0xffffffff;", func(int) uint32 { return 31 * 31 }},
		{"shl.b32 %r9, %r1, 16; or.b32 %r9, %r9, %r1; movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r9;",
			func(i int) uint32 { return uint32(i%4*2*4+i/4/2) | uint32((i%4*2+1)*4+i/4/2)<<16 }},
	} {
		out, err := launched(c.code, numbered(32), nil)
		for i := range out {
			if err != nil || out[i][0] != c.want(i) {
				t.Errorf("%s\nlane %d has %x, %v; want %x", c.code, i, out[i][0], err, c.want(i))
				break
			}
		}
	}
}

// TestPartedLanesMeet: lanes take different branches and repeat loops different numbers of times.
// Instructions for all lanes wait for all. Lanes that repeat a loop wait for lanes still in it.
func TestPartedLanesMeet(t *testing.T) {
	// a loop with %r1 mod 5 repetitions; odd lanes take a branch to the end of the code
	code := `
	and.b32 %r9, %r1, 1;
	setp.eq.u32 %p1, %r9, 1;
	mov.b32 %r10, 0;
	rem.u32 %r11, %r1, 5;
again:
	setp.ge.u32 %p2, %r10, 5;
	@%p2 bra done;
	ld.volatile.shared.u32 %r12, [smem];
	add.s32 %r5, %r5, %r12;
	@%p1 bra aside;
	add.s32 %r6, %r6, 1;
next:
	add.s32 %r10, %r10, 1;
	setp.eq.u32 %p3, %r1, 0;
	@%p3 st.shared.u32 [smem], %r10;
	bra again;
done:
	setp.lt.u32 %p4, %r11, 2;
	@%p4 bra skip;
	add.s32 %r7, %r7, 9;
skip:
	shfl.sync.bfly.b32 %r8, %r6, 1, 31, 0xffffffff;
	bra end;
aside:
	add.s32 %r6, %r6, 100;
	bra next;
end:
`
	out, err := launched("mov.b32 %r9, 0; setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [smem], %r9; bar.warp.sync 0xffffffff;"+code, numbered(32), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range out {
		want := words{0 + 1 + 2 + 3 + 4, 5, 9, 500}
		if i%2 == 1 {
			want[1], want[3] = 500, 5
		}
		if i%5 < 2 {
			want[2] = 0
		}
		if w != want {
			t.Errorf("lane %d: %v, want %v", i, w, want)
		}
	}
}

// TestFaults: faults name the kernel, the line and the thread, and describe the error.
func TestFaults(t *testing.T) {
	races := func(l *Launch) { l.Races = true }
	for _, c := range []struct {
		name, code string
		threads    int
		change     func(*Launch)
		want       string
	}{
		{"beyond an allocation", "ld.global.u32 %r5, [%rd4+16];", 32, nil, "kernel k +22, block [0 0 0], thread [31 0 0]: ld.global.u32 reads outside of all allocations: 4 bytes"},
		{"astride", "ld.global.u32 %r5, [%rd4+2];", 1, nil, "which is no multiple of it"},
		{"beyond shared memory", "st.shared.u32 [smem+1024], %r1;", 1, nil, "writes outside of the block's shared memory: 4 bytes at 1024 of 1024"},
		{"the last of shared memory", "st.shared.u32 [smem+1020], %r1;", 1, nil, ""},
		{"a name", "sin.approx.f32 %f1, %f1;", 1, nil, "sin.approx.f32: this instruction is not known"},
		{"a letter of a name", "add.sat.s32 %r5, %r1, %r1;", 1, nil, "add.sat.s32: this instruction is not known"},
		{"a divisor", "div.u32 %r5, %r1, %r4;", 32, nil, "thread [0 0 0]: div.u32 divides by zero"},
		{"half a warp at a barrier", "setp.lt.u32 %p1, %r1, 16; @%p1 bra over; bar.sync 0; bra end; over: bar.sync 0; end:", 32, nil, "is for all lanes of a warp"},
		{"a warp that does not come", "setp.lt.u32 %p1, %r1, 32; @%p1 bra over; bar.sync 1, 64; over:", 64, nil, "bar.sync waits forever; warp 0 has ended; warp 1 is at barrier 1 (+22)"},
		{"a loop without an end", "again: bra again;", 32, nil, "still runs after"},
		{"a loop that polls", "again: ld.volatile.shared.u32 %r5, [smem]; setp.ne.u32 %p1, %r5, 5; @%p1 bra again;", 64, nil, "still runs after"},
		{"a race", "shl.b32 %r9, %r1, 2; and.b32 %r9, %r9, 64; st.shared.u32 [%r9+1024], %r1;", 64, races, "races: writes shared memory"},
		{"what a barrier orders", "mov.u32 %r9, smem; st.shared.u32 [%r9], %r1; bar.sync 0; ld.shared.u32 %r5, [%r9];", 32, races, ""},
		{"a read that nothing orders", "mov.u32 %r9, smem; shl.b32 %r10, %r1, 2; add.s32 %r9, %r9, %r10; st.shared.u32 [%r9], %r1; xor.b32 %r9, %r9, 128; ld.shared.u32 %r5, [%r9];", 64, races, "which warp 0 has read with nothing between"},
		{"more threads than it takes", "", 2048, nil, "2048 threads in a block"},
	} {
		_, err := launched(c.code, numbered(c.threads), c.change)
		if text := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(text, c.want) && c.want != "" {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if fault := (*Fault)(nil); errors.As(err, &fault) && fault.Kernel != "k" {
			t.Errorf("%s: a fault of %q", c.name, fault.Kernel)
		}
	}
}

// TestCopiesLandWhenAwaited: shared memory has its old content until the thread has waited. A short
// copy is filled up with zeros.
func TestCopiesLandWhenAwaited(t *testing.T) {
	code := `cp.async.ca.shared.global [%r9], [%rd4], 16, 8;
	cp.async.commit_group;
	cp.async.ca.shared.global [%r9+16], [%rd4], 16;
	cp.async.commit_group;
	ld.shared.u32 %r5, [%r9];
	cp.async.wait_group 1;
	ld.shared.u32 %r6, [%r9+4];
	ld.shared.u32 %r10, [%r9+8];
	ld.shared.u32 %r7, [%r9+20];
	cp.async.wait_group 0;
	ld.shared.u32 %r8, [%r9+20];
	add.s32 %r8, %r8, %r10;`
	out, err := launched("mov.u32 %r9, smem;"+code, []words{{11, 12, 13, 14}}, nil)
	if want := (words{full, 12, full, 12}); err != nil || out[0] != want {
		t.Errorf("%v, %v; want %v", out, err, want)
	}
}

// TestShortAllocations: an access that begins inside of an allocation may not end after it, for the
// first access and for one after a shorter access that fits.
func TestShortAllocations(t *testing.T) {
	short := aligned(1)
	at := uint64(uintptr(unsafe.Pointer(&short[0])))
	for _, c := range []struct {
		name, code, want string
		bytes            int
	}{
		{"the whole of it", "ld.global.u64 %rd7, [%rd6];", "", 8},
		{"one byte less", "ld.global.u64 %rd7, [%rd6];", "ld.global.u64 reads outside of all allocations: 8 bytes", 7},
		{"after a shorter one", "ld.global.u32 %r5, [%rd6]; ld.global.u64 %rd7, [%rd6];", "ld.global.u64 reads outside of all allocations: 8 bytes", 4},
		{"a vector", "ld.global.u32 %r5, [%rd6]; ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd6];", "reads outside of all allocations: 16 bytes", 12},
		{"a copy", "ld.global.u32 %r5, [%rd6]; mov.u32 %r9, smem; cp.async.ca.shared.global [%r9], [%rd6], 16;", "reads outside of all allocations: 16 bytes", 8},
		{"as much of a copy as is there", "ld.global.u32 %r5, [%rd6]; mov.u32 %r9, smem; cp.async.ca.shared.global [%r9], [%rd6], 16, 8;", "", 8},
	} {
		_, err := launched(fmt.Sprintf("mov.u64 %%rd6, %d; %s", at, c.code), numbered(1), func(l *Launch) { l.Memory.Add(at, c.bytes) })
		if text := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(text, c.want) && c.want != "" {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	runtime.KeepAlive(short)
}
