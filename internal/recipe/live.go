package recipe

import (
	"haul/internal/kernel"
	"haul/internal/recipe/agent"
)

// Agents that act in environments of another program, for `haul act`.
type (
	Live        = agent.Live
	LiveOptions = agent.LiveOptions
)

// ErrLine marks an error in a request to the agents. The agents remain usable after it.
var ErrLine = agent.ErrLine

// NewLive compiles a checkpoint's agent for a device, for the number of environments in o.
func NewLive(dev kernel.Device, path string, o LiveOptions) (*Live, error) {
	return agent.NewLive(dev, path, o)
}
