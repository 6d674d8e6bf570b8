// Package ppo is the source learner: proximal policy optimization on one goal of Dark Room, an actor and a critic that share two
// layers, recorded once and replayed. Its learning histories are what the in-context agent is trained on.
package ppo
