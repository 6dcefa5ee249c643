package bundle

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"exp/experiments/aside"
	"exp/experiments/blob"
	"exp/experiments/ident"
	"exp/experiments/store"
)

// Options selects what to leave out of a bundle.
type Options struct {
	NoWeights bool // weights, checkpoints, merged models
	NoTexts   bool // prompts and completions; their scores stay
	// Live also writes runs that are being executed: the files of one moment, and the rows
	// of the next, so every checkpoint has its rows. If a file goes while Write lists it,
	// the error wraps fs.ErrNotExist.
	Live bool
	// Progress, if not nil, receives the bytes written and in total.
	Progress func(done, of int64)
}

func (o Options) leftOut() []string {
	list := []string{}
	if o.NoWeights {
		list = append(list, LeftWeights)
	}
	if o.NoTexts {
		list = append(list, LeftTexts)
	}
	return list
}

// leavesOut reports whether a kind of blob is left out.
func (o Options) leavesOut(kind string) bool {
	return o.NoWeights && kind == "weights" ||
		o.NoTexts && (kind == "samples" || kind == "completions" || kind == "image")
}

// BusyError reports a run that is being executed, which cannot be exported whole.
type BusyError struct {
	Run store.Run
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s is being executed", e.Run.RID.Short())
}

// Hint says what a person can do.
func (e *BusyError) Hint() string { return "export it after it has ended" }

// ExitCode returns the code for a held lock.
func (e *BusyError) ExitCode() int { return 7 }

// Write exports runs, with the runs they depend on, to a file at path, which it creates
// or replaces when the bundle is complete. It removes what an earlier Write to path left
// when it was killed. A missing or corrupt blob is a *blob.Error.
func Write(ctx context.Context, db *store.DB, path string, runs []store.Run, o Options) (*Manifest, error) {
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	tmp, err := aside.File(path)
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name()) // no effect after the rename
	defer tmp.Close()
	w := newWriter(ctx, db, tmp, o)
	if err := w.write(runs); err != nil {
		return nil, err
	}
	// Give the file the usual permissions: CreateTemp makes it private.
	if err := errors.Join(tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return nil, err
	}
	return &w.manifest, os.Rename(tmp.Name(), path)
}

// writer is one Write.
type writer struct {
	ctx      context.Context
	db       *store.DB
	o        Options
	dir      string // for rows, until their size is known
	out      *bufio.Writer
	sum      *summer
	tar      *tar.Writer
	manifest Manifest
	held     string                   // for links to files of runs that are being executed
	omitted  map[string]bool          // digests of blobs that are left out, as bytes
	contents map[ident.Digest]content // of files, unless a blob has the same bytes
	done, of int64
}

// content is a file to copy.
type content struct {
	path string
	size int64
}

func newWriter(ctx context.Context, db *store.DB, f *os.File, o Options) *writer {
	w := &writer{ctx: ctx, db: db, o: o, dir: filepath.Dir(f.Name()), out: bufio.NewWriterSize(f, 1<<20),
		omitted:  map[string]bool{},
		contents: map[ident.Digest]content{}}
	w.sum = newSummer(w.out)
	w.tar = tar.NewWriter(w.sum)
	w.manifest = Manifest{Format: formatName, Schema: store.Version(), LeftOut: o.leftOut(), Tables: []Table{},
		Blobs: []Data{}, Files: []File{}}
	return w
}

func (w *writer) write(chosen []store.Run) error {
	ids := []int64{}
	for _, r := range chosen {
		ids = append(ids, r.ID)
	}
	all, err := w.db.Lineage(w.ctx, ids)
	if err != nil {
		return err
	}
	ids = ids[:0]
	for _, r := range all {
		if _, busy := w.db.Alive(r.RID); busy && !w.o.Live {
			return &BusyError{r}
		}
		ids = append(ids, r.ID)
		w.manifest.Runs = append(w.manifest.Runs, Run{RID: r.RID, Name: r.Name, Seed: r.Seed,
			Chosen: slices.ContainsFunc(chosen, func(c store.Run) bool { return c.ID == r.ID })})
	}
	if w.o.Live {
		if err := w.makeHeld(); err != nil {
			return err
		}
		defer os.RemoveAll(w.held)
	}
	if err := w.findFiles(all); err != nil {
		return err
	}
	if err := w.db.ExportRows(w.ctx, ids, w.table); err != nil {
		return err
	}
	for _, d := range w.manifest.Blobs {
		delete(w.contents, d.SHA256)
	}
	for _, c := range w.contents {
		w.of += c.size
	}
	for _, d := range w.manifest.Blobs {
		if err := w.blob(d); err != nil {
			return err
		}
	}
	for _, f := range w.manifest.Files {
		if err := w.file(f); err != nil {
			return err
		}
	}
	return w.end()
}

