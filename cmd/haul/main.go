// Command haul is the command line: a folder per verb, wiring only. What a verb does lives in
// internal/; here flags become arguments, results become words or JSON, and errors exit codes.
package main

import "haul/cmd/haul/root"

func main() { root.Main() }
