// Package train holds the loops that learn: the policy gradient with its baselines and schedules,
// validation against the optimum, checkpoints and resuming, and the use of what was learned. The files
// that begin with ad_ are the in-context agent's: supervised on learning histories, then left to learn in its context.
//
// What a reader could break: a run is a function of its settings and the device's arithmetic alone. Everything that
// decides the next step (weights, moments, the device's State, temperature, baseline and its costs,
// counters of patience) is in the checkpoint, and nothing else may decide it: no clock, no number
// of workers, no state of the process. That is what makes a resumed run equal, bit for bit.
//
// The loops never print. They tell a Listener or an ADListener.
package train
