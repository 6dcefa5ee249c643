package task

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"exp/eval/rows"
	"exp/train/rollout"
)

// Mixed is the task of problems of several kinds, read from files or made: each is read or made, checked and graded as
// the task of its kind does it alone. A problem remembers its kind (rollout.Problem.Kind).
type Mixed struct {
	// Kinds has the kind of task of each data source, by its name, or by a pattern in which * stands for any text. A
	// name that ends as data files do is a file's, with as many folders before it as the name has. * alone is for
	// all others.
	Kinds  map[string]string
	Column string // of the data source
	// Generate says how many problems of each kind are made for a split; see WithGenerated.
	Generate map[Split]map[string]int
}

// mixedKind is the name of Mixed in Config.Kind.
const mixedKind = "mixed"

// anyName stands in Mixed.Kinds for whatever no other name matches.
const anyName = "*"

// PartKinds lists the kinds of problems that a mixed task may read from files, in the order of Kinds.
func PartKinds() []string { return kindsThat(func(k *kind) bool { return k.part }) }

// GeneratedKinds lists the kinds of problems that a mixed task may make, in the order of Kinds.
func GeneratedKinds() []string { return kindsThat(func(k *kind) bool { return k.made }) }

func kindsThat(ok func(k *kind) bool) (names []string) {
	for _, k := range kinds() {
		if ok(&k) {
			names = append(names, k.name)
		}
	}
	return names
}

// Parts lists the kinds of problems that a task has, in the order of Kinds. Only a mixed task has several.
func (c *Config) Parts() []string {
	if c.Kind != mixedKind {
		return []string{c.Kind}
	}
	used := slices.Collect(maps.Values(c.Mixed.Kinds))
	for _, made := range c.Mixed.Generate {
		used = slices.AppendSeq(used, maps.Keys(made))
	}
	return kindsThat(func(k *kind) bool { return slices.Contains(used, k.name) })
}

type mixedTask struct {
	rollout.Grader
	cfg     Mixed
	parts   map[string]Task
	order   []string  // of parts
	sources []pattern // names of data sources, but for anyName
	files   []pattern // names of files
}

func newMixed(cfg Config) (*mixedTask, error) {
	const key = "task.mixed.kinds"
	t := &mixedTask{cfg: cfg.Mixed, parts: map[string]Task{}, order: cfg.Parts()}
	if len(t.order) == 0 {
		return nil, &ConfigError{Key: key, Problem: "names no kind of problems"}
	}
	if err := cfg.Mixed.checkGenerate(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Mixed.Kinds)) {
		kind := cfg.Mixed.Kinds[name]
		if !slices.Contains(PartKinds(), kind) {
			return nil, &ConfigError{Key: key, Problem: fmt.Sprintf("%s is %q, and problems of a mixed task are of %s",
				name, kind, strings.Join(PartKinds(), ", "))}
		}
		switch p := newPattern(name, kind); {
		case name == anyName:
		case fileEnd.MatchString(name):
			t.files = append(t.files, p)
		default:
			t.sources = append(t.sources, p)
		}
	}
	// A file's name with its folder comes before the name alone.
	slices.SortStableFunc(t.files, func(a, b pattern) int { return b.slashes - a.slashes })
	graders := map[string]rollout.Grader{}
	for _, kind := range t.order {
		own := cfg
		own.Kind = kind
		part, err := New(own)
		if err != nil {
			return nil, err
		}
		t.parts[kind], graders[kind] = part, part
	}
	t.Grader = ByKind(graders)
	return t, nil
}

// check rejects a problem of a kind that the task does not have, and what its kind rejects.
func (t *mixedTask) check(p *rollout.Problem) error {
	part := t.parts[p.Kind]
	if part == nil {
		return fmt.Errorf("a problem of kind %q, and task.mixed has %s", p.Kind, strings.Join(t.order, ", "))
	}
	return part.check(p)
}

// GraderOf returns what grades the completions of a task, with the grader of each kind of problems as wrap returns it.
func GraderOf(c Config, wrap func(kind string, g rollout.Grader) (rollout.Grader, error)) (rollout.Grader, error) {
	t, err := New(c)
	if err != nil {
		return nil, err
	}
	mixed, ok := t.(*mixedTask)
	if !ok {
		return wrap(c.Kind, t)
	}
	graders := map[string]rollout.Grader{}
	for _, kind := range mixed.order {
		if graders[kind], err = wrap(kind, mixed.parts[kind]); err != nil {
			return nil, err
		}
	}
	return ByKind(graders), nil
}

// fileEnd ends the names of data files.
var fileEnd = regexp.MustCompile(`\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)$`)

// pattern is a name in Mixed.Kinds.
type pattern struct {
	name, kind string
	expr       *regexp.Regexp
	slashes    int
}

