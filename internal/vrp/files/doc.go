// Package files reads and writes the formats of routing problems and solutions, one source file
// per format.
//
// What a reader could break: a format honours what it reads or refuses it by name. A key that is
// read and dropped leads to routes that break a rule of the user's.
package files
