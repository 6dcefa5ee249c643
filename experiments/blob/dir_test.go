package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"exp/experiments/ident"
)

// SHA-256("abc"), FIPS 180-2 appendix B.1.
const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestPut(t *testing.T) {
	root := t.TempDir()
	d := At(root)
	digest, n, err := d.Put(iotest.OneByteReader(strings.NewReader("abc")))
	if err != nil || n != 3 || digest.String() != abc {
		t.Fatalf("Put = %s, %d, %v, want %s, 3", digest, n, err, abc)
	}
	path := filepath.Join(root, "blobs", "sha256", "ba", abc[2:])
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o444 || info.Size() != 3 {
		t.Fatalf("blob file: %v, %v, want mode 0444 and 3 bytes", info, err)
	}
	if got := d.Path(digest); got != path {
		t.Errorf("Path = %s, want %s", got, path)
	}
	if size, err := d.Stat(digest); err != nil || size != 3 {
		t.Errorf("Stat = %d, %v", size, err)
	}
	if got, err := d.Bytes(digest); err != nil || string(got) != "abc" {
		t.Errorf("Bytes = %q, %v", got, err)
	}
	f, err := d.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, _ := io.ReadAll(f); string(got) != "abc" {
		t.Errorf("Open reads %q", got)
	}
	wantNoTemp(t, root)
}

// The same content again is not written again: the file keeps its inode.
func TestPutAgainIsNoOp(t *testing.T) {
	root := t.TempDir()
	d := At(root)
	digest, err := d.PutBytes([]byte("abc"))
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(d.Path(digest))
	src := filepath.Join(root, "source")
	if err := os.WriteFile(src, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func() (ident.Digest, error){
		"Put":      func() (ident.Digest, error) { got, _, err := d.Put(strings.NewReader("abc")); return got, err },
		"PutBytes": func() (ident.Digest, error) { return d.PutBytes([]byte("abc")) },
		"PutFile":  func() (ident.Digest, error) { got, _, err := d.PutFile(src); return got, err },
	} {
		got, err := put()
		after, _ := os.Stat(d.Path(digest))
		if err != nil || got != digest || !os.SameFile(before, after) {
			t.Errorf("%s of a stored blob: %s, %v, same file: %t", name, got, err, os.SameFile(before, after))
		}
	}
	// PutBytes needs no temporary file at all.
	d.create = func(string) (file, error) { return nil, errors.New("created a file") }
	if _, err := d.PutBytes([]byte("abc")); err != nil {
		t.Errorf("PutBytes of a stored blob: %v", err)
	}
	wantNoTemp(t, root)
}

// PutWritten makes a blob of the bytes written; if writing or storing fails, it leaves nothing and says why.
func TestPutWritten(t *testing.T) {
	root := t.TempDir()
	d := At(root)
	text := strings.Repeat("0123456789abcdef", 1<<17) // more than the buffers hold
	write := func(w io.Writer) error {
		_, err := io.Copy(w, strings.NewReader(text))
		return err
	}
	digest, n, err := d.PutWritten(write)
	if err != nil || n != int64(len(text)) || digest != ident.Sum([]byte(text)) || d.Verify(digest, n) != nil {
		t.Errorf("%s of %d bytes: %v", digest.Short(), n, err)
	}
	lost := errors.New("a rank is lost")
	if _, _, err := d.PutWritten(func(w io.Writer) error { _ = write(w); return lost }); err != lost {
		t.Errorf("a failure to write is told as %v", err)
	}
	full := errors.New("no space")
	d.create = func(string) (file, error) { return nil, full }
	var stored *Error
	if _, _, err := d.PutWritten(write); !errors.As(err, &stored) || !errors.Is(err, full) {
		t.Errorf("a failure to store is told as %v", err)
	}
	wantNoTemp(t, root)
}

func TestPutRepairsTruncatedBlob(t *testing.T) {
	d := At(t.TempDir())
	digest, err := d.PutBytes([]byte("abc"))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, d.Path(digest), "ab")
	if d.Has(digest, 3) {
		t.Error("Has takes a truncated blob")
	}
	if _, err := d.PutBytes([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := d.Verify(digest, 3); err != nil {
		t.Errorf("after storing again: %v", err)
	}
}

// A process that is killed while it writes a blob leaves nothing.
func TestKilledWriter(t *testing.T) {
	root := t.TempDir()
	f, err := newFile(root)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if _, ok := f.(named); ok {
		t.Skip("this file system has no files without names")
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 0 {
		t.Errorf("while it is written: %v, %v", entries, err)
	}
}

// A blob that another process stored in the meantime stays; a damaged one is replaced,
// also on file systems without unnamed files.
func TestPublishOver(t *testing.T) {
	for name, create := range map[string]func(string) (file, error){"unnamed": newFile, "named": newNamed} {
		for _, there := range []string{"abc", "ab"} {
			root := t.TempDir()
			d := At(root)
			digest := ident.Sum([]byte("abc"))
			d.create = func(dir string) (file, error) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(d.Path(digest)), 0o777), os.WriteFile(d.Path(digest), []byte(there), 0o444)); err != nil {
					t.Fatal(err)
				}
				return create(dir)
			}
			if _, _, err := d.Put(strings.NewReader("abc")); err != nil {
				t.Errorf("%s over %q: %v", name, there, err)
			}
			if err := d.Verify(digest, 3); err != nil {
				t.Errorf("%s over %q: %v", name, there, err)
			}
			wantNoTemp(t, root)
		}
	}
}

