package translate

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"exp/eval/grade/peer"
	"exp/eval/layout"
	"exp/eval/rows"
	"exp/harness/config"
)

// Problems of several kinds. verl's default_compute_score picks a grader for each row by its data_source, so one
// list of files may hold mathematics and programs. Here task.kind mixed gives each data_source, or file, a kind.

// Kinds of problems in verl's files.
const (
	mathKind         = "math"
	codeKind         = "code"
	instructionsKind = "instructions"
)

// dataFile is a file of problems.
type dataFile struct {
	path  string
	here  bool               // its rows were read
	rows  map[sourceKind]int // how many were
	every int                // one row in so many was read
	named string             // kind that the path of a file tells whose rows were not read; empty: none
}

// sourceKind is the data source of a row, which may be empty, and the kind of its problem.
type sourceKind struct{ source, kind string }

// mostRead is the number of rows that are read of a file to learn its data sources: programs' tests make rows of
// megabytes.
const mostRead = 2048

// readFile learns the kinds of a file's rows from their content, or from the file's name if they cannot be read.
// column has the data source.
func (t *verl) readFile(path, column string) dataFile {
	f := dataFile{path: path, rows: map[sourceKind]int{}}
	err := f.read(column)
	switch {
	case err == nil && len(f.rows) > 0:
		f.here = true
		return f
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		t.note("%s cannot be read: %v", path, err)
	}
	f.rows, f.named = nil, kindNamed(path)
	return f
}

// read counts rows, one in each block of f.every. Its place in the block varies, so that alternating sources are all
// seen.
func (f *dataFile) read(column string) error {
	total, err := rows.Count(f.path)
	if err != nil {
		return err
	}
	const odd = 7919 // prime, so that places in a block take turns
	f.every = max(1, (total+mostRead-1)/mostRead)
	reader := rows.Reader{Paths: []string{f.path},
		Wanted: func(i int) bool { return i%f.every == i/f.every*odd%f.every }}
	for row, err := range reader.Rows() {
		if err != nil {
			return err
		}
		source := ""
		if row.Has(column) && !row.Empty(column) {
			if source, err = row.Text(column); err != nil {
				return err
			}
		}
		f.rows[sourceKind{source, kindOfRow(row)}]++
	}
	return nil
}

// kindOfRow returns the kind of a row's problem. Rows that are neither programs nor instructions count as mathematics,
// which has gold answers of any kind.
func kindOfRow(r rows.Row) string {
	switch {
	case layout.OfPrograms(r):
		return codeKind
	case layout.OfInstructions(r):
		one := func(yield func(rows.Row, error) bool) { yield(r, nil) }
		if list, _, err := layout.InstructionsAt(one, layout.Columns{}); err == nil && len(list) == 1 {
			return instructionsKind
		}
	}
	return mathKind
}

// kindNamed returns the kind of problems that a file's name tells, or else its folder's; empty if neither does.
func kindNamed(path string) string {
	path = strings.ToLower(filepath.ToSlash(path))
	for range 2 {
		if kind := kindInWords(filepath.Base(path)); kind != "" {
			return kind
		}
		path = filepath.Dir(path)
	}
	return ""
}

// kindInWords returns the kind that words of a name begin with; empty if they tell none or several.
func kindInWords(name string) (kind string) {
	begins := map[string][]string{
		mathKind:         {"math", "gsm8k", "aime", "amc", "numina", "olympiad"},
		codeKind:         append(layout.ProgramSources(), "code", "coding", "leetcode", "humaneval", "mbpp"),
		instructionsKind: {"ifeval", "ifbench", "instructions"},
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, k := range slices.Sorted(maps.Keys(begins)) {
		told := slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(begins[k], func(begin string) bool { return strings.HasPrefix(word, begin) })
		})
		switch {
		case told && kind != "":
			return ""
		case told:
			kind = k
		}
	}
	return kind
}

// taskOf puts the task of files whose rows verl's default_compute_score grades.
func (t *verl) taskOf(train, val []string) {
	column := t.text("data.reward_fn_key", "data_source")
	var files []dataFile
	for i, path := range slices.Concat(train, val) {
		if slices.ContainsFunc(files, func(f dataFile) bool { return f.path == path }) {
			continue
		}
		f := t.readFile(path, column)
		files = append(files, f)
		if i < len(train) {
			t.train = append(t.train, f)
		}
	}
	if kinds := kindsOf(files); len(kinds) > 1 {
		t.mixed(files, kinds, column)
	} else if ofPrograms(train) {
		t.programs()
	}
}

// programs puts the task of programs.
func (t *verl) programs() {
	delete(t.out, "task.math.grader")
	t.put("task.kind", codeKind)
	t.put("task.code.partial", "true") // default_compute_score gives the share of tests passed
}

// kindsOf lists the kinds of problems in files, in the order of config.MixedParts.
func kindsOf(files []dataFile) []string {
	has := map[string]bool{}
	for _, f := range files {
		has[f.named] = true
		for row := range f.rows {
			has[row.kind] = true
		}
	}
	return slices.DeleteFunc(config.MixedParts(), func(kind string) bool { return !has[kind] })
}

