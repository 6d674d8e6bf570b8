// Package e2e has the tests of the whole program: it is built once and run as a user runs it, in
// processes of its own. Here are tests that train, serve, start ranks, kill, resume or drive a
// browser; tests of one verb's words and flags stand beside the verb in cmd/haul and call it in
// their own process.
//
// What a reader could break: the tests import nothing of cmd/haul, which no package can, so Go does
// not know that their results depend on it. program reads the folders of the source, which makes
// them a part of what go test keeps results by.
package e2e
