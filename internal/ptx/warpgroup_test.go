package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// groupProduct is a kernel of one warpgroup: it copies its operands to shared memory by the copy
// engine, multiplies once, adds to sums of 2, and stores the registers of every thread.
type groupProduct struct {
	columns                  int
	tf32                     bool
	left                     bool // A in registers
	transposedA, transposedB bool
	add                      bool
	edit                     func(text string) string
}

const (
	operandA  = 1024 // in shared memory, after the barriers
	operandB  = operandA + 64*128*2
	operands0 = operandB + 256*128
)

func (c groupProduct) name() string {
	k, kind := 16, "bf16.bf16"
	if c.tf32 {
		k, kind = 8, "tf32.tf32"
	}
	return fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.f32.%s", c.columns, k, kind)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// list returns "{%x0, %x1, ...}".
func list(register string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%%%s%d", register, i))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func (c groupProduct) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, `.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1,
	.param .u64 k_param_2,
	.param .u64 k_param_3
)
{
	.reg .pred %%p<10>;
	.reg .b32 %%r<60>;
	.reg .f32 %%f<200>;
	.reg .b64 %%rd<20>;
	ld.param.u64 %%rd1, [k_param_0];
	ld.param.u64 %%rd2, [k_param_1];
	ld.param.u64 %%rd3, [k_param_2];
	ld.param.u64 %%rd4, [k_param_3];
	mov.u32 %%r0, %%tid.x;
	mov.u32 %%r1, smem;
	setp.ne.s32 %%p1, %%r0, 0;
	@%%p1 bra ready;
	mbarrier.init.shared::cta.b64 [%%r1], 1;
	fence.mbarrier_init.release.cluster;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], %d;
	add.s32 %%r2, %%r1, %d;
	mov.u32 %%r3, %d;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%%r2], [%%rd1], %%r3, [%%r1];
ready:
	bar.sync 0;
	{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%%r1], 0; @!done bra again;}
	setp.eq.s32 %%p2, %d, 1;