// mixed puts the task of problems of several kinds: task.mixed.kinds has the data sources of the rows that were read,
// and the names of the other files.
func (t *verl) mixed(files []dataFile, kinds []string, column string) {
	t.put("task.kind", config.MixedTask)
	if !slices.Contains(kinds, mathKind) {
		delete(t.out, "task.math.grader")
	}
	if slices.Contains(kinds, codeKind) {
		t.put("task.code.partial", "true") // as in programs
	}
	if column != "data_source" {
		t.putText("task.mixed.column", column)
	}
	m := mixture{files: files, kinds: map[string]string{}}
	m.sources()
	for _, f := range files {
		m.file(f)
	}
	t.putBlock("task.mixed.kinds", m.kinds)
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%s (%s)", kind, strings.Join(m.names(kind), ", ")))
	}
	t.note("task.kind mixed: the files have problems of several kinds, %s", strings.Join(parts, ", "))
	if len(m.named) > 0 {
		t.note("not read, so names tell their kinds: %s", strings.Join(m.named, ", "))
	}
	t.notes = append(t.notes, m.notes...)
	if list := m.unknown(); len(list) > 0 {
		t.note("verl's default_compute_score has no grader for data_source %s: give these rows a kind in "+
			"task.mixed.kinds that fits, or score them by a reward of your own", strings.Join(list, ", "))
	}
	if slices.Contains(kinds, instructionsKind) {
		t.note("instructions are graded as in IFEval (task.instructions); verl's default_compute_score does not " +
			"know them")
	}
}

// mixture is task.mixed.kinds in the making.
type mixture struct {
	files  []dataFile
	kinds  map[string]string
	shared map[string]bool // data sources of rows of several kinds
	named  []string        // files whose names tell their kinds
	notes  []string
}

// sources gives each data source its kind, but for those whose rows have several.
func (m *mixture) sources() {
	m.shared = map[string]bool{}
	for _, f := range m.files {
		for row := range f.rows {
			if kind, ok := m.kinds[row.source]; ok && kind != row.kind {
				m.shared[row.source] = true
			}
			m.kinds[row.source] = row.kind
		}
	}
	m.shared[""] = true // its rows have no data source
	for source := range m.shared {
		delete(m.kinds, source)
	}
}

// file gives a file the kind of its rows that have none by their data source.
func (m *mixture) file(f dataFile) {
	name := m.nameOf(f)
	if f.every > 1 && f.here {
		m.note("%s: one row in %d was read for its data source; a run names others that it finds", f.path, f.every)
	}
	switch {
	case f.named != "":
		m.kinds[name] = f.named
		m.named = append(m.named, name)
		return
	case !f.here:
		m.kinds[name] = mathKind
		m.note("%s was not read, and its name tells no kind: its rows are taken for math unless "+
			"task.mixed.kinds has their data source", f.path)
		return
	}
	count := map[string]int{} // rows of each kind
	for row, n := range f.rows {
		if m.shared[row.source] {
			count[row.kind] += n
		}
	}
	if len(count) == 0 {
		return
	}
	list := slices.Sorted(maps.Keys(count))
	most := slices.MaxFunc(list, func(a, b string) int { return count[a] - count[b] })
	m.kinds[name] = most
	if len(list) > 1 {
		m.note("%s has rows of the kinds %s with one data source, or none: all are taken for %s; give them "+
			"different ones", f.path, strings.Join(list, ", "), most)
	}
}

func (m *mixture) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// nameOf returns the name of a file with as many folders before it as tell it from the other files, and with the
// folder whose name tells its kind.
func (m *mixture) nameOf(file dataFile) string {
	path := filepath.ToSlash(file.path)
	end := func(path string, n int) string {
		parts := strings.Split(filepath.ToSlash(path), "/")
		return strings.Join(parts[max(0, len(parts)-n):], "/")
	}
	n := 1
	if file.named != "" && kindInWords(strings.ToLower(end(path, 1))) == "" {
		n = 2
	}
	for ; n <= strings.Count(path, "/"); n++ {
		same := func(f dataFile) bool { return f.path != file.path && end(f.path, n) == end(path, n) }
		if !slices.ContainsFunc(m.files, same) {
			return end(path, n)
		}
	}
	return path
}

// names lists what has a kind, sorted.
func (m *mixture) names(kind string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(m.kinds)) {
		if m.kinds[name] == kind {
			list = append(list, name)
		}
	}
	return list
}

// unknown lists the data sources taken for mathematics that verl has no grader for.
func (m *mixture) unknown() (list []string) {
	for _, f := range m.files {
		for row := range f.rows {
			if _, err := peer.Route(row.source); row.kind == mathKind && row.source != "" && err != nil {
				list = append(list, row.source)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// graders lists the graders that verl takes for the rows of the training files: "none" for other rows than
// mathematics, "" for files that tell nothing.
func (t *verl) graders() map[string]bool {
	found := map[string]bool{}
	if len(t.train) == 0 {
		found[""] = true
	}
	for _, f := range t.train {
		switch {
		case f.named == codeKind || f.named == instructionsKind:
			found["none"] = true
		case !f.here:
			found[guessed(f.path)] = true
		}
		for row := range f.rows {
			name, err := peer.Route(row.source)
			if err != nil || row.kind != mathKind {
				name = "none"
			}
			found[name] = true
		}
	}
	return found
}

// putBlock sets a key to names with words of ours, one a line.
func (d *draft) putBlock(key string, words map[string]string) {
	indent := strings.Repeat("  ", strings.Count(key, ".")+1)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(words)) {
		fmt.Fprintf(&b, "\n%s%s: %s", indent, strconv.Quote(name), words[name])
	}
	d.out[key] = b.String()
}
