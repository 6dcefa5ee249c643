// Package suite holds benchmarks: problems with gold answers, their graders, a version and a licence.
//
// The program does not ship the problems. Catalog says where to get the known benchmarks, how many problems
// they have, and the digests of published copies. Read reads a user's file, whose layout it detects, or a
// short YAML definition (definition.go).
//
// Suites of programs come in the published layouts that package layout knows and are graded by running
// the programs: see CodeOptions.
package suite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/eval/task"
	"exp/train/rollout"
)

// Suite is a benchmark.
type Suite struct {
	Name    string // "math500"
	Version string // of the copy, or its owner's name for it; may be empty
	License string // of the problems; may be empty
	Source  string // where the file comes from; may be empty
	// Graders are the graders to score with, the default first.
	Graders  []string
	Asking   Asking // how it is asked by default
	Problems []rollout.Problem
	Copies   layout.Copies // of the file the suite was read from
}

// Encode writes the problems as task.Write does, one per line. The suite's digest is the hash of these
// bytes.
func (s *Suite) Encode() ([]byte, error) {
	var b bytes.Buffer
	if err := task.Write(&b, s.Problems); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote.
func (s *Suite) Decode(data []byte) error {
	t, err := answersTask(s.Graders)
	if err != nil {
		return err
	}
	s.Problems, err = task.Read(t, bytes.NewReader(data), s.Name)
	return err
}

// CountError is returned by Read if the file has the wrong number of problems.
type CountError struct {
	Path string
	Name string
	Got  int
	Want []int // any of these
}

func (e *CountError) Error() string {
	return fmt.Sprintf("%s has %d different problems; %s has %s", e.Path, e.Got, e.Name, orList(e.Want))
}

func orList(ns []int) string {
	var list []string
	for _, n := range ns {
		list = append(list, fmt.Sprint(n))
	}
	return strings.Join(list, " or ")
}

// KnownName returns the benchmark that a file is named after, or "" if the catalog does not have it.
func KnownName(path string) string {
	path = strings.TrimSuffix(path, ".gz")
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if _, known := ByName(name); !known {
		return ""
	}
	return name
}

// IsRows reports whether a file has problems, and does not define a suite whose problems are in another file.
func IsRows(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext != ".yaml" && ext != ".yml"
}

// Options says how Read reads a file.
type Options struct {
	Images    *layout.Images // reads the images of rows; nil leaves them out
	Solutions bool           // keep worked solutions, which examples in prompts are answered by
}

// Read reads the problems of a file, or of the file that a .yaml definition describes. An empty name means
// the definition's name or the file's. If the catalog knows the name, its licence, source and graders apply
// and the number of problems must match. Errors are system errors, *rows.Error, *CountError and *DefinitionError.
func Read(name, path string, o Options) (*Suite, error) {
	s := &Suite{Name: name}
	file, l, want := path, (*layout.Layout)(nil), []int(nil)
	if !IsRows(path) {
		d, err := readDefinition(path)
		if err != nil {
			return nil, err
		}
		d.describe(s)
		o.Solutions = o.Solutions || d.Solutions
		file, l = d.file(path), d.layout()
		o.Images = d.images(o.Images)
		if d.Items > 0 {
			want = []int{d.Items}
		}
	} else if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if k, ok := ByName(s.Name); ok && l == nil {
		s.License, s.Source, s.Graders, want = k.License, k.Source, k.Graders, k.Counts
	}
	if err := s.read(file, l, o); err != nil {
		return nil, err
	}
	if want != nil && !slices.Contains(want, len(s.Problems)) {
		return nil, &CountError{path, s.Name, len(s.Problems), want}
	}
	return s, nil
}

func (s *Suite) read(path string, l *layout.Layout, o Options) (err error) {
	first, err := firstRow(path)
	if err != nil {
		return err
	}
	if l == nil && first.Has("nums", "target") {
		s.Graders = []string{countdownGrader}
		t, err := answersTask(s.Graders)
		if err != nil {
			return err
		}
		s.Problems, err = task.ReadFile(t, path)
		s.Copies = layout.Copies{Rows: len(s.Problems), Unique: len(s.Problems)}
		return err
	}
	if l == nil && layout.OfPrograms(first) {
		if !ForPrograms(s.Graders) {
			s.Graders = CodeGraders()
		}
		s.Problems, s.Copies, err = layout.Programs(rows.Read(path))
		return err
	}
	if l == nil && layout.OfInstructions(first) {
		if !ForInstructions(s.Graders) {
			s.Graders = task.InstructionGraders()
		}
		s.Problems, s.Copies, err = layout.InstructionsAt(rows.Read(path), layout.Columns{Images: o.Images})
		return err
	}
	if s.Graders == nil {
		s.Graders = gradersOf(first, l)
	}
	s.Problems, s.Copies, err = layout.Problems(rows.Read(path), l, o.Images)
	if !o.Solutions { // suites are not trained on
		s.Problems = s.WithoutSolutions()
	}
	return err
}

// WithoutSolutions returns the problems without the worked solutions that some have.
func (s *Suite) WithoutSolutions() []rollout.Problem {
	list := slices.Clone(s.Problems)
	for i := range list {
		list[i].Target = ""
	}
	return list
}

// Solved counts the problems with a worked solution.
func (s *Suite) Solved() (n int) {
	for i := range s.Problems {
		if s.Problems[i].Target != "" {
			n++
		}
	}
	return n
}

// gradersOf returns the graders of a file whose first row is r, in a layout or, if that is nil, the detected one.
func gradersOf(r rows.Row, l *layout.Layout) []string {
	if l == nil {
		found, err := layout.Detect(r)
		if err != nil {
			return defaultGraders() // reading the file says more
		}
		l = &found
	}
	if l.Graders != nil {
		return l.Graders
	}
	if n := l.CountChoices(r); n > 0 {
		return choiceGraders(n)
	}
	return defaultGraders()
}

func firstRow(path string) (rows.Row, error) {
	for row, err := range rows.Read(path) {
		return row, err
	}
	return rows.Row{}, &rows.Error{Where: path, Err: errors.New("no rows")}
}