`, operands0-operandA, operandA, operands0-operandA, bit(c.add))
	a := "%rd3"
	if c.left { // four words of each thread follow the operands
		a = "{%r10, %r11, %r12, %r13}"
		fmt.Fprintf(&b, "mul.wide.u32 %%rd5, %%r0, 16; add.s64 %%rd5, %%rd5, %%rd1; ld.global.v4.u32 {%%r10, %%r11, %%r12, %%r13}, [%%rd5+%d];\n", operands0-operandA)
	}
	for i := range c.columns / 2 {
		fmt.Fprintf(&b, "mov.f32 %%f%d, 0f40000000;\n", i)
	}
	turns := ""
	if !c.tf32 && c.left {
		turns = fmt.Sprintf(", %d", bit(c.transposedB))
	} else if !c.tf32 {
		turns = fmt.Sprintf(", %d, %d", bit(c.transposedA), bit(c.transposedB))
	}
	fmt.Fprintf(&b, "wgmma.fence.sync.aligned;\n%s %s, %s, %%rd4, %%p2, 1, 1%s;\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
		c.name(), list("f", c.columns/2), a, turns)
	fmt.Fprintf(&b, "mul.wide.u32 %%rd6, %%r0, %d; add.s64 %%rd6, %%rd6, %%rd2;\n", 2*c.columns)
	for i := range c.columns / 2 {
		fmt.Fprintf(&b, "st.global.f32 [%%rd6+%d], %%f%d;\n", 4*i, i)
	}
	b.WriteString("ret;\n}\n")
	if c.edit != nil {
		return c.edit(b.String())
	}
	return b.String()
}

// tilePlace returns the offset of byte b of row r in swizzled rows of 128 bytes, as in the kernels'
// own stores: 16-byte vector q of row r is at q^r%8.
func tilePlace(r, b int) int { return r*128 + (b/16^r%8)*16 + b%16 }

// run returns the sums by row and column, and the expected ones.
func (c groupProduct) run(t *testing.T, change func(*Launch)) (got, want [][]float64, err error) {
	t.Helper()
	k, width := 16, 2
	if c.tf32 {
		k, width = 8, 4
	}
	random := rand.New(rand.NewPCG(uint64(c.columns), 3))
	room := make([]byte, operands0-operandA+128*16+16)
	room = room[-int(uintptr(unsafe.Pointer(&room[0])))&15:]
	matrix := func(rows int) [][]float64 {
		m := make([][]float64, rows)
		for i := range m {
			for range k {
				m[i] = append(m[i], float64(random.IntN(17)-8))
			}
		}
		return m
	}
	put := func(at int, v float64) {
		if c.tf32 {
			binary.LittleEndian.PutUint32(room[at:], math.Float32bits(float32(v))|0x1fff) // the low bits are ignored
		} else {
			binary.LittleEndian.PutUint16(room[at:], uint16(toBF16(float32(v))))
		}
	}
	// terms begin 32 bytes into a row of 128, or with the second sixteen rows
	lay := func(base int, m [][]float64, transposed bool) {
		for r := range m {
			for i := range k {
				if !transposed {
					put(base+tilePlace(r, 32+width*i), m[r][i])
				} else {
					put(base+r/64*(64*128)+tilePlace(16+i, r%64*2), m[r][i])
				}
			}
		}
	}
	a, b := matrix(64), matrix(c.columns)
	lay(0, a, c.transposedA)
	lay(operandB-operandA, b, c.transposedB)
	describe := func(at int, transposed bool) uint64 {
		if transposed {
			return 1<<62 | 64<<32 | (64*128>>4)<<16 | uint64(at+16*128)>>4
		}
		return 1<<62 | 64<<32 | 1<<16 | uint64(at+32)>>4
	}
	if c.left {
		for thread := range 128 {
			for j := range 4 {
				v := uint32(0)
				for h := range 4 / width {
					row, col := fragment("a", k, 8*width, thread%32, j, h)
					if e := a[thread/32*16+row][col]; c.tf32 {
						v = f(float32(e)) | 0x1fff
					} else {
						v |= toBF16(float32(e)) << (16 * h)
					}
				}
				binary.LittleEndian.PutUint32(room[operands0-operandA+16*thread+4*j:], v)
			}
		}
	}
	out := make([]float32, 128*c.columns/2)
	m, err := Parse([]byte(c.text()))
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Compile("k")
	if err != nil {
		return nil, nil, err
	}
	var memory Memory
	params := []uint64{uint64(uintptr(unsafe.Pointer(&room[0]))), uint64(uintptr(unsafe.Pointer(&out[0]))), describe(sharedBase+operandA, c.transposedA), describe(sharedBase+operandB, c.transposedB)}
	memory.Add(params[0], len(room)&^15)
	memory.Add(params[1], 4*len(out))
	var values [][]byte
	for i := range params {
		values = append(values, unsafe.Slice((*byte)(unsafe.Pointer(&params[i])), 8))
	}
	l := Launch{Program: p, Grid: [3]int{1, 1, 1}, Block: [3]int{128, 1, 1}, Dynamic: operands0, Memory: &memory, Limit: 1 << 20, Params: p.Lay(values)}
	if change != nil {
		change(&l)
	}
	_, err = Run(l)
	runtime.KeepAlive(room)
	for row := range 64 {
		got, want = append(got, make([]float64, c.columns)), append(want, make([]float64, c.columns))
		for col := range c.columns {
			for i := range k {
				want[row][col] += a[row][i] * b[col][i]
			}
			want[row][col] += 2 * float64(bit(c.add))
		}
	}
	for thread := range 128 {
		for e := range c.columns / 2 {
			row := thread/32*16 + thread%32/4 + e%4/2*8
			got[row][e/4*8+thread%4*2+e%2] = float64(out[thread*c.columns/2+e])
		}
	}
	return got, want, err
}

// TestWarpgroupProducts compares every supported shape with three loops: operands by rows and
// transposed, in registers and in shared memory, with and without earlier sums.
func TestWarpgroupProducts(t *testing.T) {
	for _, n := range []int{8, 64, 128, 136, 256} {
		for i := range 16 {
			c := groupProduct{columns: n, add: i&1 != 0, left: i&2 != 0, transposedB: i&4 != 0, transposedA: i&8 != 0}
			if c.left && c.transposedA {
				c.tf32, c.transposedA, c.transposedB = true, false, false
			}
			if c.transposedB && n > 128 && n%64 != 0 && n != 136 {
				continue
			}
			got, want, err := c.run(t, func(l *Launch) { l.Races = true })
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			for row := range want {
				for col := range want[row] {
					if got[row][col] != want[row][col] {
						t.Fatalf("%+v: row %d, column %d is %v, want %v", c, row, col, got[row][col], want[row][col])
					}
				}
			}
		}
	}
}

// replace returns an edit of a kernel's text, which must contain from.
func replace(t *testing.T, from, to string) func(string) string {
	return func(text string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("no %q in\n%s", from, text)
		}
		return strings.Replace(text, from, to, 1)
	}
}

// TestWarpgroupFaults: forbidden uses of asynchronous copies and products are errors with a
// description, or leave NaNs.
func TestWarpgroupFaults(t *testing.T) {
	const wait, commit, ask = "wgmma.wait_group.sync.aligned 0;", "wgmma.commit_group.sync.aligned;", "@!done bra again;"
	for what, c := range map[string]struct{ from, to, says string }{
		"no wait for the copy":             {ask, "", ""},
		"no wait for the products":         {wait, "", ""},
		"no commit":                        {commit, "", "is not waited for"},
		"no fence":                         {"wgmma.fence.sync.aligned;", "", "no wgmma.fence between"},
		"a fence too early":                {"mov.u32 %r1, smem;", "mov.u32 %r1, smem; wgmma.fence.sync.aligned; mov.u32 %r59, %r10;", ""},
		"sums written in flight":           {wait, "add.f32 %f3, %f3, %f4;" + wait, "written before"},
		"sums set in flight":               {wait, "mov.f32 %f3, 0f00000000;" + wait, "written before"},
		"sums read in flight":              {wait, "add.f32 %f99, %f3, %f4;" + wait + "mov.f32 %f3, %f99;", ""},
		"operands written in flight":       {wait, "st.shared.u32 [%r1+17444], %r0;" + wait, "written before it was waited for"},
		"a group left in flight":           {wait, "wgmma.wait_group.sync.aligned 1;", "is not waited for"},
		"stores without a proxy's fence":   {"wgmma.fence", "st.shared.u32 [%r1+1060], %r0; bar.sync 0; wgmma.fence", "without fence.proxy.async"},
		"no init":                          {"mbarrier.init.shared::cta.b64 [%r1], 1;", "", "nobody has initialised"},
		"two arrivals":                     {"[%r1], 1;", "[%r1], 2;", "waits forever"},
		"a second arrival":                 {"ready:", "mbarrier.arrive.shared::cta.b64 _, [%r1]; ready:", "has all 1 arrivals"},
		"no fence of the init":             {"fence.mbarrier_init.release.cluster;", "", "does not see"},
		"too few bytes expected":           {"_, [%r1], 49152;", "_, [%r1], 49136;", "waits forever"},
		"too many bytes expected":          {"_, [%r1], 49152;", "_, [%r1], 49168;", "waits forever"},
		"the wrong parity":                 {"[%r1], 0; @", "[%r1], 1; @", ""},
		"a copy to an odd place":           {"add.s32 %r2, %r1, 1024;", "add.s32 %r2, %r1, 1032;", "multiple of 16"},
		"a copy past the allocation":       {"[%r2], [%rd1]", "[%r2], [%rd1+4096]", "outside of all allocations"},
		"an unknown descriptor":            {"ld.param.u64 %rd4, [k_param_3];", "ld.param.u64 %rd4, [k_param_3]; xor.b64 %rd4, %rd4, -9223372036854775808;", "described by"},
		"swapped descriptors":              {"%rd3, %rd4, %p2", "%rd4, %rd3, %p2", "!"},
		"another stride":                   {"ld.param.u64 %rd4, [k_param_3];", "ld.param.u64 %rd4, [k_param_3]; add.s64 %rd4, %rd4, 137438953472;", "!"},
		"a descriptor 32 bytes on":         {"ld.param.u64 %rd4, [k_param_3];", "ld.param.u64 %rd4, [k_param_3]; add.s64 %rd4, %rd4, 2;", "!"},
		"warps that multiply otherwise":    {"setp.eq.s32 %p2", "mul.wide.u32 %rd7, %r0, 16777216; shr.u64 %rd7, %rd7, 29; shl.b64 %rd7, %rd7, 6; add.s64 %rd3, %rd3, %rd7; setp.eq.s32 %p2", "another product"},
		"lanes that begin anew by oneself": {"setp.eq.s32 %p2, 1, 1;", "setp.eq.s32 %p2, %r0, 1;", "alone"},
	} {
		p := groupProduct{columns: 64, add: true, edit: replace(t, c.from, c.to)}
		if what == "no wait for the copy" { // a copy into zeros
			zero := "mov.u32 %r4, 0; mul.lo.s32 %r5, %r0, 384; add.s32 %r5, %r5, %r1;\n"
			for i := range 24 {
				zero += fmt.Sprintf("st.shared.v4.u32 [%%r5+%d], {%%r4, %%r4, %%r4, %%r4};\n", operandA+16*i)
			}
			p.edit = func(text string) string {
				return replace(t, c.from, c.to)(replace(t, "setp.ne.s32 %p1", zero+"fence.proxy.async.shared::cta; bar.sync 0; setp.ne.s32 %p1")(text))
			}
		}
		if what == "a fence too early" {
			p.left = true
			p.edit = func(text string) string {
				return replace(t, c.from, c.to)(replace(t, "wgmma.fence.sync.aligned;", "")(text))
			}
			c.says = "no wgmma.fence between"
		}
		got, want, err := p.run(t, nil)
		switch {
		case c.says == "" && err == nil || c.says == "!":
			same, nan := true, false
			for row := range want {
				for col := range want[row] {
					same = same && got[row][col] == want[row][col]
					nan = nan || got[row][col] != got[row][col]
				}
			}
			if same || c.says == "" && !nan {
				t.Errorf("%s: sums as if nothing were wrong, or no NaN: %v, %v", what, same, nan)
			}
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
}

// TestBoxes: a box of a tensor arrives in swizzled rows of 128 bytes, with zeros outside of the
// tensor on each side.
func TestBoxes(t *testing.T) {
	const rows, cols, blocks = 11, 80, 3
	random := rand.New(rand.NewPCG(4, 4))
	room := make([]uint16, blocks*rows*cols+64)
	for i := range room {
		room[i] = uint16(random.Uint32())
	}
	data := make([]uint64, TensorMapBytes/8+8)
	from := -int(uintptr(unsafe.Pointer(&data[0]))/8) & 7
	start := -int(uintptr(unsafe.Pointer(&room[0]))/2) & 7
	out := aligned(128)
	for _, rank := range []int{2, 3} {
		tensor := TensorMap{Address: uint64(uintptr(unsafe.Pointer(&room[start]))), Rank: rank, Sizes: [3]uint64{cols, rows, 1}, Strides: [2]uint64{2 * cols, 0}, Box: [3]uint32{64, 16, 1}}
		if rank == 3 {
			tensor.Sizes[2], tensor.Strides[1] = blocks, 2*cols*rows
		}
		for _, at := range [][3]int{{0, 0, 0}, {16, 5, 2}, {-3, -2, 1}, {79, 10, 0}, {80, 0, 0}, {0, 0, 3}} {
			if rank == 2 && at[2] > 0 {
				continue
			}
			tensor.Encode((*[TensorMapBytes]byte)(unsafe.Pointer(&data[from])))
			index, third := "{%r2, %r3}", ""
			if rank == 3 {
				index, third = "{%r2, %r3, %r4}", fmt.Sprintf("mov.u32 %%r4, %d;", at[2])
			}
			text := fmt.Sprintf(`.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k(.param .u64 a, .param .u64 b)
{
	.reg .pred %%p<4>; .reg .b32 %%r<20>; .reg .b64 %%rd<8>;
	ld.param.u64 %%rd1, [a]; ld.param.u64 %%rd2, [b];
	mov.u32 %%r0, %%tid.x; mov.u32 %%r1, smem; add.s32 %%r10, %%r1, 2048;
	setp.ne.s32 %%p1, %%r0, 0; mov.u32 %%r2, %d; mov.u32 %%r3, %d; %s
	@%%p1 bra ready;
	mbarrier.init.shared::cta.b64 [%%r10], 1;
	fence.mbarrier_init.release.cluster;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r10], 2048;
	cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes [%%r1], [%%rd1, %s], [%%r10];
