package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Kind is a kind of repository.
type Kind string

// The kinds.
const (
	Model   Kind = "model"
	DataSet Kind = "dataset"
)

// Repo names a repository.
type Repo struct {
	Kind Kind
	Name string // ORG/NAME, or NAME alone for a few old ones
}

// plural names the kind in addresses and folders.
func (r Repo) plural() string { return string(r.Kind) + "s" }

// Folder is the name of the repository's folder in a cache.
func (r Repo) Folder() string { return r.plural() + "--" + strings.ReplaceAll(r.Name, "/", "--") }

// String describes the repository in messages.
func (r Repo) String() string {
	if r.Kind == DataSet {
		return "data set " + r.Name
	}
	return "model " + r.Name
}

// Part is the part of a repository that a reference means.
type Part int

const (
	Weights   Part = iota // a model's folder
	Tokenizer             // the same folder; only its tokenizer is read
	Data                  // a file of a data set, or several
)

// Ref is a reference to a repository at a revision.
type Ref struct {
	Repo
	Part     Part
	Revision string // branch, tag or commit
	// File is the path of a file in a data set; * and ? stand for parts of a name, and it then
	// means all files that match. Empty: the only data file of the repository.
	File string
}

// Prefix begins a reference in a configuration or on a command line.
const Prefix = "hub:"

// DefaultRevision is the branch that a reference without a revision means.
const DefaultRevision = "main"

// IsRef reports whether a text is a reference and not a path.
func IsRef(text string) bool { return strings.HasPrefix(text, Prefix) }

// ParseRef reads hub:ORG/NAME[@REV] or, for data, hub:ORG/NAME[/FILE][@REV].
func ParseRef(text string, part Part) (Ref, error) {
	rest, ok := strings.CutPrefix(text, Prefix)
	if !ok {
		return Ref{}, fmt.Errorf("%q does not begin with %s", text, Prefix)
	}
	kind := Model
	if part == Data {
		kind = DataSet
	}
	r, file, err := parse(rest, kind)
	if err != nil {
		return Ref{}, fmt.Errorf("%s: %w", text, err)
	}
	if r.Part, r.File = part, file; file != "" && part != Data {
		return Ref{}, fmt.Errorf("%s: a model is ORG/NAME, without a file", text)
	}
	if part == Data && !strings.Contains(r.Name, "/") {
		return Ref{}, fmt.Errorf("%s: a data set is ORG/NAME", text)
	}
	return r, nil
}

// ParseRepo reads REPO[@REV], the argument of a command, with or without the prefix.
func ParseRepo(text string, kind Kind) (Ref, error) {
	r, file, err := parse(strings.TrimPrefix(text, Prefix), kind)
	if err == nil && file != "" {
		err = errors.New("a repository is ORG/NAME, or ORG/NAME@REV")
	}
	if err != nil {
		return Ref{}, fmt.Errorf("%s: %w", text, err)
	}
	if kind == DataSet {
		r.Part = Data
	}
	return r, nil
}

// nameForm is the form of the parts of a repository's name.
var nameForm = regexp.MustCompile(`^\w([\w.-]{0,94}\w)?$`)

func parse(text string, kind Kind) (r Ref, file string, err error) {
	r = Ref{Repo: Repo{Kind: kind}, Revision: DefaultRevision}
	name, revision, given := strings.Cut(text, "@")
	if given {
		r.Revision = revision
	}
	parts := strings.SplitN(name, "/", 3)
	r.Name = strings.Join(parts[:min(2, len(parts))], "/")
	for _, p := range parts[:min(2, len(parts))] {
		if !nameForm.MatchString(p) || strings.Contains(p, "..") || strings.Contains(p, "--") {
			return r, "", fmt.Errorf("%q is not the name of a repository, ORG/NAME", r.Name)
		}
	}
	if len(parts) == 3 {
		if file = parts[2]; !localPath(file) {
			return r, "", fmt.Errorf("%q is not the path of a file in a repository", file)
		}
	}
	if !localPath(r.Revision) || strings.ContainsAny(r.Revision, " ~^:?*[\\") {
		return r, "", fmt.Errorf("%q is not a revision: a branch, a tag or a commit", r.Revision)
	}
	return r, file, nil
}

// localPath reports whether a path with slashes stays inside the folder that it is joined
// to, on every system.
func localPath(path string) bool {
	return fs.ValidPath(path) && path != "." && !strings.ContainsAny(path, "\\:\x00")
}

// String writes the reference as configurations do.
func (r Ref) String() string {
	text := Prefix + r.Name
	if r.File != "" {
		text += "/" + r.File
	}
	return text + "@" + r.Revision
}

// Includes are the patterns of the files that the reference wants; nil for the usual ones.
func (r Ref) Includes() []string {
	switch {
	case r.Part == Tokenizer:
		return tokenizerFiles()
	case r.File != "":
		return []string{r.File}
	}
	return nil
}
