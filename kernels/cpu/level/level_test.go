package level

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every header that a source includes is in Headers, and every folder with such a source imports
// this package: otherwise a change of the header would leave old objects in use.
func TestHeadersAreKnown(t *testing.T) {
	included := regexp.MustCompile(`(?m)#include "([^"]+)"`)
	used, folders := map[string]bool{}, map[string]bool{}
	for _, pattern := range []string{"*.h", "*/*.c", "*/*.go", "../*.go", "../*.h", "../*.c"} {
		for _, file := range globbed(t, pattern) {
			for _, m := range included.FindAllStringSubmatch(read(t, file), -1) {
				path := strings.TrimPrefix(filepath.Join(filepath.Dir(file), m[1]), "../level/")
				if filepath.Dir(path) != "." {
					continue // a header of kernels/cpu alone
				}
				if _, err := fs.Stat(Headers, path); err != nil {
					t.Errorf("%s includes %s, which is not in Headers: %v", file, m[1], err)
				}
				used[path], folders[filepath.Dir(file)] = true, true
			}
		}
	}
	for _, header := range globbed(t, "*.h") {
		if !used[header] {
			t.Errorf("nobody includes %s", header)
		}
	}
	delete(folders, ".")
	if len(folders) < 6 {
		t.Errorf("only sources in %d folders include headers", len(folders))
	}
	for dir := range folders {
		if !importsLevel(t, dir) {
			t.Errorf("sources in %s include headers, but no Go file imports package level", dir)
		}
	}
}

func importsLevel(t *testing.T, dir string) bool {
	t.Helper()
	for _, file := range globbed(t, filepath.Join(dir, "*.go")) {
		if strings.Contains(read(t, file), `_ "exp/kernels/cpu/level"`) {
			return true
		}
	}
	return false
}

// All levels are compiled with the same flags, in ISO C: other flags may change bits.
func TestFlags(t *testing.T) {
	flags := regexp.MustCompile(`(?m)^// #cgo CFLAGS: (-[^D].*)$`)
	var all []string
	for _, file := range globbed(t, "*/*.go") {
		for _, m := range flags.FindAllStringSubmatch(read(t, file), -1) {
			all = append(all, m[1])
		}
	}
	if len(all) != len(globbed(t, "*/*.c")) || len(slices.Compact(slices.Clone(all))) != 1 {
		t.Errorf("flags of the levels: %q", all)
	}
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
