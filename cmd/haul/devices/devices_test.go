package devices

import (
	"io"
	"testing"

	"haul/cmd/haul/cli"
)

func TestPrepareNeedsACard(t *testing.T) {
	if cli.ProbeCUDA().Driver {
		t.Skip("there is one here")
	}
	a := &app{&cli.App{Stdout: io.Discard, Stderr: io.Discard}}
	err := a.prepareCards(&cli.CUDAReport{Reason: "no CUDA driver: no such file"})
	if err == nil || err.Error() != "--prepare needs a graphics card: no CUDA driver: no such file" {
		t.Errorf("%v", err)
	}
}
