package recipe

import (
	"haul/internal/kernel"
	"haul/internal/recipe/agent"
)

// Agents in another program's loop, for `haul act`.
type (
	Live        = agent.Live
	LiveOptions = agent.LiveOptions
)

// ErrLine marks what is wrong with what agents were told, not with them.
var ErrLine = agent.ErrLine

// NewLive puts a checkpoint's agent on a device, so many times.
func NewLive(dev kernel.Device, path string, o LiveOptions) (*Live, error) {
	return agent.NewLive(dev, path, o)
}
