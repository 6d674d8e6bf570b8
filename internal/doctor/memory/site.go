package memory

import (
	"fmt"
	"path"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/pickle"
)

// Site is who asked for memory, read from the stack of an event.
type Site struct {
	Place     string // "model.py:22 forward", "autograd MmBackward0", or "no stack"
	Phase     Phase
	Loss      bool // inside cross entropy, log softmax or the negative log likelihood, or their gradients
	Workspace bool // scratch memory that cuBLAS keeps
}

// Phase is the part of a training step in which memory was asked for.
type Phase uint8

// The phases of a step.
const (
	Forward Phase = iota // everything that is neither of the other two
	Backward
	Optimizer
)

func (p Phase) String() string {
	return [...]string{"the forward pass", "the backward pass", "the optimizer's step"}[p]
}

// lossNames are parts of the names of functions that take logits to a loss, and of their gradients.
var lossNames = []string{"cross_entropy", "log_softmax", "nll_loss", "NllLoss", "LogSoftmaxBackward"}

// siteOf reads a stack, the innermost frame first. The place is the innermost line of Python
// outside installed packages; autograd's thread has no such line and is named by its node.
func siteOf(frames []any) *Site {
	s := &Site{}
	var node, inner string
	for _, v := range frames {
		f, ok := v.(*pickle.Dict)
		if !ok {
			continue
		}
		name, file := text(f, "name"), text(f, "filename")
		line, _ := whole(f, "line")
		switch {
		case strings.Contains(name, "torch::autograd::Engine::"):
			s.Phase = Backward
		case strings.Contains(file, "torch/optim/") && s.Phase != Backward:
			s.Phase = Optimizer
		case strings.Contains(name, "CUDABlas"), strings.Contains(name, "cublas"):
			s.Workspace = true
		}
		for _, part := range lossNames {
			s.Loss = s.Loss || strings.Contains(name, part)
		}
		if node == "" {
			node = autogradNode(name)
		}
		if !isPython(file) || line == 0 {
			continue
		}
		place := fmt.Sprintf("%s:%d %s", path.Base(strings.ReplaceAll(file, `\`, "/")), line, name)
		if inner == "" {
			inner = place
		}
		if s.Place == "" && !isInstalled(strings.ReplaceAll(file, `\`, "/")) {
			s.Place = place
		}
	}
	switch {
	case s.Workspace:
		s.Place = Workspace.String()
	case s.Place != "":
	case node != "":
		s.Place = "autograd " + node
	case inner != "":
		s.Place = inner
	default:
		s.Place = noStack
	}
	s.Place = phrase.Printable(s.Place)
	return s
}

const noStack = "no Python stack"

func isPython(file string) bool {
	return strings.HasSuffix(file, ".py") || strings.HasPrefix(file, "<ipython") || strings.Contains(file, "/ipykernel_")
}

// isInstalled reports whether a file belongs to an installed package or to Python itself.
func isInstalled(file string) bool {
	return strings.Contains(file, "/site-packages/") || strings.Contains(file, "/dist-packages/") ||
		strings.Contains(file, "/lib/python3") || strings.HasPrefix(file, "torch/") || strings.HasPrefix(file, "<frozen")
}

// autogradNode returns the node's name from a symbol such as
// torch::autograd::generated::MmBackward0::apply(...); "" for any other symbol.
func autogradNode(symbol string) string {
	head, _, ok := strings.Cut(symbol, "::apply(")
	if !ok || !strings.HasPrefix(head, "torch::autograd::") {
		return ""
	}
	return head[strings.LastIndex(head, ":")+1:]
}

func text(d *pickle.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}
