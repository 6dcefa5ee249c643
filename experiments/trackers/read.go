package trackers

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/experiments/ident"
	"exp/experiments/quantity"
)

// Sources lists the formats that Read accepts.
func Sources() []string { return []string{"verl", "tensorboard", "csv", "jsonl"} }

// Foreign is a run of another framework, as read from its files.
type Foreign struct {
	From   string // one of Sources
	Name   string
	Seed   int64
	Algo   string // given by the user; Algo, Task and Model may be empty
	Task   string
	Model  string
	Files  []SourceFile
	Series []Series
	Dumps  []Dump
	// Started and Ended are zero if the files have no times.
	Started, Ended time.Time
	// Remarks are notes on the files for the user.
	Remarks []string

	points *points
}

// SourceFile is an input file.
type SourceFile struct {
	Path   string // where it was
	Name   string // within the run
	Size   int64
	SHA256 ident.Digest
}

// Read reads the files and folders of one run. A folder stands for the event files or
// dumps of completions in it.
func Read(from string, paths []string) (*Foreign, error) {
	f := &Foreign{From: from, points: newPoints()}
	for _, p := range paths {
		if err := f.readPath(p); err != nil {
			return nil, err
		}
	}
	f.Series = f.points.list()
	f.Started, f.Ended = f.points.first, f.points.last
	if len(f.Series) == 0 && len(f.Dumps) == 0 {
		return nil, &FormatError{Path: strings.Join(paths, ", "), Msg: "it contains no metrics",
			Help: "--from says what wrote it: " + strings.Join(Sources(), ", ")}
	}
	if n := f.points.repeated; n > 0 {
		f.Remarks = append(f.Remarks, quantity.Plural(n, "point")+" recorded twice with different values: the "+
			"later one counts, as after a resume")
	}
	base := filepath.Base(filepath.Clean(paths[0]))
	f.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return f, nil
}

