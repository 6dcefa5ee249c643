package differ

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Unknown marks sources that the store does not have.
const Unknown ident.Change = "unknown"

// CodeChange is a source file, or the compiler, that differs.
type CodeChange struct {
	Path   string       `json:"path"`
	Change ident.Change `json:"change"`
	Stages []string     `json:"stages"`          // kinds whose results it can change
	Lines  string       `json:"lines,omitempty"` // unified diff; with Options.Lines
}

// code compares the sources of the stage kinds that both runs have.
func (r *differ) code() error {
	r.d.Code = []CodeChange{}
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
	slices.SortFunc(r.d.Code, func(x, y CodeChange) int { return strings.Compare(x.Path, y.Path) })
	return nil
}

func (r *differ) codeOf(kind string, a, b ident.Digest) error {
	left, errA := r.db.Source(r.ctx, a)
	right, errB := r.db.Source(r.ctx, b)
	if errors.Is(errA, store.ErrNotFound) || errors.Is(errB, store.ErrNotFound) {
		r.addCode("sources of "+kind, Unknown, kind)
		return nil
	}
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if left.Go != right.Go {
		r.addCode("Go compiler: "+left.Go+", "+right.Go, ident.Changed, kind)
	}
	for _, c := range ident.CompareFiles(left.Files, right.Files) {
		entry := r.addCode(c.Path, c.Change, kind)
		if r.o.Lines && entry.Lines == "" {
			lines, err := r.lines(c.Path, left.Archive, right.Archive)
			if err != nil {
				return err
			}
			entry.Lines = lines
		}
	}
	return nil
}

// addCode adds a change for a kind of stage and returns its entry.
func (r *differ) addCode(path string, change ident.Change, kind string) *CodeChange {
	for i := range r.d.Code {
		if c := &r.d.Code[i]; c.Path == path && c.Change == change {
			c.Stages = append(c.Stages, kind)
			return c
		}
	}
	r.d.Code = append(r.d.Code, CodeChange{Path: path, Change: change, Stages: []string{kind}})
	return &r.d.Code[len(r.d.Code)-1]
}

// lines returns the unified diff of a file in two source archives. A missing file
// counts as empty.
func (r *differ) lines(path string, archives ...ident.Digest) (string, error) {
	var texts, labels [2]string
	for i, archive := range archives {
		if r.archives[archive] == nil {
			files, err := r.db.Blobs.ReadTree(archive)
			if err != nil {
				return "", err
			}
			r.archives[archive] = files
		}
		text, ok := r.archives[archive][path]
		texts[i], labels[i] = string(text), []string{"a/", "b/"}[i]+path
		if !ok {
			labels[i] = os.DevNull
		}
	}
	const context = 3
	return udiff.ToUnified(labels[0], labels[1], texts[0], udiff.Lines(texts[0], texts[1]), context)
}
