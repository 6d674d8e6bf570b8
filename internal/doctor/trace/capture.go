package trace

// Capture is a graph as its capture was recorded: the launches that became its nodes, in order,
// each with the operator and the modules around it. Names are texts, since another recording
// numbers its own.
type Capture struct {
	File     string
	Launches []CapturedLaunch
}

// CapturedLaunch is one node of a captured graph.
type CapturedLaunch struct {
	At      int64  // when it was captured
	Kernel  string // empty where the runtime does not tell
	Kind    CallKind
	Op      string // empty outside any operator
	Shapes  string
	Modules []string // around it, the outermost first
}
