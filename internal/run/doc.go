// Package run trains a model of any recipe: it keeps the run folder and its lock, runs the loop,
// saves checkpoints, resumes, stops at gradients that are not finite, and reports events. `haul
// train` calls Run with a Recipe from internal/recipe, which defines the model and its training.
//
// A run is a function of its settings and of the device's arithmetic. Everything else that decides
// the next update (weights, moments, the device's State, the recipe's progress) is in the
// checkpoint; clocks, the number of workers and process state have no influence. A resumed run is
// therefore equal to an uninterrupted one, bit for bit.
//
// The loop prints nothing. It reports to a report.Listener.
package run
