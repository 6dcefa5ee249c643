// Package suite holds benchmarks: sets of problems with gold answers, the graders that
// their answers are for, a version and a licence.
//
// The problems themselves are not part of this program. Catalog says of the known
// benchmarks where they come from, how many problems they have, and what digest those
// of a named copy have; a user's file is read by Read, whose layout shows in its
// content, or described by a definition of a few lines (definition.go).
//
// Suites of programs, in the published layouts that package codefile knows, are graded by
// running them: see CodeOptions.
package suite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"exp/eval/codefile"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/eval/task"
	"exp/train/rollout"
)

// Suite is a benchmark.
type Suite struct {
	Name    string // "math500"
	Version string // of the copy, or what its owner calls it; may be empty
	License string // of the problems; may be empty
	Source  string // where the file is from; may be empty
	// Graders are those to score with, the suite's own first.
	Graders  []string
	Problems []rollout.Problem
	Copies   layout.Copies // of the file that it was read from
}

// Encode writes the problems as task.Write does, one a line: the canonical records,
// whose digest is the suite's.
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

// CountError is returned by Read for a file that has not as many problems as the
// suite.
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

// KnownName is the name of the benchmark that a file is called after; empty if the catalog
// has none of that name.
func KnownName(path string) string {
	path = strings.TrimSuffix(path, ".gz")
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if _, known := ByName(name); !known {
		return ""
	}
	return name
}

// Read reads the problems of a file, or what a definition (.yaml) says, under a name;
// an empty name is the definition's, or the file's. What the catalog knows of the name
// holds, and the number of problems must be right. Errors are the system's,
// *rows.Error, *CountError and *DefinitionError.
func Read(name, path string) (*Suite, error) {
	s := &Suite{Name: name, Graders: defaultGraders()}
	file, l, want := path, (*layout.Layout)(nil), []int(nil)
	if ext := strings.ToLower(filepath.Ext(path)); ext == ".yaml" || ext == ".yml" {
		d, err := readDefinition(path)
		if err != nil {
			return nil, err
		}
		d.describe(s)
		file, l = d.file(path), d.layout()
		if d.Items > 0 {
			want = []int{d.Items}
		}
	} else if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	if k, ok := ByName(s.Name); ok && l == nil {
		s.License, s.Source, s.Graders, want = k.License, k.Source, k.Graders, k.Counts
	}
	if err := s.read(file, l); err != nil {
		return nil, err
	}
	if want != nil && !slices.Contains(want, len(s.Problems)) {
		return nil, &CountError{path, s.Name, len(s.Problems), want}
	}
	return s, nil
}

func (s *Suite) read(path string, l *layout.Layout) (err error) {
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
	if _, ok := codefile.DetectRow(first); ok && l == nil {
		return s.readCode(path)
	}
	s.Problems, s.Copies, err = layout.Problems(rows.Read(path), l)
	for i := range s.Problems { // which nothing learns from
		s.Problems[i].Target = ""
	}
	return err
}

// readCode reads problems that programs solve.
func (s *Suite) readCode(path string) error {
	problems, err := codefile.Open(path, "")
	if err != nil {
		return err
	}
	if !ForPrograms(s.Graders) {
		s.Graders = CodeGraders()
	}
	for i := range problems {
		p, err := problems[i].Rollout()
		if err != nil {
			return err
		}
		s.Problems = append(s.Problems, p)
	}
	s.Copies = layout.Copies{Rows: len(problems), Unique: len(problems)}
	return nil
}

func firstRow(path string) (rows.Row, error) {
	for row, err := range rows.Read(path) {
		return row, err
	}
	return rows.Row{}, &rows.Error{Where: path, Err: errors.New("no rows")}
}