ready:
	bar.sync 0;
	{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%%r10], 0; @!done bra again;}
	shl.b32 %%r5, %%r0, 4; add.s32 %%r5, %%r5, %%r1;
	ld.shared.v4.u32 {%%r6, %%r7, %%r8, %%r9}, [%%r5];
	mul.wide.u32 %%rd3, %%r0, 16; add.s64 %%rd3, %%rd3, %%rd2;
	st.global.v4.u32 [%%rd3], {%%r6, %%r7, %%r8, %%r9};
	ret;
}
`, at[0], at[1], third, rank, index)
			m, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Compile("k")
			if err != nil {
				t.Fatal(err)
			}
			var memory Memory
			params := [2]uint64{uint64(uintptr(unsafe.Pointer(&data[from]))), uint64(uintptr(unsafe.Pointer(&out[0])))}
			memory.Add(params[0], TensorMapBytes)
			memory.Add(params[1], 16*len(out))
			memory.Add(tensor.Address, 2*blocks*rows*cols)
			if _, err = Run(Launch{Program: p, Grid: [3]int{1, 1, 1}, Block: [3]int{128, 1, 1}, Dynamic: 2056, Memory: &memory, Limit: 1 << 16,
				Params: unsafe.Slice((*byte)(unsafe.Pointer(&params)), 16)}); err != nil {
				t.Fatal(err)
			}
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), 2048)
			for y := range 16 {
				for x := range 64 {
					var want uint16
					col, row := at[0]+x, at[1]+y
					if col >= 0 && col < cols && row >= 0 && row < rows && at[2] < blocks {
						want = room[start+(at[2]*rows+row)*cols+col]
					}
					if got := binary.LittleEndian.Uint16(bytes[tilePlace(y, 2*x):]); got != want {
						t.Fatalf("rank %d, box at %v: row %d, column %d is %#x, want %#x", rank, at, y, x, got, want)
					}
				}
			}
		}
	}
	runtime.KeepAlive(room)
}

// TestRegistersMove: warps that request more registers wait until others have released theirs.
func TestRegistersMove(t *testing.T) {
	body := func(less string) string {
		return "setp.lt.u32 %p1, %r0, 128; @%p1 bra producer; setmaxnreg.inc.sync.aligned.u32 240; mov.b32 %r5, 1; bra done;\nproducer: " + less + " mov.b32 %r5, 2;\ndone:\n"
	}
	got, err := launched(body("setmaxnreg.dec.sync.aligned.u32 24;"), make([]words, 384), nil)
	if err != nil || got[0][0] != 2 || got[383][0] != 1 {
		t.Errorf("%v, %v", got[0], err)
	}
	for less, says := range map[string]string{"": "waits forever", "setmaxnreg.dec.sync.aligned.u32 56;": "waits forever", "setmaxnreg.dec.sync.aligned.u32 200;": "asks for 200 registers"} {
		if _, err := launched(body(less), make([]words, 384), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", less, err, says)
		}
	}
}

// TestCopiesThatArrive: a thread's copies have completed when the phase that counts them is over,
// and not before.
func TestCopiesThatArrive(t *testing.T) {
	body := func(wait string) string {
		return `mov.u32 %r9, smem; add.s32 %r10, %r9, 512; setp.ne.u32 %p1, %r0, 0; @%p1 bra ready;
