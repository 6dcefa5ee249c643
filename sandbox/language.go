package sandbox

import (
	_ "embed"
	"path/filepath"
	"slices"
	"strings"
)

// language is a name of Request.Language other than Python's, which is the slot's own.
type language struct {
	name       string
	extensions []string
	source     string // what the program's file is called
}

// languages are those that need a toolchain of the host.
func languages() []language {
	return []language{
		{"c", []string{".c"}, "main.c"},
		{"cpp", []string{".cpp", ".cc", ".cxx"}, "main.cpp"},
		{"go", []string{".go"}, "main.go"},
		{"javascript", []string{".js"}, "main.js"},
	}
}

const pythonLanguage = "python"

// Languages are the names that Request.Language may have. Whether a toolchain is there
// is what Toolchains tells.
func Languages() []string {
	list := []string{pythonLanguage}
	for _, l := range languages() {
		list = append(list, l.name)
	}
	return list
}

// LanguageOf is the language of a file, by its name; Python's where that says nothing.
func LanguageOf(file string) string {
	ext := strings.ToLower(filepath.Ext(file))
	for _, l := range languages() {
		if slices.Contains(l.extensions, ext) {
			return l.name
		}
	}
	return pythonLanguage
}

// languageNamed finds a language; ok is false for Python and for what is none.
func languageNamed(name string) (language, bool) {
	for _, l := range languages() {
		if l.name == name {
			return l, true
		}
	}
	return language{}, false
}

// compileLimits bound a compiler, whatever the request's limits are. Its times are
// long, so that a loaded machine changes no verdict: a solution that includes all of
// C++'s library takes seconds on an idle one.
func compileLimits() Limits {
	return Limits{WallMS: 120_000, CPUMS: 60_000, MemoryMB: 1024, Processes: 64, StdoutKB: 64, StderrKB: 64,
		FileMB: 64, ScratchMB: 256, ScratchFiles: 4096, OpenFiles: 512}
}

//go:embed compiledriver.py
var compileDriver string
