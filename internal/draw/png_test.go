package draw

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"
)

// A file holds the picture's pixels, for any size and for rows that differ.
func TestPNGHoldsThePixels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []image.Point{{1, 1}, {1, 5}, {5, 1}, {63, 17}, {300, 200}} {
		for name, at := range map[string]func(x, y int) color.RGBA{
			"noise": func(int, int) color.RGBA {
				return color.RGBA{uint8(rng.Uint32()), uint8(rng.Uint32()), uint8(rng.Uint32()), 255}
			},
			"blank": func(int, int) color.RGBA { return color.RGBA{255, 255, 255, 255} },
			"lines": func(x, y int) color.RGBA { return color.RGBA{uint8(x), uint8(y / 3 * 40), 7, 255} },
			"clear": func(x, y int) color.RGBA { return color.RGBA{uint8(x) / 2, 0, 0, 128} },
		} {
			// a part of a larger picture, whose rows are not contiguous in memory
			m := image.NewRGBA(image.Rect(0, 0, size.X+3, size.Y+2)).SubImage(image.Rect(2, 1, size.X+2, size.Y+1)).(*image.RGBA)
			for y := range size.Y {
				for x := range size.X {
					m.SetRGBA(m.Rect.Min.X+x, m.Rect.Min.Y+y, at(x, y))
				}
			}
			var file bytes.Buffer
			if err := writePNG(&file, m); err != nil {
				t.Fatal(err)
			}
			got, err := png.Decode(&file)
			if err != nil || got.Bounds().Size() != size {
				t.Fatalf("%s of %v: %v", name, size, err)
			}
			for y := range size.Y {
				for x := range size.X {
					want := color.NRGBAModel.Convert(m.At(m.Rect.Min.X+x, m.Rect.Min.Y+y))
					if c := color.NRGBAModel.Convert(got.At(x, y)); c != want {
						t.Fatalf("%s of %v: %v at %d, %d, want %v", name, size, c, x, y, want)
					}
				}
			}
		}
	}
}
