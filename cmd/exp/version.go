package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"
)

func versionCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "version",
		Usage:    "print version, commit and build",
		Category: "set up",
		UsageText: "exp version           # for people\n" +
			"exp version --json    # for programs",
		Action: func(c *cli.Context) error {
			if _, err := positionals(c, 0, 0); err != nil {
				return err
			}
			b := readBuild()
			return a.out.printDocument(document{
				Schema: "exp.version/1",
				Data:   b,
				Human:  func(w io.Writer) error { _, err := fmt.Fprintln(w, b); return err },
			})
		},
	}
}

// printVersion answers --version: one line, whatever the format.
func (a *app) printVersion() error {
	_, err := fmt.Fprintln(a.stdout, readBuild())
	return err
}

// build says which program this is.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty when built outside a checkout
	Modified bool   `json:"modified"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Device   string `json:"device"` // "cpu", or "cuda" for the build that can use GPUs
}

func (b build) String() string {
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

// readBuild takes everything from what the Go linker stamped into the binary.
func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Device: "cpu"}
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
