package trace

// Capture is the capture of a graph: the launches that became its nodes, in order, each with its
// operator and modules. Names are strings, since each recording numbers its names separately.
type Capture struct {
	File     string
	Launches []CapturedLaunch
}

// CapturedLaunch is one node of a captured graph.
type CapturedLaunch struct {
	At      int64  // time of the capture
	Kernel  string // empty if the runtime does not report it
	Kind    CallKind
	Op      string // empty outside any operator
	Shapes  string
	Modules []string // enclosing modules, outermost first
}
