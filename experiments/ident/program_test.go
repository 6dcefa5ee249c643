package ident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A program's digest follows the contents of its files, not their places.
func TestProgram(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	digestOf := func(dir string, more ...string) Digest {
		t.Helper()
		d, err := Program(append([]string{filepath.Join(dir, "run"), filepath.Join(dir, "data")}, more...))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		write(dir, "run", "#!/bin/sh")
		write(dir, "data/deep/x", "1")
	}
	base := digestOf(a)
	if digestOf(b) != base || digestOf(a, "--flag", "no such file") != base {
		t.Error("the place of a program, or the text of its arguments, changes the digest")
	}
	write(b, "data/deep/x", "2")
	if digestOf(b) == base {
		t.Error("another file of a folder does not change the digest")
	}
	write(b, "data/deep/x", "1")
	write(b, "data/more", "")
	if digestOf(b) == base {
		t.Error("one more file does not change the digest")
	}
	if err := os.Symlink(filepath.Join(a, "data"), filepath.Join(b, "data", "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := Paths([]string{filepath.Join(b, "data")}); err == nil || !strings.Contains(err.Error(), "link is not a file") {
		t.Errorf("a link to a folder: %v", err)
	}
	if _, err := Program([]string{"no-such-program-of-ours"}); err == nil {
		t.Error("a missing program: no error")
	}
	plain := filepath.Join(b, "data", "more")
	if err := os.Chmod(plain, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Program([]string{plain}); err == nil || !strings.Contains(err.Error(), "make it executable") {
		t.Errorf("a file without the permission: %v", err)
	}
	for argv, want := range map[string]string{"sh nosuch.sh": "the script of sh: stat nosuch.sh", "sh -c nosuch.sh": "", "sh": ""} {
		if _, err := Program(strings.Fields(argv)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", argv, err, want)
		}
	}
}
