package task

import (
	"errors"
	"iter"

	"exp/eval/layout"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Source is a file of problems, or all files that a pattern matches, and what to take from it.
type Source struct {
	Path string
	More []string // further files or patterns, read after it; rows count through
	// PromptKey is the column with the prompt; empty: the column of a known layout. Only mathematics and code
	// have it.
	PromptKey string
	Keep      []string // further columns to keep with each problem (layout.Facts.Columns); programs keep none
	KeepOf    string   // the kind of a mixed task whose problems alone keep them; empty: all
	// MaxRows is the number of rows to take before anything else is left out, verl's max_samples; 0 takes all.
	MaxRows int
	Drawn   bool   // draw these rows, and order them, as verl does; otherwise take the first
	Seed    uint64 // of the draw
	Rate    string // column with a pass rate of each problem, 0 to 1, for ReadRated; empty: none
	// Images takes the images of rows; nil: rows with images are refused. Programs have none.
	Images *layout.Images
}

// columns returns the further columns to read.
func (s Source) columns() layout.Columns {
	return layout.Columns{Prompt: s.PromptKey, Keep: s.Keep, Images: s.Images}
}

// Counts says what became of the rows of a source: Rows is the sum of the other counts and the problems.
type Counts struct {
	Rows       int
	Unselected int // left out by Source.MaxRows
	Unanswered int // without an answer
	Repeated   int // copies of an earlier problem
}

// publishedTask reads the rows of published files. Repeated problems are returned once.
type publishedTask interface {
	readRows(all iter.Seq2[rows.Row, error], from Source) ([]rollout.Problem, layout.Copies, error)
}

// ErrNotGenerated is returned by Generate of tasks that only read problems.
var ErrNotGenerated = errors.New("problems of this task are read from a file")

// onlyRead is embedded by tasks whose problems are read, for models with their own tokenizer.
type onlyRead struct{}

// Alphabet is empty.
func (onlyRead) Alphabet() string { return "" }

// Generate returns ErrNotGenerated.
func (onlyRead) Generate(Split, int, uint64) ([]rollout.Problem, error) { return nil, ErrNotGenerated }

// Read reads the problems of a file in any form that package rows reads; see Read for its rows. Of mathematics
// and code, repeated problems are returned once.
func (s Source) Read(t Task) ([]rollout.Problem, Counts, error) {
	problems, _, counts, err := s.ReadRated(t)
	return problems, counts, err
}

// ReadRated is Read with the problems' pass rates, in their order: NaN where Rate is absent or null in a row, nil
// without a Rate.
func (s Source) ReadRated(t Task) ([]rollout.Problem, []float64, Counts, error) {
	p, ok := t.(publishedTask)
	if !ok {
		return s.readStored(t)
	}
	reader := &rows.Reader{Paths: s.Paths(), Distinct: true}
	all, left, err := s.selected(reader)
	if err != nil {
		return nil, nil, Counts{}, err
	}
	var r rates
	if s.Rate != "" {
		all = r.of(all, s.Rate)
	}
	problems, copies, err := p.readRows(all, s)
	if err == nil {
		err = r.check(s)
	}
	return problems, r.list, Counts{Rows: reader.Total, Unselected: left, Unanswered: copies.Unanswered,
		Repeated: reader.Repeated + copies.Rows - copies.Unique}, err
}

// selected returns the rows to take, and how many are not.
func (s Source) selected(reader *rows.Reader) (all iter.Seq2[rows.Row, error], left int, err error) {
	order, left, err := s.order(func() (int, error) { return rows.Count(s.Paths()...) })
	switch {
	case err != nil:
		return nil, 0, err
	case order == nil:
		return reader.Rows(), 0, nil
	}
	place := make(map[int]int, len(order))
	for i, index := range order {
		place[index] = i
	}
	reader.Wanted = func(index int) bool {
		_, ok := place[index]
		return ok
	}
	if !s.Drawn {
		return reader.Rows(), left, nil
	}
	reader.Distinct = false // the first of equal rows is the first drawn
	return func(yield func(rows.Row, error) bool) {
		list := make([]rows.Row, len(order))
		for row, err := range reader.Rows() {
			if err != nil {
				yield(row, err)
				return
			}
			list[place[row.Index]] = row
		}
		for _, row := range list {
			if !yield(row, nil) {
				return
			}
		}
	}, left, nil
}

// order returns the indices of the rows to take, in order, and how many are not taken; nil takes all.
func (s Source) order(count func() (int, error)) (order []int, left int, err error) {
	if s.MaxRows <= 0 {
		return nil, 0, nil
	}
	total, err := count()
	if err != nil || s.MaxRows >= total {
		return nil, 0, err
	}
	if s.Drawn {
		return rows.Draw(total, s.MaxRows, s.Seed), total - s.MaxRows, nil
	}
	for i := range s.MaxRows {
		order = append(order, i)
	}
	return order, total - s.MaxRows, nil
}

// Paths returns Path and More.
func (s Source) Paths() []string { return append([]string{s.Path}, s.More...) }

// readStored reads files with a problem in each row.
func (s Source) readStored(t Task) ([]rollout.Problem, []float64, Counts, error) {
	files, err := rows.AllFiles(s.Paths())
	if err != nil {
		return nil, nil, Counts{}, err
	}
	lines := problemLines{task: t, seen: map[string]bool{}, rate: s.Rate}
	for _, path := range files {
		if err := lines.readFile(path); err != nil {
			return nil, nil, Counts{}, err
		}
	}
	if err := lines.rates.check(s); err != nil {
		return nil, nil, Counts{}, err
	}
	problems, rates := lines.problems, lines.rates.list
	counts := Counts{Rows: len(problems)}
	order, left, err := s.order(func() (int, error) { return len(problems), nil })
	if err != nil || order == nil {
		return problems, rates, counts, err
	}
	counts.Unselected = left
	list := make([]rollout.Problem, len(order))
	for i, index := range order {
		list[i] = problems[index]
	}
	if s.Rate == "" {
		return list, nil, counts, nil
	}
	rates = make([]float64, len(order))
	for i, index := range order {
		rates[i] = lines.rates.list[index]
	}
	return list, rates, counts, nil
}
