package cuda

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"haul/internal/kernel"
)

// TestEmbedGradPaths: which kernel makes the gradient of a shape's tables, and in how many blocks.
func TestEmbedGradPaths(t *testing.T) {
	for _, c := range []struct {
		name      string
		precision Precision
		hopper    bool
		width     int
		tables    []int
		kernel    string
		grid      dim3
	}{
		{"the agent's", BF16, true, 128, []int{164, 81, 81, 2}, "embed_products", dim3{64, 2, 1}},
		{"one block's tables", BF16, true, 128, []int{100, 92}, "embed_products", dim3{128, 1, 1}},
		{"more tables than two blocks keep", BF16, true, 128, []int{300, 85}, "embed_grad4", dim3{128, 1, 1}},
		{"another width", BF16, true, 64, []int{164, 81}, "embed_grad4", dim3{256, 1, 1}},
		{"positions of a long context", BF16, true, 128, []int{9, 81, 1024}, "embed_grad_places", dim3{32, 16, 1}},
		{"a row for every token", BF16, true, 128, []int{1024 * 164}, "embed_grad_places", dim3{32, 16, 1}},
		{"a row more", BF16, true, 128, []int{1024*164 + 1}, "embed_grad_places", dim3{32, 16, 1}},
		{"a row less", BF16, true, 128, []int{1024*164 - 1}, "embed_grad4", dim3{16, 4, 96}},
		{"fp32", FP32, true, 128, []int{164, 81}, "embed_grad4", dim3{128, 1, 1}},
		{"an older card", BF16, false, 128, []int{164, 81}, "embed_grad4", dim3{128, 1, 1}},
	} {
		b := hopper(1024, c.precision)
		b.hopper = c.hopper
		batch, tokens := 1024, 164
		if last := c.tables[len(c.tables)-1]; last > 2*embedRows && len(c.tables) > 1 {
			batch, tokens = 164, last
		}
		o := &kernel.EmbedGrad{DY: tensor(batch, tokens, c.width), Index: tensor(batch, tokens, len(c.tables))}
		for i, rows := range c.tables {
			o.DTables = append(o.DTables, tensor(rows, c.width))
			o.DTables[i].Offset = i << 20 // a gradient of its own
		}
		ls, err := b.embedGrad(o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if ls[0].kernel != c.kernel || ls[0].grid != c.grid {
			t.Errorf("%s: %s, grid %v; want %s, %v", c.name, ls[0].kernel, ls[0].grid, c.kernel, c.grid)
		}
	}
}

// TestEmbedsManyFields: the tables of a token go to kernels eight at a time, each launch at its own
// fields and after the first adding to what is there; more fields than a token has are refused.
func TestEmbedsManyFields(t *testing.T) {
	for _, fields := range []int{1, 8, 9, 25, 63, 64, 65, embedFields, embedFields + 1} {
		b := hopper(64, BF16)
		o := &kernel.Embed{Y: tensor(4, 16, 128), Index: tensor(4, 16, fields)}
		g := &kernel.EmbedGrad{DY: tensor(4, 16, 128), Index: o.Index}
		for i := range fields {
			o.Tables = append(o.Tables, tensor(156, 128))
			g.DTables = append(g.DTables, tensor(156, 128))
			g.DTables[i].Offset = (1 + i) << 20
		}
		ls, err := b.embed(o)
		gs, errGrad := b.embedGrad(g)
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
		if n := ceil(fields, embedTables); len(ls) != n || len(gs) != 2*n {
			t.Errorf("%d fields: %d launches and %d of the gradient, want %d and %d", fields, len(ls), len(gs), n, 2*n)
			continue
		}
		for i, l := range ls {
			own := min(embedTables, fields-embedTables*i)
			if got, want := fmt.Sprint(l.args[1].(uint64)-b.addr(o.Index), l.args[10:13]), fmt.Sprint(32*i, []any{i32(own), i32(fields), flag(i > 0)}); got != want {
				t.Errorf("%d fields, launch %d: offset, fields, stride and adds %s, want %s", fields, i, got, want)
			}
			pass := gs[2*i]
			if got, want := fmt.Sprint(pass.args[2].(uint64)-b.addr(o.Index), pass.args[11:13]), fmt.Sprint(32*i, []any{i32(own), i32(fields)}); got != want {
				t.Errorf("%d fields, gradient %d: offset, fields and stride %s, want %s", fields, i, got, want)
			}
			if pass.block[0] > 1024 || pass.shared > b.maxShared {
				t.Errorf("%d fields, gradient %d: %d threads, %d bytes", fields, i, pass.block[0], pass.shared)
			}
		}
	}
}

// TestEmbedSizesMatchSource compares the sizes that Go knows with those of the kernels.
func TestEmbedSizesMatchSource(t *testing.T) {
	for file, sizes := range map[string]map[string]int{
		"embed.cu": {"stage": embedStage, "ring": embedRing},
		"embed_products.cu": {"width": embedWidth, "stage": embedTokens, "buffers": embedBuffers, "groups": embedGroups,
			"mostFields": embedTables},
	} {
		text, err := os.ReadFile("src/sequence/" + file)
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
