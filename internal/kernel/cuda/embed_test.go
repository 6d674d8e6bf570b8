package cuda

import (
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
		{"fp32", FP32, true, 128, []int{164, 81}, "embed_grad4", dim3{128, 1, 1}},
		{"an older card", BF16, false, 128, []int{164, 81}, "embed_grad4", dim3{128, 1, 1}},
	} {
		b := hopper(1024, c.precision)
		b.hopper = c.hopper
		batch, tokens := 1024, 164
		if last := c.tables[len(c.tables)-1]; last > 2*embedRows {
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