// end writes the manifest and the seal.
func (w *writer) end() error {
	text, err := json.MarshalIndent(w.manifest, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := w.entry(manifestName, int64(len(text)), strings.NewReader(string(text))); err != nil {
		return err
	}
	if err := w.tar.Flush(); err != nil {
		return err
	}
	if _, err := w.out.Write(sealOf(w.sum.digest())); err != nil {
		return err
	}
	return w.out.Flush()
}

// table writes the rows of a table via a file, since a tar needs the size first.
func (w *writer) table(rows store.PortableRows) error {
	tmp, err := os.CreateTemp(w.dir, ".rows-*")
	if err != nil {
		return err
	}
	defer tmp.Close()
	if err := os.Remove(tmp.Name()); err != nil { // the open file stays, and a killed process leaves nothing
		return err
	}
	buffer := bufio.NewWriterSize(tmp, 1<<18)
	sum := newSummer(buffer)
	t := Table{Name: rows.Table}
	columns, err := json.Marshal(rows.Columns)
	if err != nil {
		return err
	}
	line := append(columns, '\n')
	at := map[string]int{}
	for i, c := range rows.Columns {
		at[c.Name] = i
	}
	for {
		if _, err := sum.Write(line); err != nil {
			return err
		}
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if line = line[:0]; !w.keep(rows.Table, at, row) {
			continue
		}
		t.Rows++
		if line, err = appendRow(line, row); err != nil {
			return fmt.Errorf("row %d of %s: %w", t.Rows, t.Name, err)
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	t.Size, t.SHA256 = sum.n, sum.digest()
	w.manifest.Tables = append(w.manifest.Tables, t)
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.entry(rowsDir+t.Name+".jsonl", t.Size, tmp)
}

// keep reports whether a row goes into the bundle, and removes its references to blobs
// that are left out: an output keeps its digest but loses its size, which marks it as not
// a blob, and a sample loses the location of its text.
func (w *writer) keep(table string, at map[string]int, row []any) bool {
	omitted := func(column string) bool {
		d, _ := row[at[column]].([]byte)
		return w.omitted[string(d)]
	}
	switch table {
	case "blobs":
		d, _ := row[at["digest"]].([]byte)
		kind, _ := row[at["kind"]].(string)
		if w.o.leavesOut(kind) {
			w.omitted[string(d)] = true
			return false
		}
		size, _ := row[at["size"]].(int64)
		w.manifest.Blobs = append(w.manifest.Blobs, Data{SHA256: ident.Digest(d), Size: size})
		w.of += size
	case "artifacts":
		return !omitted("digest")
	case "stage_io":
		if omitted("digest") {
			row[at["size"]] = nil
		}
	case "samples":
		if omitted("pack") {
			row[at["pack"]], row[at["off"]], row[at["len"]] = nil, nil, nil
		}
	}
	return true
}

// findFiles lists the files of the runs' directories.
func (w *writer) findFiles(runs []store.Run) error {
	var paths []string // of w.manifest.Files
	var sizes []int64
	for _, r := range runs {
		root := w.db.RunDir(r.RID)
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == root {
				return nil
			}
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			rel = filepath.ToSlash(rel)
			if !ours(rel) || w.o.NoWeights && heavy(rel) {
				return nil
			}
			if path, err = w.hold(path); err != nil {
				return err
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			w.manifest.Files = append(w.manifest.Files, File{Run: r.RID, Path: rel})
			paths, sizes = append(paths, path), append(sizes, info.Size())
			return w.ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return w.sumFiles(paths, sizes)
}

// sumFiles sets the digests and sizes of w.manifest.Files, whose paths and present sizes are given.
func (w *writer) sumFiles(paths []string, sizes []int64) error {
	errs := make([]error, len(paths))
	ident.OnAllCores(sizes, func(i int) {
		f := &w.manifest.Files[i]
		if errs[i] = w.ctx.Err(); errs[i] == nil {
			f.SHA256, f.Size, errs[i] = sumFile(paths[i])
		}
	})
	for i, f := range w.manifest.Files {
		if errs[i] != nil {
			return errs[i]
		}
		w.contents[f.SHA256] = content{paths[i], f.Size}
	}
	return nil
}

// makeHeld creates the folder of links, on the file system of the store.
func (w *writer) makeHeld() error {
	dir := filepath.Join(w.db.Dir(), "tmp")
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		w.held, err = os.MkdirTemp(dir, "export-*")
	}
	return err
}

// hold keeps the file of a run that is being executed, which may remove it meanwhile, and
// returns where. Where links are impossible, that is the file itself.
func (w *writer) hold(path string) (string, error) {
	if !w.o.Live {
		return path, nil
	}
	held := filepath.Join(w.held, strconv.Itoa(len(w.manifest.Files)))
	if err := os.Link(path, held); errors.Is(err, fs.ErrNotExist) {
		return "", err
	} else if err != nil {
		return path, nil
	}
	return held, nil
}

func sumFile(path string) (ident.Digest, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return ident.Digest{}, 0, err
	}
	defer f.Close()
	return ident.SumReader(f)
}

// blob writes a blob and checks its digest.
func (w *writer) blob(d Data) error {
	f, err := w.db.Blobs.Open(d.SHA256)
	if err != nil {
		return err
	}
	defer f.Close()
	return w.data(d, f, f.Name())
}

// file writes a run's file, unless a blob or another file has the same bytes.
func (w *writer) file(f File) error {
	c, ok := w.contents[f.SHA256]
	if !ok {
		return nil
	}
	delete(w.contents, f.SHA256)
	r, err := os.Open(c.path)
	if err != nil {
		return err
	}
	defer r.Close()
	return w.data(f.Data, r, c.path)
}

// data writes contents and checks their digest.
func (w *writer) data(d Data, r io.Reader, path string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.o.Progress(w.done, w.of)
	w.done += d.Size
	sum := newSummer(io.Discard)
	err := w.entry(dataDir+d.SHA256.String(), d.Size, io.TeeReader(r, sum))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrWriteTooLong) || err == nil &&
		sum.digest() != d.SHA256 {
		return &blob.Error{Op: "export", Path: path, Digest: d.SHA256,
			Err:  fmt.Errorf("%w: its bytes changed since they were stored", blob.ErrCorrupt),
			Hint: "exp fsck lists what depends on it; rerun its stage to recreate it"}
	}
	return err
}

// entry writes r, which must have exactly size bytes.
func (w *writer) entry(name string, size int64, r io.Reader) error {
	if err := w.tar.WriteHeader(header(name, size)); err != nil {
		return err
	}
	n, err := io.Copy(w.tar, r)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return err
}