func newPattern(name, kind string) pattern {
	parts := strings.Split(name, "*")
	for i, text := range parts {
		parts[i] = regexp.QuoteMeta(text)
	}
	return pattern{name, kind, regexp.MustCompile(`^(?s:` + strings.Join(parts, ".*") + `)$`),
		strings.Count(name, "/")}
}

// kindOf returns the kind of a row, by its data source, or else by its file, or else by anyName. known caches the
// kinds by data source and file.
func (t *mixedTask) kindOf(r rows.Row, known map[[2]string]string) (string, error) {
	source := ""
	if r.Has(t.cfg.Column) && !r.Empty(t.cfg.Column) {
		var err error
		if source, err = r.Text(t.cfg.Column); err != nil {
			return "", err
		}
	}
	key := [2]string{source, r.Path}
	if kind, ok := known[key]; ok {
		return kind, nil
	}
	kind, err := t.find(source, r.Path)
	if err != nil {
		return "", r.Errorf(t.cfg.Column, "%w", err)
	}
	known[key] = kind
	return kind, nil
}

// find looks up the kind for a data source, which may be empty, and the path of a file.
func (t *mixedTask) find(source, path string) (string, error) {
	if source != "" {
		if kind, err := matching(t.sources, func(pattern) string { return source }); kind != "" || err != nil {
			return kind, err
		}
	}
	folders := strings.Split(filepath.ToSlash(path), "/")
	kind, err := matching(t.files, func(p pattern) string {
		return strings.Join(folders[max(0, len(folders)-1-p.slashes):], "/")
	})
	if kind != "" || err != nil {
		return kind, err
	}
	if kind, ok := t.cfg.Kinds[anyName]; ok {
		return kind, nil
	}
	file := folders[len(folders)-1]
	if source == "" {
		return "", fmt.Errorf("the row has none, and task.mixed.kinds no name for its file: add %q with its kind",
			file)
	}
	return "", fmt.Errorf("%q matches no name in task.mixed.kinds: add it with its kind, or %q for its whole file, "+
		`or "*" for all others`, source, file)
}

// matching returns the kind of the pattern that is a text itself, or of the only one that matches it; empty if none
// does. text returns what a pattern is compared with.
func matching(list []pattern, text func(p pattern) string) (kind string, err error) {
	var hits []string
	for _, p := range list {
		switch s := text(p); {
		case p.name == s:
			return p.kind, nil
		case p.expr.MatchString(s):
			hits, kind = append(hits, fmt.Sprintf("%q", p.name)), p.kind
			if len(hits) == 2 {
				err = fmt.Errorf("%q matches %s in task.mixed.kinds: add it there in full, with its kind", s,
					strings.Join(hits, " and "))
			}
		}
	}
	if err != nil {
		return "", err
	}
	return kind, nil
}

// byKind grades each problem as its kind does.
type byKind struct{ graders map[string]rollout.Grader }

// ByKind returns a grader that gives each problem to the grader of its kind. If one of them grades many completions in
// one call, so does it, once for each such kind.
func ByKind(graders map[string]rollout.Grader) rollout.Grader {
	for _, g := range graders {
		if _, ok := g.(rollout.BatchGrader); ok {
			return byKindAtOnce{byKind{graders}}
		}
	}
	return byKind{graders}
}

// Grade implements rollout.Grader.
func (b byKind) Grade(ctx context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	g := b.graders[p.Kind]
	if g == nil {
		return rollout.Verdict{}, fmt.Errorf("problem %s: no grader of kind %q", p.ID, p.Kind)
	}
	return g.Grade(ctx, p, c)
}

type byKindAtOnce struct{ byKind }

// GradeAll implements rollout.BatchGrader.
func (b byKindAtOnce) GradeAll(ctx context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	of := map[string][]int{} // items of each kind
	for i, it := range items {
		of[it.Problem.Kind] = append(of[it.Problem.Kind], i)
	}
	all := make([]rollout.Verdict, len(items))
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		list := make([]rollout.Item, len(of[kind]))
		for j, i := range of[kind] {
			list[j] = items[i]
		}
		verdicts, err := b.gradeKind(ctx, kind, list)
		if err != nil {
			return nil, err
		}
		for j, i := range of[kind] {
			all[i] = verdicts[j]
		}
	}
	return all, nil
}

// gradeKind grades completions of problems of one kind.
func (b byKindAtOnce) gradeKind(ctx context.Context, kind string, list []rollout.Item) ([]rollout.Verdict, error) {
	if batch, ok := b.graders[kind].(rollout.BatchGrader); ok {
		return batch.GradeAll(ctx, list)
	}
	return onAllCores(ctx, list, b.Grade)
}
