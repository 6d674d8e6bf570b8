package cu

import "sync"

// errs recycles the channels of Do, so that replaying a step does not allocate.
var errs = sync.Pool{New: func() any { return make(chan error, 1) }}

// Stream is a queue of device work, which runs in order.
type Stream uintptr

// Event marks a position in a stream.
type Event uintptr

const nonBlocking = 1 // a stream that does not wait for the legacy default stream

// NewStream creates a stream. It must run inside Do.
func (c *Context) NewStream() (Stream, error) {
	var s uintptr
	err := c.check("cuStreamCreate", c.c.StreamCreate(&s, nonBlocking))
	return Stream(s), err
}

// FreeStream destroys a stream. It must run inside Do.
func (c *Context) FreeStream(s Stream) error {
	return c.check("cuStreamDestroy", c.c.StreamDestroy(uintptr(s)))
}

// Wait waits until all queued work is done and returns faults of its kernels. It must run inside
// Do.
func (c *Context) Wait(s Stream) error {
	return c.check("cuStreamSynchronize", c.step(c.s.StreamSync, uintptr(s), 0, 0, 0))
}

// NewEvent creates an event. It must run inside Do.
func (c *Context) NewEvent() (Event, error) {
	var e uintptr
	err := c.check("cuEventCreate", c.c.EventCreate(&e, 0))
	return Event(e), err
}

// FreeEvent destroys an event. It must run inside Do.
func (c *Context) FreeEvent(e Event) error {
	return c.check("cuEventDestroy", c.c.EventDestroy(uintptr(e)))
}

// Record puts the event after the work that is queued on s. It must run inside Do.
func (c *Context) Record(e Event, s Stream) error {
	return c.check("cuEventRecord", c.step(c.s.EventRecord, uintptr(e), uintptr(s), 0, 0))
}

// After makes work that is queued on s later wait for an event. An event that was never recorded
// counts as passed. It must run inside Do.
func (c *Context) After(e Event, s Stream) error {
	return c.check("cuStreamWaitEvent", c.step(c.s.StreamWait, uintptr(s), uintptr(e), 0, 0))
}

const notReady = 600 // CUDA_ERROR_NOT_READY

// Passed reports whether the event has passed, without waiting. It must run inside Do.
func (c *Context) Passed(e Event) (bool, error) {
	r := c.step(c.s.EventQuery, uintptr(e), 0, 0, 0)
	if r == notReady {
		return false, nil
	}
	return true, c.check("cuEventQuery", r)
}

// Reach waits until the event has passed. It must run inside Do.
func (c *Context) Reach(e Event) error {
	return c.check("cuEventSynchronize", c.step(c.s.EventSync, uintptr(e), 0, 0, 0))
}

// Elapsed waits for end and returns the milliseconds between two events. It must run inside Do.
func (c *Context) Elapsed(start, end Event) (float32, error) {
	if err := c.Reach(end); err != nil {
		return 0, err
	}
	var ms float32
	err := c.check("cuEventElapsedTime", c.c.EventElapsed(&ms, uintptr(start), uintptr(end)))
	return ms, err
}
