package device

import (
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, name := range []string{"cpu"} {
		dev, err := Open(name, Options{Workers: 1, Set: "go"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasPrefix(dev.Name(), "cpu") {
			t.Errorf("%s opened %s", name, dev.Name())
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  Options
		want string
	}{
		{"tpu", Options{}, "unknown device"},
		{"", Options{}, "unknown device"},
		{"cpu:0", Options{}, "unknown device"},
		{"cpu", Options{Precision: "tf32"}, "for GPUs"},
		{"cpu", Options{Precision: "fp8"}, "fp8"},
		{"cpu", Options{Set: "amx"}, "amx"}, // tiles have no fp32
		{"cuda:x", Options{}, "cuda:0"},
		{"cuda:-1", Options{}, "cuda:0"},
		{"cpu", Options{Workers: -1}, "workers is -1"},
		{"cpu", Options{Set: "mmx"}, "mmx"},
	} {
		_, err := Open(c.name, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("open %q %+v: %v; want one line with %q", c.name, c.opt, err, c.want)
		}
	}
}
