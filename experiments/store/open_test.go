package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestOpenMissing(t *testing.T) {
	for name, dir := range map[string]string{
		"no folder":    filepath.Join(t.TempDir(), "none"),
		"empty folder": t.TempDir(),
	} {
		for _, readOnly := range []bool{false, true} {
			_, err := Open(dir, Options{ReadOnly: readOnly})
			var e *Error
			if !errors.Is(err, ErrNoStore) || !errors.As(err, &e) || e.Path != dir || !strings.Contains(e.Hint, "--store") {
				t.Errorf("%s, read-only %t: error %#v, want ErrNoStore with path and hint", name, readOnly, err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("%s: Open left %v", name, entries)
			}
		}
	}
	// What SQLite leaves of a store whose creation was interrupted.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "exp.db"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrNoStore) {
		t.Errorf("empty database: error %v, want ErrNoStore", err)
	}
	openAt(t, dir, Options{Create: true})
}

// A file where the directory should be.
func TestOpenNoPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "deeper")} {
		_, err := Open(dir, Options{Create: true})
		var e *Error
		if !errors.Is(err, ErrPlace) || !errors.As(err, &e) || e.Path != file || !strings.Contains(e.Hint, "--store") {
			t.Errorf("%s: error %#v, want ErrPlace with path and hint", dir, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, "/proc/none"} {
		if _, err := Open(dir, Options{Create: true}); !errors.Is(err, ErrPlace) || !strings.Contains(hintOf(err), "--store") {
			t.Errorf("%s: error %#v, want ErrPlace with a hint", dir, err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "text" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// Names that a URI would read differently.
func TestOpenOddNames(t *testing.T) {
	for _, name := range []string{"a?mode=memory", "b#c", "d%20e", "f g", "é", "h&i=j"} {
		dir := filepath.Join(t.TempDir(), name, ".exp")
		openAt(t, dir, Options{Create: true})
		if _, err := os.Stat(filepath.Join(dir, "exp.db")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		openAt(t, dir, Options{ReadOnly: true})
	}
}

func TestOpenSettings(t *testing.T) {
	db := open(t)
	for _, tt := range []struct {
		pool         *sql.DB
		pragma, want string
	}{
		{db.w, "journal_mode", "wal"},
		{db.w, "synchronous", "1"},
		{db.w, "foreign_keys", "1"},
		{db.w, "busy_timeout", "5000"},
		{db.w, "temp_store", "2"},
		{db.w, "application_id", "1163415601"}, // 0x45585031
		{db.w, "user_version", strconv.Itoa(Version())},
		{db.r, "query_only", "1"},
		{db.r, "busy_timeout", "5000"},
	} {
		var got string
		if err := tt.pool.QueryRow("PRAGMA " + tt.pragma).Scan(&got); err != nil || got != tt.want {
			t.Errorf("%s = %s, %v, want %s", tt.pragma, got, err, tt.want)
		}
	}
	if _, err := db.r.Exec(`DELETE FROM runs`); err == nil {
		t.Error("a reader may write")
	}
}

// Reading never changes a file, and needs no permission to.
func TestOpenReadOnly(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{Create: true, Clock: clock()})
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, db, newRun("x", 0))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(dir, "exp.db"))

	db = openAt(t, dir, Options{ReadOnly: true})
	runs, err := db.Runs(context.Background(), RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Errorf("Runs = %d, %v, want 1", len(runs), err)
	}
	if _, _, err := db.EnsureRun(context.Background(), newRun("y", 0)); !errors.Is(err, ErrReadOnly) || !strings.Contains(hintOf(err), "exp export") {
		t.Errorf("EnsureRun: error %v, want ErrReadOnly and what to do", err)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "exp.db")); !bytes.Equal(before, after) {
		t.Error("reading changed the database")
	}
}

// A store in a folder that may not be written can be read.
func TestOpenWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	db, err := Open(dir, Options{Create: true, Clock: clock()})
	if err != nil {
		t.Fatal(err)
	}
	ensure(t, db, newRun("x", 0))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o777)
	db = openAt(t, dir, Options{ReadOnly: true})
	if runs, err := db.Runs(context.Background(), RunQuery{}); err != nil || len(runs) != 1 {
		t.Errorf("Runs = %d, %v, want 1", len(runs), err)
	}
}

