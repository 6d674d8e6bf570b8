package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the newest release in CHANGELOG.md; a test compares the two. The revision
// distinguishes builds between two releases.
const version = "0.1.0"

type versionReport struct {
	Version  string `json:"version"`
	Module   string `json:"module_version,omitempty"` // as the Go tool recorded it
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (v versionReport) String() string {
	revision := ""
	if v.Revision != "" {
		revision = " " + v.Revision[:min(12, len(v.Revision))]
		if v.Modified {
			revision += " with local changes"
		}
	}
	return fmt.Sprintf("haul %s%s, %s, %s/%s", v.Version, revision, v.Go, v.OS, v.Arch)
}

func ReadVersion() versionReport {
	v := versionReport{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "(devel)" {
		v.Module = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
