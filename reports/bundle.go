package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"exp/experiments/ident"
)

// Bundle holds a report's files: content by relative, slash-separated path.
type Bundle map[string][]byte

// Digest returns the manifest's SHA-256; the manifest lists the digests of all other
// files.
func (b Bundle) Digest() ident.Digest { return ident.Sum(b[manifestName]) }

// ForeignError is returned when replacing a folder would lose files that are not the
// report's.
type ForeignError struct {
	Dir    string
	Reason string // "notes.txt is not part of the report"
	always bool   // --force does not help
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s cannot be replaced: %s", e.Dir, e.Reason)
}

// ExitCode returns the code for bad usage.
func (e *ForeignError) ExitCode() int { return 2 }

// Hint suggests what to do.
func (e *ForeignError) Hint() string {
	if e.always {
		return "choose a separate folder: --out DIR"
	}
	return "choose another --out, or use --force to move it aside and keep it"
}

// WriteTo makes dir hold exactly the bundle. It writes and syncs the files in a sibling
// folder and renames that to dir, so dir holds the whole new report or, after an error,
// the old one. A crash between the two renames leaves both next to dir, the older one as
// ".NAME.new-….old".
//
// An existing folder is replaced if it is empty or an unchanged report. Any other is a
// *ForeignError or, with force, is moved aside to the returned path, which is ""
// otherwise. WriteTo never deletes anything from such a folder.
func (b Bundle) WriteTo(dir string, force bool) (aside string, err error) {
	if dir, err = resolve(dir); err != nil {
		return "", err
	}
	reason, err := foreign(dir)
	if err != nil {
		return "", err
	}
	if reason != "" && !force {
		return "", &ForeignError{dir, reason, false}
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".new-")
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	defer os.RemoveAll(temp) // an incomplete report, or the older one
	if err := b.fill(temp); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if reason != "" {
		if aside, err = moveAside(dir); err != nil {
			return "", fmt.Errorf("report: %w", err)
		}
	}
	if err := replace(temp, dir); err != nil {
		if aside != "" {
			err = errors.Join(err, os.Rename(aside, dir))
		}
		return "", fmt.Errorf("report: %w", err)
	}
	return aside, nil
}

// resolve makes dir absolute and follows a link, so the link survives the rename.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("report: no folder given")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		abs = real
	}
	here, err := os.Getwd()
	if err == nil && (abs == here || strings.HasPrefix(here, strings.TrimSuffix(abs, "/")+"/")) {
		return "", &ForeignError{abs, "it is the current folder or one above it", true}
	}
	return abs, nil
}

// foreign returns why dir must not be replaced, "" if it may be: it does not exist, is
// empty, or is a report with unchanged files.
func foreign(dir string) (reason string, err error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("report: %w", err)
	case !info.IsDir():
		return "it is a file", nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if len(entries) == 0 {
		return "", nil
	}
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil || json.Unmarshal(text, &m) != nil || !strings.HasPrefix(m.Schema, manifestKind) {
		return "it has no report manifest, " + manifestName, nil
	}
	return changed(os.DirFS(dir), m)
}

// changed names the first file that does not match the manifest.
func changed(dir fs.FS, m Manifest) (reason string, err error) {
	known := map[string]string{}
	for _, f := range m.Files {
		known[f.Path] = f.Digest
	}
	err = fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || p == manifestName {
			return err
		}
		want, ok := known[p]
		if !ok {
			reason = p + " is not part of the report"
			return fs.SkipAll
		}
		b, err := fs.ReadFile(dir, p)
		if err != nil {
			return err
		}
		if ident.Sum(b).String() != want {
			reason = p + " has changed since it was written"
			return fs.SkipAll
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return reason, nil
}

// moveAside renames dir to the first free of dir.old, dir.old2, …
func moveAside(dir string) (string, error) {
	for i := 1; ; i++ {
		to := dir + ".old"
		if i > 1 {
			to += fmt.Sprint(i)
		}
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return to, os.Rename(dir, to)
		} else if err != nil {
			return "", err
		}
	}
}

// fill writes the files into dir, each synced.
func (b Bundle) fill(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // MkdirTemp makes it private
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("file %q would lie outside", name)
		}
		if err := os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755); err != nil {
			return err
		}
		if err := writeSynced(filepath.Join(dir, filepath.FromSlash(name)), b[name]); err != nil {
			return err
		}
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replace swaps temp and dir, and puts dir back on failure. Afterwards temp holds what
// was in dir.
func replace(temp, dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(temp, dir)
	}
	old := temp + ".old"
	if err := os.Rename(dir, old); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return errors.Join(err, os.Rename(old, dir))
	}
	return os.Rename(old, temp)
}
