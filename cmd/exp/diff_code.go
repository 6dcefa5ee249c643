package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// codeChange is a source file, or the compiler, that is not the same in two runs.
type codeChange struct {
	Path   string   `json:"path"`
	Change string   `json:"change"`          // "changed", "only in a", "only in b", "unknown"
	Stages []string `json:"stages"`          // kinds whose results it can change
	Lines  string   `json:"lines,omitempty"` // unified diff, where the lines are asked for
}

// code compares the sources of the kinds of stages that both runs have.
func (r *runDiffer) code() error {
	r.d.Code = []codeChange{}
	var codes [2]map[string]ident.Digest
	var kinds []string
	for i := range codes {
		codes[i] = map[string]ident.Digest{}
		for _, st := range r.stages[i] {
			codes[i][st.Kind] = st.Code
			if !slices.Contains(kinds, st.Kind) {
				kinds = append(kinds, st.Kind)
			}
		}
	}
	for _, kind := range kinds {
		a, b := codes[0][kind], codes[1][kind]
		if a == b || a.IsZero() || b.IsZero() {
			continue
		}
		if err := r.codeOf(kind, a, b); err != nil {
			return err
		}
	}
	slices.SortFunc(r.d.Code, func(x, y codeChange) int { return strings.Compare(x.Path, y.Path) })
	return nil
}

func (r *runDiffer) codeOf(kind string, a, b ident.Digest) error {
	left, errA := r.db.Source(r.ctx, a)
	right, errB := r.db.Source(r.ctx, b)
	if errors.Is(errA, store.ErrNotFound) || errors.Is(errB, store.ErrNotFound) {
		r.addCode("sources of "+kind, "unknown", kind)
		return nil
	}
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if left.Go != right.Go {
		r.addCode("Go compiler: "+left.Go+", "+right.Go, "changed", kind)
	}
	for _, c := range fileChanges(left.Files, right.Files) {
		entry := r.addCode(c.Path, c.Change, kind)
		if r.d.parts.lines && entry.Lines == "" {
			lines, err := r.lines(c.Path, left.Archive, right.Archive)
			if err != nil {
				return err
			}
			entry.Lines = lines
		}
	}
	return nil
}

// lines is the unified diff of a file of two archives of sources. A file that one of
// them lacks is compared with nothing.
func (r *runDiffer) lines(path string, archives ...ident.Digest) (string, error) {
	var texts, labels [2]string
	for i, archive := range archives {
		if r.sources[archive] == nil {
			files, err := r.db.Blobs.ReadTree(archive)
			if err != nil {
				return "", err
			}
			if r.sources == nil {
				r.sources = map[ident.Digest]map[string][]byte{}
			}
			r.sources[archive] = files
		}
		text, ok := r.sources[archive][path]
		texts[i], labels[i] = string(text), []string{"a/", "b/"}[i]+path
		if !ok {
			labels[i] = os.DevNull
		}
	}
	const context = 3
	return udiff.ToUnified(labels[0], labels[1], texts[0], udiff.Lines(texts[0], texts[1]), context)
}

// fileChanges lists the files that are not the same in two lists, by path.
func fileChanges(a, b []ident.File) []codeChange {
	var changes []codeChange
	sums := map[string]ident.Digest{}
	for _, f := range a {
		sums[f.Path] = f.SHA256
	}
	for _, f := range b {
		sum, ok := sums[f.Path]
		delete(sums, f.Path)
		switch {
		case !ok:
			changes = append(changes, codeChange{Path: f.Path, Change: "only in b"})
		case sum != f.SHA256:
			changes = append(changes, codeChange{Path: f.Path, Change: "changed"})
		}
	}
	for path := range sums {
		changes = append(changes, codeChange{Path: path, Change: "only in a"})
	}
	slices.SortFunc(changes, func(x, y codeChange) int { return strings.Compare(x.Path, y.Path) })
	return changes
}

// addCode adds a change that concerns a kind of stage and returns its entry.
func (r *runDiffer) addCode(path, change, kind string) *codeChange {
	for i := range r.d.Code {
		if c := &r.d.Code[i]; c.Path == path && c.Change == change {
			c.Stages = append(c.Stages, kind)
			return c
		}
	}
	r.d.Code = append(r.d.Code, codeChange{Path: path, Change: change, Stages: []string{kind}})
	return &r.d.Code[len(r.d.Code)-1]
}
