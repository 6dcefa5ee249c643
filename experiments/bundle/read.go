package bundle

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"exp/experiments/ident"
	"exp/experiments/store"
)

// Bundle is an open bundle with a verified seal. The caller closes it.
type Bundle struct {
	Manifest Manifest
	path     string
	file     *os.File
	entries  map[string]extent
}

// extent locates the bytes of an entry.
type extent struct{ off, size int64 }

// maxManifest bounds the size of a manifest; it allows over a million files.
const maxManifest = 256 << 20

// Open opens a bundle and checks its seal and table of contents. For a changed file the
// error is an *Error that wraps ErrCorrupt.
func Open(path string) (*Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b := &Bundle{path: path, file: f, entries: map[string]extent{}}
	if err := b.checkSeal(); err != nil {
		return nil, b.close(err)
	}
	if err := b.index(); err != nil {
		return nil, b.close(err)
	}
	if err := b.readManifest(); err != nil {
		return nil, b.close(err)
	}
	if b.Manifest.Schema > store.Version() {
		return nil, b.close(&NewerError{Path: path, Have: b.Manifest.Schema, Want: store.Version()})
	}
	return b, nil
}

// Close closes the file.
func (b *Bundle) Close() error { return b.file.Close() }

// close closes the file after an error and adds the path to the error.
func (b *Bundle) close(err error) error {
	b.file.Close()
	return b.fail(err)
}

func (b *Bundle) fail(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return &Error{Path: b.path, Err: err}
	}
	return err
}

// checkSeal hashes everything before the seal.
func (b *Bundle) checkSeal() error {
	info, err := b.file.Stat()
	if err != nil {
		return err
	}
	body := info.Size() - sealSize
	if !info.Mode().IsRegular() || body <= 0 {
		return corrupt("it is too short")
	}
	sum, n, err := ident.SumReader(io.NewSectionReader(b.file, 0, body))
	if err != nil {
		return err
	}
	end := make([]byte, sealSize)
	if _, err := b.file.ReadAt(end, body); err != nil {
		return err
	}
	if n != body || !bytes.Equal(end, sealOf(sum)) {
		return corrupt("its bytes do not match the seal")
	}
	return nil
}

// index finds the entries.
func (b *Bundle) index() error {
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := tar.NewReader(b.file)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return corrupt("%v", err)
		}
		if _, twice := b.entries[h.Name]; twice || h.Typeflag != tar.TypeReg {
			return corrupt("entry %s is duplicate or not a file", h.Name)
		}
		// The reader reads whole blocks, so the file is now at the start of the contents.
		off, err := b.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		b.entries[h.Name] = extent{off, h.Size}
	}
}

// readManifest reads the manifest and checks that the bundle has everything in it.
func (b *Bundle) readManifest() error {
	if b.entries[manifestName].size > maxManifest {
		return corrupt("its manifest is too long")
	}
	text, err := io.ReadAll(b.entry(manifestName))
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&b.Manifest); err != nil || b.Manifest.Format != formatName {
		return corrupt("its manifest does not have the format %s", formatName)
	}
	for _, t := range b.Manifest.Tables {
		if e, ok := b.entries[rowsDir+t.Name+".jsonl"]; !ok || e.size != t.Size {
			return corrupt("the rows of %s are missing", t.Name)
		}
	}
	for _, d := range b.Manifest.Blobs {
		if !b.holds(d) {
			return corrupt("blob %s is missing", d.SHA256.Short())
		}
	}
	runs := map[ident.Digest]bool{}
	for _, r := range b.Manifest.Runs {
		runs[r.RID] = true
	}
	for _, f := range b.Manifest.Files {
		if !f.valid() || !runs[f.Run] {
			return corrupt("a file %q belongs to no run", f.Path)
		}
		if !b.holds(f.Data) {
			return corrupt("file %s is missing", f.Path)
		}
	}
	return nil
}

func (b *Bundle) holds(d Data) bool {
	e, ok := b.entries[dataDir+d.SHA256.String()]
	return ok && e.size == d.Size && !d.SHA256.IsZero()
}

// entry returns the contents of an entry, empty if it does not exist.
func (b *Bundle) entry(name string) *io.SectionReader {
	e := b.entries[name]
	return io.NewSectionReader(b.file, e.off, e.size)
}