func TestVerify(t *testing.T) {
	tests := []struct {
		name, content string
		size          int64
		want          string // in the error; "": no error
	}{
		{"intact", "abc", 3, ""},
		{"one bit", "abb", 3, "digest"},
		{"truncated", "ab", 3, "2 bytes, recorded as 3"},
		{"longer", "abcd", 3, "4 bytes, recorded as 3"},
		{"recorded wrongly", "abc", 4, "3 bytes, recorded as 4"},
	}
	for _, tt := range tests {
		d := At(t.TempDir())
		digest, err := d.PutBytes([]byte("abc"))
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, d.Path(digest), tt.content)
		err = d.Verify(digest, tt.size)
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), d.Path(digest)) {
			t.Errorf("%s: error %v, want ErrCorrupt with %q and the path", tt.name, err, tt.want)
		}
		if tt.content != "abc" {
			if _, err := d.Bytes(digest); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%s: Bytes error %v, want ErrCorrupt", tt.name, err)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	d := At(filepath.Join(t.TempDir(), "none"))
	digest := ident.Sum([]byte("abc"))
	_, statErr := d.Stat(digest)
	_, openErr := d.Open(digest)
	_, bytesErr := d.Bytes(digest)
	_, _, fileErr := d.PutFile(filepath.Join(t.TempDir(), "no such file"))
	for name, err := range map[string]error{
		"Stat": statErr, "Open": openErr, "Bytes": bytesErr, "Verify": d.Verify(digest, 3), "PutFile": fileErr,
	} {
		var e *Error
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &e) || e.Path == "" || e.Hint == "" {
			t.Errorf("%s: error %#v, want *Error with path and hint that wraps fs.ErrNotExist", name, err)
		}
	}
	if d.Has(digest, 3) {
		t.Error("Has finds a missing blob")
	}
}

// failing is a file with one failing operation.
type failing struct {
	file
	write, sync, chmod, close error
}

func (f failing) Write(p []byte) (int, error) { return pick(len(p)/2, f.write, f.file.Write, p) }

func (f failing) Sync() error { return errors.Join(f.file.Sync(), f.sync) }

func (f failing) Chmod(mode fs.FileMode) error { return errors.Join(f.file.Chmod(mode), f.chmod) }

func (f failing) Close() error { return errors.Join(f.file.Close(), f.close) }

