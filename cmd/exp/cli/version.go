package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

func versionCommand(a *App) *Command {
	return &Command{
		Name:     "version",
		Usage:    "print version, commit and build",
		Category: "set up",
		UsageText: "exp version           # for people\n" +
			"exp version --json    # for programs",
		Action: func(c *Context) error {
			if _, err := Positionals(c, 0, 0); err != nil {
				return err
			}
			b := ReadBuild()
			return a.Out.PrintDocument(Document{
				Schema: "exp.version/1",
				Data:   b,
				Human:  func(w io.Writer) error { _, err := fmt.Fprintln(w, b); return err },
			})
		},
	}
}

// printVersion answers --version: one line, whatever the format.
func (a *App) printVersion() error {
	_, err := fmt.Fprintln(a.Stdout, ReadBuild())
	return err
}

// Build identifies the program.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty when built outside a checkout
	Modified bool   `json:"modified"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Device   string `json:"device"` // "cpu", or "cuda" for a build with tag cuda
}

// String is one line for people.
func (b Build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = "commit " + b.Commit[:min(len(b.Commit), 12)]
		if b.Modified {
			commit += "+changes"
		}
		commit += ", "
	}
	return fmt.Sprintf("exp %s (%s%s, %s, %s)", b.Version, commit, b.Go, b.Platform, b.Device)
}

// ReadBuild reads the build information in the binary.
func ReadBuild() Build {
	b := Build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Device: "cpu"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := strings.Trim(info.Main.Version, "()"); v != "" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags":
			for tag := range strings.SplitSeq(s.Value, ",") {
				if tag == "cuda" {
					b.Device = "cuda"
				}
			}
		}
	}
	return b
}
