package suite

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"exp/eval"
	"exp/eval/layout"
)

// definition is a user's own suite in YAML:
//
//	name: house-algebra
//	version: "2026-01"
//	license: CC-BY-4.0
//	file: problems.jsonl        # in this folder; JSONL, JSON, CSV or parquet
//	items: 120                  # how many there must be; optional
//	graders: [exp, math_dapo]   # optional
//	layout:                     # optional: without it the layout is detected
//	  id: uid
//	  problem: [story, question]
//	  answer: gold
//	  within: box               # or "####"; without it the field is the answer
//	  choices: options          # of multiple-choice questions: a list, or [gold, wrong1, wrong2]
//	  shuffle: true             # the file has the right option in the same place always
//	  cluster: contest
//	  difficulty: level
//	  source: data_source
//	  images: photo             # a column with an image, or a list, shown before the text; none leaves them out
//	solutions: true             # keep worked solutions, which examples are answered by
//	likelihood: option          # how it is asked: see Asking
//	shots: 25
//	shots_suite: house-examples
//	prompt: "Question: {problem}\nAnswer:"
type definition struct {
	Name    string      `yaml:"name"`
	Version string      `yaml:"version"`
	License string      `yaml:"license"`
	Source  string      `yaml:"source"`
	File    string      `yaml:"file"`
	Items   int         `yaml:"items"`
	Graders []string    `yaml:"graders"`
	Layout  *fieldNames `yaml:"layout"`

	Solutions bool `yaml:"solutions"`
	Asking    `yaml:",inline"`
}

type fieldNames struct {
	ID         string   `yaml:"id"`
	Problem    nameList `yaml:"problem"`
	Answer     string   `yaml:"answer"`
	Within     string   `yaml:"within"`
	Choices    nameList `yaml:"choices"`
	Shuffle    bool     `yaml:"shuffle"`
	Cluster    string   `yaml:"cluster"`
	Difficulty string   `yaml:"difficulty"`
	Source     string   `yaml:"source"`
	Images     nameList `yaml:"images"`
}

// noImages is a definition's word for leaving images out.
const noImages = "none"

// nameList is one name or a list of names.
type nameList []string

// UnmarshalYAML implements yaml.InterfaceUnmarshaler.
func (n *nameList) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if err := unmarshal(&one); err == nil {
		*n = nameList{one}
		return nil
	}
	var list []string
	err := unmarshal(&list)
	*n = list
	return err
}

// DefinitionError is an error in a suite definition.
type DefinitionError struct {
	Path string
	Err  error // with the place in the file if known
}

func (e *DefinitionError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *DefinitionError) Unwrap() error { return e.Err }

// maxDefinition is far larger than any definition. It keeps the YAML parser, whose time grows with the
// square of its input, below a second.
const maxDefinition = 64 << 10

func readDefinition(path string) (*definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDefinition+1))
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) (*definition, error) {
		return nil, &DefinitionError{path, fmt.Errorf(format, args...)}
	}
	if len(text) > maxDefinition {
		return bad("more than %d bytes: not a suite definition", maxDefinition)
	}
	var d definition
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&d)
	switch {
	case err == io.EOF:
		return bad("empty; a suite needs at least name and file")
	case err != nil:
		return bad("%s", strings.TrimSpace(yaml.FormatError(err, false, true)))
	case d.Name == "" || d.File == "":
		return bad("a suite needs at least name and file")
	case d.Items < 0:
		return bad("items: %d problems", d.Items)
	}
	if err := d.Asking.check(); err != nil {
		return bad("%w", err)
	}
	for _, g := range d.Graders {
		if eval.ByLikelihood(g) {
			return bad("graders: %s compares likelihoods of options, which likelihood: option, letter or blank asks "+
				"for", g)
		}
		if _, ok := CodeOptions(g); ok {
			continue
		}
		if _, err := Grader(g); err != nil {
			return bad("graders: %w", err)
		}
	}
	if l := d.Layout; l != nil {
		switch {
		case len(l.Problem) == 0 || l.Answer == "":
			return bad("layout: problem and answer must name fields")
		case l.Within != "" && l.Within != string(layout.Hash) && l.Within != string(layout.Box):
			return bad("layout.within: %q is not box or \"####\"", l.Within)
		case l.Within != "" && len(l.Choices) > 0:
			return bad("layout: within finds an answer in a solution; with choices the answer is a field of its own")
		case l.Shuffle && len(l.Choices) == 0:
			return bad("layout.shuffle: the layout has no choices to shuffle")
		}
	}
	return &d, nil
}

// describe copies the definition into the suite. A name the caller asked for wins.
func (d *definition) describe(s *Suite) {
	if s.Name == "" {
		s.Name = d.Name
	}
	s.Version, s.License, s.Source, s.Asking = d.Version, d.License, d.Source, d.Asking
	if d.Graders != nil {
		s.Graders = d.Graders
	}
}

// file returns the path of the problem file, relative to the definition.
func (d *definition) file(path string) string {
	if filepath.IsAbs(d.File) {
		return d.File
	}
	return filepath.Join(filepath.Dir(path), d.File)
}

// images says how the images of rows are read, if x does so without a definition.
func (d *definition) images(x *layout.Images) *layout.Images {
	if x == nil || d.Layout == nil || len(d.Layout.Images) != 1 || d.Layout.Images[0] != noImages {
		return x
	}
	out := *x
	out.Column = ""
	return &out
}

func (d *definition) layout() *layout.Layout {
	l := d.Layout
	if l == nil {
		return nil
	}
	found := &layout.Layout{Name: d.Name, ID: l.ID, Problem: l.Problem, Answer: l.Answer,
		Within:  layout.Within(l.Within),
		Cluster: l.Cluster, Difficulty: l.Difficulty, Source: l.Source}
	if len(l.Choices) > 0 {
		found.Choices = &layout.Choices{Options: l.Choices, Shuffled: l.Shuffle}
	}
	if len(l.Images) > 0 && l.Images[0] != noImages {
		found.Pictures = &layout.Pictures{Columns: l.Images, Marked: len(l.Images) > 1, Optional: true}
	}
	return found
}