func TestOpenDamaged(t *testing.T) {
	tests := []struct {
		name   string
		damage func(t *testing.T, file string, content []byte)
	}{
		{"garbage", func(t *testing.T, file string, content []byte) {
			write(t, file, bytes.Repeat([]byte("not a database. "), 1000))
		}},
		{"garbage of a few bytes", func(t *testing.T, file string, content []byte) {
			write(t, file, []byte("x"))
		}},
		{"truncated to half", func(t *testing.T, file string, content []byte) {
			write(t, file, content[:len(content)/2])
		}},
		{"truncated inside the header", func(t *testing.T, file string, content []byte) {
			write(t, file, content[:50])
		}},
		{"emptied", func(t *testing.T, file string, content []byte) {
			write(t, file, nil)
		}},
		{"another program's", func(t *testing.T, file string, content []byte) {
			os.Remove(file)
			other, err := sql.Open("sqlite3", file)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if _, err := other.Exec("CREATE TABLE t (x); PRAGMA application_id = 7; PRAGMA user_version = 1"); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			db, err := Open(dir, Options{Create: true, Clock: clock()})
			if err != nil {
				t.Fatal(err)
			}
			ensure(t, db, newRun("x", 0))
			if _, err := db.Blobs.PutBytes([]byte("weights")); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "exp.db")
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(t, file, content)
			damaged, _ := os.ReadFile(file)
			for _, o := range []Options{{ReadOnly: true}, {}, {Create: true}} {
				_, err := Open(dir, o)
				var e *Error
				if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != file || e.Hint == "" {
					t.Errorf("%+v: error %v, want ErrCorrupt with path and hint", o, err)
				}
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(damaged, after) {
				t.Error("opening changed the file")
			}
		})
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestOpenOnNetwork(t *testing.T) {
	nfs := func(string) (string, error) { return "NFS", nil }
	dir := t.TempDir()
	_, err := Open(dir, Options{Create: true, networkFS: nfs})
	var e *Error
	if !errors.Is(err, ErrNetwork) || !errors.As(err, &e) || !strings.Contains(err.Error(), "NFS") || !strings.Contains(e.Hint, "rollback") {
		t.Errorf("create: error %v, want ErrNetwork that names NFS, with hint", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("create left %v", entries)
	}

	db, err := Open(dir, Options{Create: true, Rollback: true, Clock: clock(), networkFS: nfs})
	if err != nil {
		t.Fatal(err)
	}
	run := ensure(t, db, newRun("x", 0))
	w := db.NewStepWriter(run.ID, 0, nil)
	if err := errors.Join(w.Record(step60(1)), w.Close()); err != nil {
		t.Error(err)
	}
	if curves, err := db.Metrics(context.Background(), run.ID, "", 0, AllSteps); err != nil || len(curves) != 60 {
		t.Errorf("rollback journal: %d curves, %v", len(curves), err)
	}
	var mode string
	if err := db.w.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "delete" {
		t.Errorf("journal_mode = %s, %v, want delete", mode, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{networkFS: nfs}); !errors.Is(err, ErrNetwork) {
		t.Errorf("write: error %v, want ErrNetwork", err)
	}
	openAt(t, dir, Options{ReadOnly: true, networkFS: nfs})

	// A database that is a link to a local disk is not on the network.
	root := t.TempDir()
	local := filepath.Join(root, "local")
	for i, target := range []string{filepath.Join(local, "a.db"), "../local/b.db"} {
		shared := filepath.Join(root, fmt.Sprint("shared", i))
		if err := errors.Join(os.MkdirAll(local, 0o755), os.Mkdir(shared, 0o755),
			os.Symlink(target, filepath.Join(shared, "exp.db"))); err != nil {
			t.Fatal(err)
		}
		openAt(t, shared, Options{Create: true, networkFS: func(dir string) (string, error) {
			if dir == local {
				return "", nil
			}
			return "NFS", nil
		}})
	}
}

func TestNetworkFS(t *testing.T) {
	if _, err := networkFS(filepath.Join(t.TempDir(), "none")); err == nil {
		if _, known := os.Stat("/proc/self/mounts"); known == nil {
			t.Error("a folder that is not there is on a file system")
		}
	}
	if name, err := networkFS(t.TempDir()); err != nil || name != "" {
		t.Skipf("the temporary folder is on %q, %v", name, err)
	}
}

// Many processes may create one store at the same moment; here each connection
// stands for one.
func TestOpenConcurrently(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			db, err := Open(dir, Options{Create: true, Clock: clock()})
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			defer db.Close()
			if _, _, err := db.EnsureRun(context.Background(), newRun("x", int64(i))); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			if _, err := db.Blobs.PutBytes([]byte{byte(i)}); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	db := openAt(t, dir, Options{ReadOnly: true})
	if runs, err := db.Runs(context.Background(), RunQuery{}); err != nil || len(runs) != 8 {
		t.Errorf("%d runs, %v, want 8", len(runs), err)
	}
}

func TestCheckFindsDanglingRows(t *testing.T) {
	db := open(t)
	ctx := context.Background()
	if err := db.Check(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := db.w.Exec("PRAGMA foreign_keys = OFF; INSERT INTO run_tags (run, tag) VALUES (7, 'x'); PRAGMA foreign_keys = ON"); err != nil {
		t.Fatal(err)
	}
	if err := db.Check(ctx); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "run_tags") {
		t.Errorf("error %v, want ErrCorrupt that names run_tags", err)
	}
}

// A page of noise in the middle of the file is found without reading indexes; a check
// that takes longer than it may says so.
func TestQuickCheck(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir, Options{Create: true})
	ctx := context.Background()
	if err := db.QuickCheck(ctx); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.QuickCheck(over); !errors.Is(err, context.Canceled) || errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want the context's", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "exp.db")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw[len(raw)/2:], bytes.Repeat([]byte{0xa5}, 4096))
	if err := os.WriteFile(file, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := openAt(t, dir, Options{ReadOnly: true}).QuickCheck(ctx); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
}

func TestFilesystem(t *testing.T) {
	f, err := Filesystem(t.TempDir())
	if err != nil || f.Network || f.Free == 0 {
		t.Errorf("%+v, %v; want a local file system with space", f, err)
	}
	if name, err := networkFS(t.TempDir()); err != nil || name != "" {
		t.Errorf("Open takes it for %q, %v", name, err)
	}
	for id, name := range networkNames {
		if localNames[id] != "" {
			t.Errorf("%s is both local and not", name)
		}
	}
}

// killedAmid copies a database whose process was killed amid a transaction to a new store's folder: with a
// rollback journal, as while the store is made and with Options.Rollback.
func killedAmid(t *testing.T, statements ...string) (dir string) {
	t.Helper()
	from, to := t.TempDir(), t.TempDir()
	half := &DB{file: filepath.Join(from, "exp.db"), lockWait: time.Second}
	w := half.pool(map[string]string{"mode": "rwc", "_journal_mode": "DELETE"}, "PRAGMA cache_size = 2;", 1)
	defer w.Close()
	for _, s := range statements {
		if _, err := w.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	// More than the cache holds: it reaches the disk before the commit.
	tx, err := w.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("CREATE TABLE half (x); INSERT INTO half VALUES (zeroblob(1000000))"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"exp.db", "exp.db-journal"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o666)
		}
		if err != nil || len(b) == 0 {
			t.Fatalf("%s of %d bytes, %v", name, len(b), err)
		}
	}
	return to
}

// A process that was killed while it made the database leaves a rollback journal,
// which no reader may undo.
func TestOpenAfterKilledCreation(t *testing.T) {
	to := killedAmid(t)
	if _, err := Open(to, Options{ReadOnly: true}); !errors.Is(err, ErrNoStore) {
		t.Errorf("for reading: error %v, want ErrNoStore", err)
	}
	to = killedAmid(t)
	db, err := Open(to, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if runs, err := db.Runs(t.Context(), RunQuery{}); err != nil || len(runs) != 0 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// Readers undo what a killed process left half written. That turns no WAL on, which would not work where
// Options.Rollback is needed.
func TestReadAfterKill(t *testing.T) {
	for _, o := range []Options{{ReadOnly: true}, {Rollback: true}} {
		dir := killedAmid(t, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = 1; CREATE TABLE had (x)",
			applicationID))
		o.migrations = []migration{func(context.Context, *sql.Tx) error { return nil }}
		o.networkFS = func(string) (string, error) { return "nfs", nil }
		db := openAt(t, dir, o)
		var tables, mode string
		err := errors.Join(db.r.QueryRow("SELECT group_concat(name) FROM sqlite_schema").Scan(&tables),
			db.r.QueryRow("PRAGMA journal_mode").Scan(&mode))
		if err != nil || tables != "had" || mode != "delete" {
			t.Errorf("%+v: tables %q, journal mode %q, %v; want had, delete", o, tables, mode, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "exp.db-journal")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%+v: the journal is still there: %v", o, err)
		}
	}
}

// In a folder that may not be written, exp.db alone is read only if it is the whole store.
func TestOpenWithoutPermissionAfterKill(t *testing.T) {
	dir := killedAmid(t)
	db := &DB{file: filepath.Join(dir, "exp.db")}
	if err := db.whole(); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "exp.db-journal") {
		t.Errorf("a journal: error %v", err)
	}
	if err := os.Rename(db.file+"-journal", db.file+"-wal"); err != nil {
		t.Fatal(err)
	}
	if err := db.whole(); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "exp.db-wal") {
		t.Errorf("a log: error %v", err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o777)
	if _, err := Open(dir, Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) || !strings.Contains(hintOf(err), "copy all of it") {
		t.Errorf("Open: error %v, want ErrReadOnly and what to do", err)
	}
	if err := os.Truncate(db.file+"-wal", 0); err != nil {
		t.Fatal(err)
	}
	if err := db.whole(); err != nil {
		t.Errorf("an empty log: %v", err)
	}
}

func hintOf(err error) string {
	var e *Error
	errors.As(err, &e)
	return e.Hint
}

// A store whose database may not be written is a read-only store, not a missing place for one, and the error says why.
func TestNotWritable(t *testing.T) {
	const fixed = "/sys/kernel/fscaps" // which nobody can write
	if f, err := os.OpenFile(fixed, os.O_RDWR, 0); err == nil || errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			f.Close()
		}
		t.Skipf("%s: %v", fixed, err)
	}
	dir := t.TempDir()
	if err := os.Symlink(fixed, filepath.Join(dir, "exp.db")); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{Create: true})
	if !errors.Is(err, ErrReadOnly) || errors.Is(err, ErrPlace) || !strings.Contains(err.Error(), "the file exists, but its ") {
		t.Errorf("error %v", err)
	}
	db := &DB{file: filepath.Join(dir, "exp.db")}
	for cause, want := range map[error]string{syscall.EROFS: "mounted read-only", syscall.EACCES: "permissions do not let user",
		syscall.EMFILE: syscall.EMFILE.Error()} {
		if err := db.readOnly(&fs.PathError{Op: "open", Path: db.file, Err: cause}); !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", cause, err)
		}
	}
	db.file += "x"
	if err := db.readOnly(syscall.EACCES); errors.Is(err, ErrReadOnly) {
		t.Errorf("without a database: %v", err)
	}
}
