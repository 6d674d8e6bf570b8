// Command _shots takes the pictures of haul serve's page that docs/serve.md shows, with chromium. A
// server must be running:
//
//	haul serve --addr 127.0.0.1:8420 &
//	page='http://127.0.0.1:8420/routes'
//	go run ./scripts/_shots --url "$page?n=20&seed=4&capacity=30&method=search&with=policy" \
//		--size 1280x850 --out docs/pictures/serve-routes.png
//	go run ./scripts/_shots --url "$page?n=25&seed=9&capacity=40&method=search" \
//		--size 380x1060 --dark --out docs/pictures/serve-phone.png
//
// The picture is taken once --until, an expression in the page, is true and has been for --settle.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func main() {
	url := flag.String("url", "", "page to show")
	size := flag.String("size", "1280x850", "width and height in pixels; below 600 the page is a phone's")
	dark := flag.Bool("dark", false, "by night")
	until := flag.String("until", "document.querySelectorAll('#r-maps .row:not([hidden])').length > 0", "what must be true in the page")
	settle := flag.Duration("settle", 4*time.Second, "how long to wait after that")
	out := flag.String("out", "", "the .png to write")
	flag.Parse()
	if err := shoot(*url, *size, *dark, *until, *settle, *out); err != nil {
		fmt.Fprintln(os.Stderr, "shots:", err)
		os.Exit(1)
	}
}

func shoot(url, size string, dark bool, until string, settle time.Duration, out string) error {
	var width, height int64
	if _, err := fmt.Sscanf(size, "%dx%d", &width, &height); err != nil || url == "" || out == "" {
		return fmt.Errorf("--url, --out and --size 1280x850 are needed")
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox)...)
	defer stop()
	ctx, cancel := chromedp.NewContext(alloc)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, time.Minute)
	defer cancel()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	var shot []byte
	err := chromedp.Run(ctx, emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.Navigate(url), chromedp.Poll(until, nil), chromedp.Sleep(settle), chromedp.CaptureScreenshot(&shot))
	if err != nil {
		return err
	}
	whole, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, fewColours(whole)); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}

// fewColours keeps the 256 commonest colours, which is a quarter of the bytes; the others are
// shades at the edges of letters.
func fewColours(img image.Image) image.Image {
	count := map[color.Color]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[img.At(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return count[b] - count[a] })
	palette := color.Palette(most[:min(len(most), 256)])
	index := map[color.Color]uint8{}
	out := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := img.At(x, y)
			i, ok := index[c]
			if !ok {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}
