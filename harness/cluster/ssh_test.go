package cluster

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The bundle of a job goes to the host that had the last attempt if it has lost it, and only then.
func TestPushLostBundle(t *testing.T) {
	dir := t.TempDir()
	sent := filepath.Join(dir, "sent.tar")
	ssh := "#!/bin/sh\nfor line; do :; done\ncase $line in\ntar*) cat >" + sent + " ;;\n*) cat " + dir + "/has ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	r := &RemoteJob{Entry: Entry{ID: "x", Config: "config/c.yaml"}, Spool: Spool{filepath.Join(dir, "spool")},
		Program: "bin/exp", Host: Host{Name: "one", Spool: "exp-spool"}}
	if err := r.Spool.Make(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{r.Config, r.Program, BundlePath("x"), StatePath("x")} {
		if err := r.Spool.Write(name, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Spool.note(Submitted{r.Entry, r.number()}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		has             string
		program, bundle bool
	}{{"bin/exp\nout/x.tar\n", false, false}, {"bin/exp\n", false, true}, {"", true, true}, {"out/x.tar\n", true, false}} {
		if err := os.WriteFile(filepath.Join(dir, "has"), []byte(tt.has), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.push(context.Background()); err != nil {
			t.Fatal(err)
		}
		names := tarNames(t, sent)
		if slices.Contains(names, r.Program) != tt.program || slices.Contains(names, BundlePath("x")) != tt.bundle {
			t.Errorf("a host with %q gets %q", tt.has, names)
		}
	}
}

func tarNames(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}
