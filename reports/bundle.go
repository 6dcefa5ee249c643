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

// Bundle is a report as files: relative slash-separated path to content.
type Bundle map[string][]byte

// Digest is that of the manifest, which has those of all other files.
func (b Bundle) Digest() ident.Digest { return ident.Sum(b[manifestName]) }

// ForeignError is returned when a folder holds what would be lost.
type ForeignError struct {
	Dir    string
	Reason string // what is there, "notes.txt is not part of it"
	always bool   // --force does not help
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not a report that may be replaced: %s", e.Dir, e.Reason)
}

// ExitCode is that of bad usage.
func (e *ForeignError) ExitCode() int { return 2 }

// Hint says what a person can do.
func (e *ForeignError) Hint() string {
	if e.always {
		return "choose a folder of its own: --out DIR"
	}
	return "choose another --out, or --force moves it aside and keeps it"
}

// WriteTo makes dir hold exactly the bundle. The files are written and synced in
// a folder beside dir, which then takes its place by renaming: a report is there
// whole or, after an error, as it was before. A crash between the two renames leaves
// both beside dir, the older one as ".NAME.new-….old".
//
// A folder that is there is replaced if it is empty or an unchanged report. Any
// other is a *ForeignError, or with force moved aside to the path that is returned;
// it is "" otherwise. Nothing of a foreign folder is ever deleted.
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
	defer os.RemoveAll(temp) // what is left in it: an incomplete report, or the older one
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

// resolve makes dir absolute and follows a link, so that the link stays one.
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

// foreign says what stands against replacing dir, "" if nothing does: it is not
// there, empty, or a report whose files are as they were written.
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
		return "it has no " + manifestName + " of a report", nil
	}
	return changed(os.DirFS(dir), m)
}

// changed names the first file that is not as the manifest says.
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
			reason = p + " is not part of it"
			return fs.SkipAll
		}
		b, err := fs.ReadFile(dir, p)
		if err != nil {
			return err
		}
		if ident.Sum(b).String() != want {
			reason = p + " was changed since it was written"
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

// replace puts the folder temp in the place of dir, and dir back if that fails.
// What was in dir is in temp afterwards.
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