mbarrier.init.shared.b64 [%r10], 32;
ready: bar.sync 0;
shl.b32 %r11, %r0, 4; add.s32 %r11, %r11, %r9;
cp.async.cg.shared.global [%r11], [%rd4], 16;
cp.async.mbarrier.arrive.noinc.shared.b64 [%r10];
cp.async.cg.shared.global [%r11+1024], [%rd4], 16;
` + wait + `
xor.b32 %r12, %r11, 16; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r12]; ld.shared.u32 %r8, [%r12+1024];
`
	}
	in := make([]words, 32)
	for i := range in {
		in[i] = words{uint32(i), 1, 2, 3}
	}
	for _, races := range []bool{false, true} {
		got, err := launched(body("{.reg .pred done; again: mbarrier.test_wait.parity.shared.b64 done, [%r10], 0; @!done bra again;}"), in, func(l *Launch) { l.Races, l.Dynamic = races, 2048 })
		if err != nil || got[4] != (words{5, 1, 2, math.MaxUint32}) {
			t.Errorf("%v, %v", got[4], err)
		}
	}
	if got, err := launched(body(""), in, func(l *Launch) { l.Dynamic = 2048 }); err != nil || got[4][0] != math.MaxUint32 {
		t.Errorf("without a wait: %v, %v", got[4], err)
	}
}