// pick writes half and fails, or writes all.
func pick(half int, err error, write func([]byte) (int, error), p []byte) (int, error) {
	if err == nil {
		return write(p)
	}
	n, _ := write(p[:half])
	return n, err
}

// However storing fails, the error says why and nothing is left: no blob and no
// temporary file.
func TestPutFailureLeavesNothing(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "tmp/blob-1", Err: syscall.ENOSPC}
	tests := []struct {
		name string
		wrap func(file) file
		want error
	}{
		{"disk full while writing", func(f file) file { return failing{file: f, write: full} }, syscall.ENOSPC},
		{"disk full at sync", func(f file) file { return failing{file: f, sync: syscall.ENOSPC} }, syscall.ENOSPC},
		{"quota at close", func(f file) file { return failing{file: f, close: syscall.EDQUOT} }, syscall.EDQUOT},
		{"chmod", func(f file) file { return failing{file: f, chmod: fs.ErrPermission} }, fs.ErrPermission},
	}
	for i, tt := range append(tests, tests...) {
		root := t.TempDir()
		d := At(root)
		create := d.create
		if i >= len(tests) { // where files must have names
			create = newNamed
		}
		d.create = func(dir string) (file, error) {
			f, err := create(dir)
			return tt.wrap(f), err
		}
		digest, err := d.PutBytes(bytes.Repeat([]byte("abc"), 1<<20))
		var e *Error
		if !errors.Is(err, tt.want) || !errors.As(err, &e) || e.Path == "" {
			t.Errorf("%s: error %v, want *Error that wraps %v", tt.name, err, tt.want)
		}
		if tt.want != fs.ErrPermission && !strings.Contains(e.Hint, "space") {
			t.Errorf("%s: hint %q says nothing of space", tt.name, e.Hint)
		}
		if _, err := d.Stat(digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a blob is there: %v", tt.name, err)
		}
		wantNoTemp(t, root)
	}
}

// The kernel's own ENOSPC arrives as such.
func TestPutOnFullDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	d := At(t.TempDir())
	d.create = func(string) (file, error) {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		return unremovable{f}, err
	}
	if _, err := d.PutBytes([]byte("abc")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
}

// unremovable is a file that must not be removed.
type unremovable struct{ *os.File }

func (unremovable) Place(string) error { panic("not written, but placed") }
func (f unremovable) Discard()         { f.Close() }

func TestPutReaderError(t *testing.T) {
	root := t.TempDir()
	_, _, err := At(root).Put(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want the reader's", err)
	}
	wantNoTemp(t, root)
	if _, err := os.Stat(filepath.Join(root, "blobs")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a failed Put made blobs/")
	}
}

func TestPutConcurrently(t *testing.T) {
	root := t.TempDir()
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	contents := make([][]byte, 20)
	for i := range contents {
		contents[i] = fmt.Appendf(nil, "%d-%d", i, r.Uint64())
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d := At(root) // as another process would
			for _, b := range contents {
				if digest, err := d.PutBytes(b); err != nil || digest != ident.Sum(b) {
					t.Errorf("PutBytes(%q) = %s, %v", b, digest, err)
				}
			}
		})
	}
	wg.Wait()
	d := At(root)
	for _, b := range contents {
		if err := d.Verify(ident.Sum(b), int64(len(b))); err != nil {
			t.Error(err)
		}
	}
	wantNoTemp(t, root)
}

func TestFree(t *testing.T) {
	free, err := At(t.TempDir()).Free()
	if err != nil || free <= 0 {
		t.Errorf("Free = %d, %v", free, err)
	}
	if _, err := At(filepath.Join(t.TempDir(), "none")).Free(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Free of no folder: error %v", err)
	}
}

func wantNoTemp(t *testing.T, root string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "tmp"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: tmp/%s", e.Name())
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o444); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkPut(b *testing.B) {
	d := At(b.TempDir())
	content := make([]byte, 16<<20)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		content[0]++ // 256 different blobs, then no-ops that are hashed only
		if _, _, err := d.Put(bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}
