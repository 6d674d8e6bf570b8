package sequence

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/bindtest"
)

// TestEmbedGradPaths: which kernel makes the gradient of a shape's tables, and in how many blocks.
func TestEmbedGradPaths(t *testing.T) {
	for _, c := range []struct {
		name      string
		precision bind.Precision
		hopper    bool
		width     int
		tables    []int
		kernel    string
		grid      bind.Dim3
	}{
		{"the agent's", bind.BF16, true, 128, []int{164, 81, 81, 2}, "embed_products", bind.Dim3{64, 2, 1}},
		{"one block's tables", bind.BF16, true, 128, []int{100, 92}, "embed_products", bind.Dim3{128, 1, 1}},
		{"more tables than two blocks keep", bind.BF16, true, 128, []int{300, 85}, "embed_grad4", bind.Dim3{128, 1, 1}},
		{"another width", bind.BF16, true, 64, []int{164, 81}, "embed_grad4", bind.Dim3{256, 1, 1}},
		{"positions of a long context", bind.BF16, true, 128, []int{9, 81, 1024}, "embed_grad_places", bind.Dim3{32, 16, 1}},
		{"a row for every token", bind.BF16, true, 128, []int{1024 * 164}, "embed_grad_places", bind.Dim3{32, 16, 1}},
		{"a row more", bind.BF16, true, 128, []int{1024*164 + 1}, "embed_grad_places", bind.Dim3{32, 16, 1}},
		{"a row less", bind.BF16, true, 128, []int{1024*164 - 1}, "embed_grad4", bind.Dim3{16, 4, 96}},
		{"fp32", bind.FP32, true, 128, []int{164, 81}, "embed_grad4", bind.Dim3{128, 1, 1}},
		{"an older card", bind.BF16, false, 128, []int{164, 81}, "embed_grad4", bind.Dim3{128, 1, 1}},
	} {
		b := bindtest.New(1024, c.precision)
		b.Hopper = c.hopper
		batch, tokens := 1024, 164
		if last := c.tables[len(c.tables)-1]; last > 2*EmbedRows && len(c.tables) > 1 {
			batch, tokens = 164, last
		}
		o := &kernel.EmbedGrad{DY: bindtest.Tensor(batch, tokens, c.width), Index: bindtest.Tensor(batch, tokens, len(c.tables))}
		for i, rows := range c.tables {
			o.DTables = append(o.DTables, bindtest.Tensor(rows, c.width))
			o.DTables[i].Offset = i << 20 // a gradient of its own
		}
		ls, err := embedGrad(b, o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if ls[0].Kernel != c.kernel || ls[0].Grid != c.grid {
			t.Errorf("%s: %s, grid %v; want %s, %v", c.name, ls[0].Kernel, ls[0].Grid, c.kernel, c.grid)
		}
	}
}

// TestEmbedsManyFields: the tables of a token go to kernels eight at a time, each launch at its own
// fields and after the first adding to what is there; more fields than a token has are refused.
func TestEmbedsManyFields(t *testing.T) {
	for _, fields := range []int{1, 8, 9, 25, 63, 64, 65, embedFields, embedFields + 1} {
		b := bindtest.New(64, bind.BF16)
		o := &kernel.Embed{Y: bindtest.Tensor(4, 16, 128), Index: bindtest.Tensor(4, 16, fields)}
		g := &kernel.EmbedGrad{DY: bindtest.Tensor(4, 16, 128), Index: o.Index}
		for i := range fields {
			o.Tables = append(o.Tables, bindtest.Tensor(156, 128))
			g.DTables = append(g.DTables, bindtest.Tensor(156, 128))
			g.DTables[i].Offset = (1 + i) << 20
		}
		ls, err := Embed(b, o)
		gs, errGrad := embedGrad(b, g)
		if fields > embedFields {
			want := "embed: 69 tables, the GPU sums at most 68"
			if err == nil || err.Error() != want || errGrad == nil {
				t.Errorf("%d fields: %v and %v, want %q and the like", fields, err, errGrad, want)
			}
			continue
		}
		if err != nil || errGrad != nil {
			t.Errorf("%d fields: %v, %v", fields, err, errGrad)
			continue
		}
		if n := bind.Ceil(fields, EmbedTables); len(ls) != n || len(gs) != 2*n {
			t.Errorf("%d fields: %d launches and %d of the gradient, want %d and %d", fields, len(ls), len(gs), n, 2*n)
			continue
		}
		for i, l := range ls {
			own := min(EmbedTables, fields-EmbedTables*i)
			if got, want := fmt.Sprint(l.Args[1].(uint64)-b.Addr(o.Index), l.Args[10:13]), fmt.Sprint(32*i, []any{bind.I32(own), bind.I32(fields), bind.Flag(i > 0)}); got != want {
				t.Errorf("%d fields, launch %d: offset, fields, stride and adds %s, want %s", fields, i, got, want)
			}
			pass := gs[2*i]
			if got, want := fmt.Sprint(pass.Args[2].(uint64)-b.Addr(o.Index), pass.Args[11:13]), fmt.Sprint(32*i, []any{bind.I32(own), bind.I32(fields)}); got != want {
				t.Errorf("%d fields, gradient %d: offset, fields and stride %s, want %s", fields, i, got, want)
			}
			if pass.Block[0] > 1024 || pass.Shared > b.MaxShared {
				t.Errorf("%d fields, gradient %d: %d threads, %d bytes", fields, i, pass.Block[0], pass.Shared)
			}
		}
	}
}

// TestEmbedSizesMatchSource compares the sizes that Go knows with those of the kernels.
func TestEmbedSizesMatchSource(t *testing.T) {
	for file, sizes := range map[string]map[string]int{
		"embed.cu": {"stage": embedStage, "ring": embedRing},
		"embed_products.cu": {"width": EmbedWidth, "stage": embedTokens, "buffers": embedBuffers, "groups": embedGroups,
			"mostFields": EmbedTables},
	} {
		text, err := os.ReadFile("src/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range sizes {
			m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindSubmatch(text)
			if m == nil {
				t.Errorf("%s has no %s", file, name)
				continue
			}
			if got, _ := strconv.Atoi(string(m[1])); got != want {
				t.Errorf("%s is %d in %s, %d here", name, got, file, want)
			}
		}
	}
}
