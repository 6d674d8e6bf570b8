package trace

import "testing"

// TestCollectivesAreSpelledOneWay covers all separators of words in a name.
func TestCollectivesAreSpelledOneWay(t *testing.T) {
	for s, want := range map[string]string{
		"AllReduce": "all_reduce", "all_reduce": "all_reduce", "all-reduce": "all_reduce", "ALL REDUCE": "all_reduce", "all-to-all": "all_to_all",
		"reduce-scatter": "reduce_scatter", "Send-Recv": "send_recv", "gossip": "other",
	} {
		if got := plainCollective(s, "other"); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

// TestStartsOfXplanes: a plane's field, and not a line of text that begins with a line break.
func TestStartsOfXplanes(t *testing.T) {
	for head, want := range map[string]bool{
		"\n\x20\x12\x05": false, "\n\x1e\x08\x01\x12": true, "\n\x1e\x08\x01": false, "\n\n{\"a\":1": false, "\n  {\"a\"": false, "\n{\"a\":1}": false, "\n[1,2,3]": false,
		"{\"traceEvents\"": false, "\x09\x1e\x08\x01\x12": false, "abcdef": false,
	} {
		if got := looksLikeXplane([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// TestBackendsNameACollective: the name of a library alone is no annotation of a collective.
func TestBackendsNameACollective(t *testing.T) {
	for s, want := range map[string]bool{"nccl:": false, "nccl:x": true, "nccl": false, "gloo:all_reduce": true, "xnccl:all_reduce": false} {
		if got := isBackend([]byte(s)); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestForeignCalls: the kind of a call follows from its name. A call with another name that only
// has work with its number is a launch.
func TestForeignCalls(t *testing.T) {
	for name, want := range map[string]CallKind{
		"urEnqueueMemBufferWrite": CallCopy, "urEnqueueMemBufferRead": CallCopy, "runtimeCopy": CallCopy, "urEventWait": CallWait, "deviceSynchronize": CallWait,
		"urQueueFinish": CallWait, "urUSMDeviceAlloc": CallAlloc, "urUSMFree": CallAlloc, "urEnqueueKernelLaunch": CallLaunch, "urContextGet": CallOther,
	} {
		if got := foreignKind([]byte(name), 0); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := foreignKind([]byte("urContextGet"), 3); got != CallLaunch {
		t.Errorf("with work to its number: %v", got)
	}
}
