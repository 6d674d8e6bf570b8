package attention

import (
	"haul/internal/kernel"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestBoundsMatchSource compares the limits of the binders with those that the kernels are
// built for.
func TestBoundsMatchSource(t *testing.T) {
	for _, c := range []struct {
		file, pattern string
		want          int
	}{
		{"bf16_attention.cu", `made_16, 16, MADE, (\d+)`, bf16Most}, {"bf16_attention.cu", `attention_16, 16, WHOLE, (\d+)`, bf16Most},
		{"bf16_attention.cu", `drop_16, 16, MASKED, (\d+)`, bf16Most}, {"bf16_attention.cu", `attention_32, 32, WHOLE, (\d+)`, bf16Warps},
		{"bf16_attention.cu", `attention_64, 64, WHOLE, (\d+)`, bf16Warps},
		{"bf16_attention_piped.cu", `maxWarps = (\d+)`, pipedWarps}, {"bf16_attention_piped.cu", `tile = (\d+)`, pipedTile},
		{"bf16_attention_piped.cu", `slots = (\d+)`, pipedSlots}, {"bf16_attention_piped.cu", `tenth_16, (\d+)`, int(PipedRate)},
		{"bf16_attention_piped_held.cu", `warps = (\d+)`, pipedHeldWarps}, {"bf16_attention_piped_held.cu", `tenth_16, (\d+)`, int(PipedRate)},
		{"bf16_attention_grad.cu", `group = (\d+)`, bf16Group},
		{"bf16_attention_long.cu", `maxWarps = (\d+)`, longWarps}, {"bf16_attention_long.cu", `tile = (\d+)`, longTile},
		{"bf16_attention_long.cu", `stages = (\d+)`, longStages}, {"bf16_attention_long_grad.cu", `group = (\d+)`, bf16Group},
		{"bf16_attention_long_grad.cu", `ahead = HD == 64 \? 1 : (\d+)`, longAhead}, {"bf16_attention_long_grad.cu", `long_grad_32, 32, (\d+)`, bf16Head{wide: 32}.gradWarps()},
		{"bf16_attention_long_grad.cu", `long_grad_16, 16, (\d+)`, bf16Head{wide: 16}.gradWarps()}, {"bf16_attention_long_grad.cu", `long_grad_kept_16, 16, (\d+)`, bf16Head{wide: 16}.gradWarps()},
		{"bf16_attention_long_grad.cu", `long_grad_64, 64, (\d+)`, bf16Head{wide: 64}.gradWarps()}, {"bf16_attention_long_grad.cu", `gatherers = (\d+)`, statsBlock},
		{"bf16_attention_short.cu", `HD = (\d+)`, shortWidth}, {"bf16_attention_short.cu", `each = (\d+)`, ShortHeads},
		{"bf16_attention_short.cu", `share = (\d+)`, shortThreads / 32 / ShortHeads}, {"bf16_attention_short.cu", `mostTokens = (\d+)`, ShortTokens},
		{"bf16_attention_grad_short.cu", `HD = (\d+)`, shortWidth}, {"bf16_attention_grad_short.cu", `group = (\d+)`, bf16Group},
		{"bf16_attention_grad_short.cu", `warps = (\d+)`, shortGradWarp}, {"bf16_attention_grad_short.cu", `mostTokens = (\d+)`, ShortTokens},
	} {
		source, err := os.ReadFile("src/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(c.pattern).FindSubmatch(source)
		if m == nil {
			t.Errorf("%s has no %s", c.file, c.pattern)
			continue
		}
		if got, _ := strconv.Atoi(string(m[1])); got != c.want {
			t.Errorf("%s: %s is %d, the binder has %d", c.file, c.pattern, got, c.want)
		}
	}
}

// TestLongRows: rows that a block holds are held where that is faster, longer ones streamed, and no
// length is too much for a card with 227 KB of shared memory for a block.
func TestLongRows(t *testing.T) {
	const most = 227 << 10
	for _, c := range []struct{ columns, held, heldGrad int }{{8, 1535, 511}, {16, 1535, 511}, {24, 1535, 808}, {32, 1535, 808}, {40, 896, 782}, {64, 896, 782}} {
		for _, tokens := range []int{1, c.heldGrad, c.heldGrad + 1, c.held, c.held + 1, 8192, 65536} {
			s, err := NewBF16Head(&kernel.CausalAttention{}, tokens, 4*c.columns, 4)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.streams(most), tokens > c.held; got != want {
				t.Errorf("%d tokens with heads of %d columns: streamed %v", tokens, c.columns, got)
			}
			if got, want := s.streamsGrad(most), tokens > c.heldGrad; got != want {
				t.Errorf("%d tokens with heads of %d columns: the gradient streamed %v", tokens, c.columns, got)
			}
			if n := max(s.longShared(), s.longSharedGrad()); n > most {
				t.Errorf("heads of %d columns take %d bytes", c.columns, n)
			}
		}
	}
	if _, err := NewBF16Head(&kernel.CausalAttention{}, 10, 4*72, 4); err == nil {
		t.Error("heads of 72 columns are taken")
	}
}

// TestShares: heads that fill the card have a block each; few long ones, and those left over, are
// shared out among blocks, none of which is left without keys.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		batch, tokens, columns int
		want                   shareOut
	}{
		{164, 1024, 16, shareOut{1312, 0, 1}}, {132, 1024, 16, shareOut{1056, 0, 1}}, {41, 4096, 16, shareOut{264, 64, 17}}, {33, 4096, 16, shareOut{264, 0, 1}},
		{57, 1300, 16, shareOut{264, 192, 6}}, {58, 1300, 16, shareOut{464, 0, 1}}, {32, 4096, 16, shareOut{0, 256, 5}}, {1, 4032, 16, shareOut{0, 8, 21}},
		{1, 4033, 16, shareOut{0, 8, 22}}, {1, 4096, 64, shareOut{0, 8, 32}}, {20, 4096, 64, shareOut{132, 28, 32}}, {1, 192, 16, shareOut{8, 0, 1}}, {1, 193, 16, shareOut{0, 8, 2}},
	} {
		s, err := NewBF16Head(&kernel.CausalAttention{}, c.tokens, 8*c.columns, 8)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.longGradShare(8*c.batch, 132); got != c.want {
			t.Errorf("%d rows of %d tokens, heads of %d columns: %v, want %v", c.batch, c.tokens, c.columns, got, c.want)
		}
	}
}

// A block for every whole head, and all shares of the others.
func TestBlocksOfShares(t *testing.T) {
	if got := (shareOut{264, 64, 17}).blocks(); got != 1352 {
		t.Errorf("%d blocks, want 264 and 64 times 17", got)
	}
}

// TestHeldShares: of heads whose keys a block holds, those left over are shared out among as many
// blocks as fill the card, and every warp has queries.
func TestHeldShares(t *testing.T) {
	for _, c := range []struct {
		batch, tokens int
		want          shareOut
	}{
		{164, 1024, shareOut{1188, 124, 3}}, {99, 1024, shareOut{792, 0, 1}}, {96, 1024, shareOut{768, 0, 1}}, {74, 1024, shareOut{396, 196, 2}}, {1, 1024, shareOut{0, 8, 16}},
		{50, 769, shareOut{396, 4, 12}}, {164, 1472, shareOut{1312, 0, 1}},
	} {
		s, err := NewBF16Head(&kernel.CausalAttention{}, c.tokens, 8*16, 8)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.pipedHeldShare(8*c.batch, 132, 227<<10); got != c.want {
			t.Errorf("%d rows of %d tokens: %v, want %v", c.batch, c.tokens, got, c.want)
		}
	}
}
