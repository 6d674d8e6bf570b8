// Package run is a training run's life, whatever it trains: its folder and lock, the loop,
// interruption and resuming, non-finite gradients, checkpoints, and the events that listeners
// receive. The recipe says what is trained.
//
// What a reader could break: a run is a function of its settings and the device's arithmetic
// only. Everything that decides the next update (weights, moments, the device's State, a
// recipe's own progress) is in the checkpoint, and nothing else may decide it: no clock, no
// number of workers, no state of the process. That makes a resumed run equal, bit for bit.
//
// The loop never prints: it reports to a report.Listener.
package run
