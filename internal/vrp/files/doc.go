// Package files has the formats of routing problems and solutions, one file per format, read and
// written side by side.
//
// What a reader could break: a format honours what it reads or refuses it by name. A key that is
// read and dropped gives routes that break a rule which the user stated.
package files
