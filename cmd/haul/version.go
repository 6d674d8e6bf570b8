package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (a *app) newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and how the binary was built",
		Example: "  haul version --json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if asJSON {
				return a.emit(v)
			}
			_, err := fmt.Fprintln(a.stdout, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
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

func readVersion() versionReport {
	v := versionReport{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
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