func (f *Foreign) readPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return f.readFile(path, filepath.Base(path), "")
	}
	root, err := filepath.EvalSymlinks(path) // WalkDir follows no link
	if err != nil {
		return err
	}
	var found []string
	err = filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && f.wants(e.Name()) {
			found = append(found, p)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &FormatError{Path: path, Msg: "the folder has no file that " + f.From + " writes",
			Help: "name the files themselves"}
	}
	// Dumps are by step: 10.jsonl comes after 9.jsonl.
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) && filepath.Dir(a) == filepath.Dir(b) && f.From == "verl" {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	dirs := map[string]bool{}
	for _, p := range found {
		dirs[filepath.Dir(p)] = true
	}
	if len(dirs) > 1 {
		return &FormatError{Path: path, Msg: "files lie in " + strconv.Itoa(len(dirs)) +
			" folders, which are separate runs or suites", Help: "import each folder by itself"}
	}
	for _, p := range found {
		if err := f.readFile(p, filepath.Base(path)+"/"+filepath.Base(p),
			filepath.Base(filepath.Clean(path))); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether a file in a folder belongs to the framework.
func (f *Foreign) wants(name string) bool {
	switch f.From {
	case "tensorboard":
		return strings.Contains(name, ".tfevents.")
	case "verl":
		return strings.HasSuffix(name, ".jsonl")
	}
	return strings.HasSuffix(name, "."+f.From)
}

// readFile reads a file; folder is its folder, if Read was given one.
func (f *Foreign) readFile(path, name, folder string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	src := SourceFile{Path: path, Name: name}
	if src.SHA256, src.Size, err = ident.SumReader(file); err != nil {
		return err
	}
	if slices.ContainsFunc(f.Files, func(had SourceFile) bool { return had.Name == name }) {
		return &FormatError{Path: path, Msg: "another file is also named " + name,
			Help: "a run's files need distinct names"}
	}
	f.Files = append(f.Files, src)
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	switch f.From {
	case "tensorboard":
		whole, err := f.points.readEvents(path, file)
		if err == nil && !whole {
			f.Remarks = append(f.Remarks, path+" ends in the middle of a record, which is ignored")
		}
		return err
	case "csv":
		return f.readCSV(path, file)
	case "jsonl":
		return f.readJSONL(path, file)
	}
	return f.readVerl(path, folder, file)
}

func (f *Foreign) readJSONL(path string, r io.Reader) error {
	return eachLine(r, func(n int, line []byte) error {
		if problem := f.points.jsonLine(line); problem != "" {
			return &FormatError{Path: path, Line: n, Msg: problem,
				Help: `a line is an object such as {"step": 1, "loss": 0.5}`}
		}
		return nil
	})
}

// readVerl reads a console log, a file logger's log or a dump, depending on the first
// line.
func (f *Foreign) readVerl(path, folder string, r io.ReadSeeker) error {
	var first []byte
	stop := errors.New("")
	err := eachLine(r, func(_ int, line []byte) error {
		first = bytes.Clone(line)
		return stop
	})
	if err != nil && err != stop {
		return err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	switch {
	case len(first) > 0 && first[0] == '{' && isDump(first):
		list, err := readDump(path, r)
		if err != nil {
			return err
		}
		if folder == "" {
			folder = filepath.Base(filepath.Dir(path))
		}
		i := slices.IndexFunc(f.Dumps, func(d Dump) bool { return d.Name == folder })
		if i < 0 {
			i = len(f.Dumps)
			f.Dumps = append(f.Dumps, Dump{Name: folder})
		}
		f.Dumps[i].Completions = append(f.Dumps[i].Completions, list...)
		return nil
	case len(first) > 0 && first[0] == '{':
		return f.readJSONL(path, r)
	}
	lines := 0
	err = eachLine(r, func(n int, line []byte) error {
		ok, problem := f.points.consoleLine(string(line))
		if problem != "" {
			return &FormatError{Path: path, Line: n, Msg: problem}
		}
		if ok {
			lines++
		}
		return nil
	})
	if err == nil && lines == 0 {
		err = &FormatError{Path: path, Msg: "no line has the metrics of a step, such as: step:1 - actor/entropy:0.5",
			Help: "verl prints them with trainer.logger=['console'], and writes them with ['file']"}
	}
	return err
}

// readCSV reads a table with a column step and either columns metric and value or one
// column per metric. It ignores columns that are not numbers.
func (f *Foreign) readCSV(path string, r io.Reader) error {
	in := csv.NewReader(r)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		return &FormatError{Path: path, Line: 1, Msg: "it has no header line"}
	}
	head = slices.Clone(head)
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	step := -1
	for _, key := range append(slices.Clone(stepKeys), "Step") { // TensorBoard downloads have Step
		if step < 0 {
			step = slices.Index(head, key)
		}
	}
	if step < 0 {
		return &FormatError{Path: path, Line: 1, Msg: "no column is named step",
			Help: "the first line names the columns: step and metrics"}
	}
	metric, value, run := slices.Index(head, "metric"), slices.Index(head, "value"), slices.Index(head, "run")
	only := ""
	for {
		row, err := in.Read()
		if err == io.EOF {
			return nil
		}
		line, _ := in.FieldPos(0)
		bad := func(msg, help string) error { return &FormatError{Path: path, Line: line, Msg: msg, Help: help} }
		if err != nil {
			return bad(err.Error(), "")
		}
		x, err := strconv.ParseFloat(row[step], 64)
		at := int64(x)
		if err != nil || float64(at) != x {
			return bad("the step is "+strconv.Quote(row[step]), "")
		}
		if run >= 0 {
			if only != "" && row[run] != only {
				return bad("it has several runs, "+only+" and "+row[run], "import a file for each run")
			}
			only = strings.Clone(row[run])
		}
		if metric >= 0 && value >= 0 {
			v, err := strconv.ParseFloat(row[value], 64)
			if err != nil {
				return bad("the value is "+strconv.Quote(row[value]), "")
			}
			f.points.add(strings.Clone(row[metric]), at, v)
			continue
		}
		for i, text := range row {
			if v, err := strconv.ParseFloat(text, 64); err == nil && i != step && head[i] != "Wall time" {
				f.points.add(head[i], at, v)
			}
		}
	}
}
