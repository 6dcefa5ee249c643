package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"exp/experiments/quantity"
)

// Cache is a folder of repositories in the layout that the package comment shows. Its methods do
// not use the network.
type Cache struct{ Dir string }

// commitForm is the form of a commit; digestForm of git's sha1 and of a sha256.
var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{40,64}$`)
	digestForm = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

func (c Cache) repo(r Repo) string           { return filepath.Join(c.Dir, r.Folder()) }
func (c Cache) blob(r Repo, d string) string { return filepath.Join(c.repo(r), "blobs", d) }

func (c Cache) refPath(r Repo, revision string) string {
	return filepath.Join(c.repo(r), "refs", filepath.FromSlash(revision))
}

// snapshot is the folder of a commit.
func (c Cache) snapshot(r Repo, commit string) string {
	return filepath.Join(c.repo(r), "snapshots", commit)
}

func (c Cache) pointer(r Repo, commit, path string) string {
	return filepath.Join(c.snapshot(r, commit), filepath.FromSlash(path))
}

func (c Cache) noExist(r Repo, commit, path string) string {
	return filepath.Join(c.repo(r), ".no_exist", commit, filepath.FromSlash(path))
}

// commit returns the commit that a revision meant when it was last fetched; "" if it was never
// fetched.
func (c Cache) commit(r Repo, revision string) string {
	if b, err := os.ReadFile(c.refPath(r, revision)); err == nil {
		if text := strings.TrimSpace(string(b)); commitForm.MatchString(text) {
			return text
		}
	}
	if commitForm.MatchString(revision) {
		if _, err := os.Stat(c.snapshot(r, revision)); err == nil {
			return revision
		}
	}
	return ""
}

// MissingError reports that a reference is not in the cache, or only in part.
type MissingError struct {
	Ref    Ref
	Cache  string   // the folder
	Commit string   // empty: nothing of the revision is there
	Lacks  []string // files of the commit that are not there
	Never  bool     // the commit is known to have no such file: fetching it will not help
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s is not in the cache %s", e.Ref, e.Cache)
	lacks := quantity.AtMost(e.Lacks, 3)
	switch {
	case e.Cache == "":
		text = fmt.Sprintf("%s: no cache is known: set HF_HUB_CACHE or HF_HOME", e.Ref)
	case e.Never:
		text = fmt.Sprintf("%s: commit %.12s of the repository has no %s", e.Ref, e.Commit, lacks)
	case e.Commit != "":
		text = fmt.Sprintf("%s: commit %.12s in the cache %s lacks %s", e.Ref, e.Commit, e.Cache, lacks)
	}
	return text
}

// Hint returns the command that fetches it.
func (e *MissingError) Hint() string {
	if e.Never {
		return "check the path of the file; exp hub get lists what a repository has if nothing matches --include"
	}
	return "with a network: " + Command(e.Ref)
}

// ExitCode is the code for a missing resource.
func (e *MissingError) ExitCode() int { return exitResource }

// Found is a reference that is in the cache.
type Found struct {
	Ref    Ref
	Commit string
	Dir    string   // the folder of the commit
	Path   string   // the target of the reference: Dir, a file in it, or a pattern of its files
	Files  []string // the files of the reference, relative to Dir, sorted
}

// Find looks a reference up. If it is not there completely, the error is a *MissingError; an
// *AmbiguousError asks which file of a data set is meant.
func (c Cache) Find(ref Ref) (Found, error) {
	return c.find(ref, "")
}

// FindAt is Find for a commit that a record names: the revision may have moved since. If
// the commit is not there, the revision decides.
func (c Cache) FindAt(ref Ref, commit string) (Found, error) {
	if _, err := os.Stat(c.snapshot(ref.Repo, commit)); err != nil || !commitForm.MatchString(commit) {
		commit = ""
	}
	return c.find(ref, commit)
}

func (c Cache) find(ref Ref, commit string) (f Found, err error) {
	if c.Dir == "" {
		return f, &MissingError{Ref: ref}
	}
	if commit == "" {
		commit = c.commit(ref.Repo, ref.Revision)
	}
	missing := &MissingError{Ref: ref, Cache: c.Dir, Commit: commit}
	if commit == "" {
		return f, missing
	}
	f = Found{Ref: ref, Commit: commit, Dir: c.snapshot(ref.Repo, commit)}
	have, err := c.files(ref.Repo, commit)
	if err != nil {
		return f, err
	}
	switch ref.Part {
	case Data:
		return f, c.findData(&f, have, missing)
	case Tokenizer:
		missing.Lacks = lackingTokenizer(have)
	case Weights:
		missing.Lacks, err = lackingWeights(f.Dir, have)
	}
	if err != nil {
		return f, err
	}
	if len(missing.Lacks) > 0 {
		return f, missing
	}
	f.Path, f.Files = f.Dir, have
	return f, nil
}

// files lists the files of a snapshot that are present, sorted.
func (c Cache) files(r Repo, commit string) (list []string, err error) {
	root := c.snapshot(r, commit)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil // a link to a missing blob
		}
		rel, err := filepath.Rel(root, path)
		list = append(list, filepath.ToSlash(rel))
		return err
	})
	return list, err
}

// keep gives a checked blob its place in a snapshot: a link or, on a file system without
// links, the contents themselves.
func (c *Client) keep(r Repo, commit, path, digest string) error {
	pointer, blob := c.Cache.pointer(r, commit, path), c.Cache.blob(r, digest)
	dir := filepath.Dir(pointer)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	target, err := filepath.Rel(dir, blob)
	if err != nil {
		return err
	}
	temporary := pointer + temporarySuffix()
	if err = c.symlink(target, temporary); err != nil {
		if err = c.hardlink(blob, temporary); err != nil {
			return os.Rename(blob, pointer)
		}
	}
	if err := os.Rename(temporary, pointer); err != nil {
		os.Remove(temporary)
		return err
	}
	os.Remove(temporary) // two hard links to one file: rename leaves both
	return nil
}

// setRef records the commit that a revision now means.
func (c Cache) setRef(r Repo, revision, commit string) error {
	if revision == commit {
		return nil
	}
	path := c.refPath(r, revision)
	if b, err := os.ReadFile(path); err == nil && string(b) == commit {
		return nil
	}
	return writeFile(path, []byte(commit))
}

// markAbsent records that a commit does not have the file, if it can: of a/b and a, one mark is a file
// where the other needs a folder. Only advice depends on marks.
func (c Cache) markAbsent(r Repo, commit, path string) {
	_ = writeFile(c.noExist(r, commit, path), nil)
}

// writeFile replaces a small file at once.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	temporary := path + temporarySuffix()
	err := os.WriteFile(temporary, data, 0o666)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}
