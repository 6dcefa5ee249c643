package sandbox

import (
	"cmp"
	_ "embed"
	"path/filepath"
	"slices"
	"strings"
)

// language is a language other than Python, which the slot itself runs.
type language struct {
	name       string
	extensions []string
	source     string // file name of the program
}

// languages lists the languages that need a toolchain on the host.
func languages() []language {
	return []language{
		{"c", []string{".c"}, "main.c"},
		{"cpp", []string{".cpp", ".cc", ".cxx"}, "main.cpp"},
		{"go", []string{".go"}, "main.go"},
		{"javascript", []string{".js"}, "main.js"},
	}
}

const pythonLanguage = "python"

// Languages lists the values of Request.Language. Toolchains says which of them this machine can run.
func Languages() []string {
	list := []string{pythonLanguage}
	for _, l := range languages() {
		list = append(list, l.name)
	}
	return list
}

// LanguageOf guesses the language from a file name; the default is Python.
func LanguageOf(file string) string {
	ext := strings.ToLower(filepath.Ext(file))
	for _, l := range languages() {
		if slices.Contains(l.extensions, ext) {
			return l.name
		}
	}
	return pythonLanguage
}

// languageNamed finds a language; ok is false for Python and for unknown names.
func languageNamed(name string) (language, bool) {
	for _, l := range languages() {
		if l.name == name {
			return l, true
		}
	}
	return language{}, false
}

// defaultCompileMS is enough for all of C++'s library, which takes seconds on an idle machine.
const defaultCompileMS = 10_000

// compileLimits bounds a compiler by its processor time. The wall time is long, so that load does not change
// verdicts.
func compileLimits(cpuMS int64) Limits {
	cpuMS = cmp.Or(cpuMS, defaultCompileMS)
	return Limits{WallMS: 12 * cpuMS, CPUMS: cpuMS, MemoryMB: 1024, Processes: 64, StdoutKB: 64, StderrKB: 64,
		FileMB: 64, ScratchMB: 256, ScratchFiles: 4096, OpenFiles: 512}
}

//go:embed compiledriver.py
var compileDriver string
