package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func errorsIs(err, want error, e **Error) bool { return errors.Is(err, want) && errors.As(err, e) }

// A Get takes what a run reads, in the layout that Python shares. A second one asks for no
// file, and the cache alone then finds the model.
func TestGet(t *testing.T) {
	h, cache := newHub(t), t.TempDir()
	c := h.client(cache)
	var last Progress
	c.Watch = func(p Progress) { last = p }
	res := h.get(c)
	if res.Commit != firstCommit || res.Fetched != res.Bytes || last.Done != res.Bytes || last.Total != res.Bytes {
		t.Errorf("%+v, progress %+v", res, last)
	}
	d := h.digest
	want := []string{
		".locks/models--Org--Toy/" + d("config.json") + ".lock", ".locks/models--Org--Toy/" + d("tokenizer.json") + ".lock",
		".locks/models--Org--Toy/" + d("model.safetensors") + ".lock",
		"models--Org--Toy/.no_exist/" + firstCommit + "/adapter_config.json",
		"models--Org--Toy/.no_exist/" + firstCommit + "/added_tokens.json",
		"models--Org--Toy/.no_exist/" + firstCommit + "/generation_config.json",
		"models--Org--Toy/.no_exist/" + firstCommit + "/model.safetensors.index.json",
		"models--Org--Toy/.no_exist/" + firstCommit + "/special_tokens_map.json",
		"models--Org--Toy/blobs/" + d("config.json"), "models--Org--Toy/blobs/" + d("tokenizer.json"),
		"models--Org--Toy/blobs/" + d("model.safetensors"), "models--Org--Toy/refs/main",
	}
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.json"} {
		want = append(want, "models--Org--Toy/snapshots/"+firstCommit+"/"+name+" -> ../../blobs/"+d(name))
	}
	slices.Sort(want)
	got := treeOf(t, cache)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cache (-want +got):\n%s", diff)
	}
	before := h.logged("resolve")
	if res := h.get(c); res.Fetched != 0 || h.logged("resolve") != before {
		t.Errorf("the second get fetched %d bytes", res.Fetched)
	}
	f, err := c.Cache.Find(toy)
	if err != nil || f.Path != res.Path || f.Commit != firstCommit {
		t.Errorf("%+v, %v", f, err)
	}
	sums, err := f.Sums(context.Background())
	if err != nil || len(sums) != 3 || sums[1].SHA256 != d("model.safetensors") || len(sums[0].SHA256) != 64 {
		t.Errorf("%+v, %v", sums, err)
	}
}

// A revision that moved gives another commit; what both have is fetched once, and a record
// of the first commit is still served.
func TestMovedRevision(t *testing.T) {
	h, cache := newHub(t), t.TempDir()
	c := h.client(cache)
	h.get(c)
	h.commit, h.files["config.json"] = secondCommit, `{"a":2}`
	res := h.get(c)
	if res.Commit != secondCommit || res.Fetched != int64(len(`{"a":2}`)) {
		t.Errorf("%+v", res)
	}
	now, err := c.Cache.Find(toy)
	old, err2 := c.Cache.FindAt(toy, firstCommit)
	if err != nil || err2 != nil || now.Commit != secondCommit || old.Commit != firstCommit {
		t.Errorf("%s, %s, %v, %v", now.Commit, old.Commit, err, err2)
	}
}

// A connection that breaks is continued where it broke, in this call and in a later one.
func TestResume(t *testing.T) {
	h, cache := newHub(t), t.TempDir()
	c := h.client(cache)
	cut := true
	h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path != "/model.safetensors" || !cut || n > 0 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(h.files["model.safetensors"])))
		_, _ = w.Write([]byte(h.files["model.safetensors"][:3000]))
		return true // the server closes the connection: the body is short
	}
	h.get(c)
	if h.logged("GET /model.safetensors bytes=3000-") != 1 {
		t.Errorf("requests: %v", h.log)
	}
	// Left by another process.
	os.RemoveAll(filepath.Join(cache, "models--Org--Toy"))
	blob := c.Cache.blob(toy.Repo, h.digest("model.safetensors"))
	if err := os.MkdirAll(filepath.Dir(blob), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{h.files["model.safetensors"][:17], strings.Repeat("x", 9000), h.files["model.safetensors"], strings.Repeat("y", 20)} {
		os.RemoveAll(filepath.Join(cache, "models--Org--Toy", "snapshots"))
		os.Remove(blob)
		if err := os.WriteFile(blob+incomplete, []byte(left), 0o666); err != nil {
			t.Fatal(err)
		}
		h.get(c)
		if b, err := os.ReadFile(blob); err != nil || string(b) != h.files["model.safetensors"] {
			t.Errorf("after %d bytes of before: %d bytes, %v", len(left), len(b), err)
		}
	}
	if h.logged("GET /model.safetensors bytes=17-") != 1 {
		t.Errorf("requests: %v", h.log)
	}
}

// A server that answers a range with the whole, with another range or with 416 makes the
// file begin again.
func TestRangeRefused(t *testing.T) {
	for _, name := range []string{"whole", "other", "refused"} {
		h, cache := newHub(t), t.TempDir()
		c := h.client(cache)
		text := h.files["model.safetensors"]
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.URL.Path != "/model.safetensors" || r.Header.Get("Range") == "" {
				return false
			}
			switch name {
			case "whole":
				_, _ = w.Write([]byte(text))
			case "other":
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(text)-1, len(text)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write([]byte(text))
			case "refused":
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			}
			return true
		}
		blob := c.Cache.blob(toy.Repo, h.digest("model.safetensors"))
		if err := errors.Join(os.MkdirAll(filepath.Dir(blob), 0o777), os.WriteFile(blob+incomplete, []byte("weig"), 0o666)); err != nil {
			t.Fatal(err)
		}
		h.get(c)
		if b, err := os.ReadFile(blob); err != nil || string(b) != text {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// A server without ranges whose connection always breaks ends the tries.
func TestNoProgress(t *testing.T) {
	h := newHub(t)
	h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if r.URL.Path != "/model.safetensors" || n > 100 {
			return false
		}
		w.Header().Set("Content-Length", "8000")
		_, _ = w.Write([]byte(h.files["model.safetensors"][:4000]))
		return true
	}
	h.fails(h.client(t.TempDir()), ErrUnreachable)
	if tries := h.logged("GET /model.safetensors"); tries != retries+1 {
		t.Errorf("%d tries", tries)
	}
}

// An answer that begins and then stays silent is asked for again.
func TestSilence(t *testing.T) {
	for _, part := range []string{"/revision/", "/tree/", "/model.safetensors"} {
		h := newHub(t)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, part) || n > 0 {
				return false
			}
			w.Header().Set("Content-Length", "8000")
			_, _ = w.Write([]byte("["))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		}
		c := h.client(t.TempDir())
		c.stall = 50 * time.Millisecond
		h.get(c)
	}
}

// Two names may be absent although one would be the other's folder.
func TestAbsentNames(t *testing.T) {
	h := newHub(t)
	r := Request{Ref: toy, Include: []string{"none/file", "none", "none/file", "config.json"}}
	if _, err := h.client(t.TempDir()).Get(context.Background(), r); err != nil {
		t.Error(err)
	}
}

// A hub that redirects in circles or to nowhere is said to be unreachable.
func TestRedirects(t *testing.T) {
	for _, to := range []string{"/api/models/Org/Toy/revision/main", "mailto:someone"} {
		h := newHub(t)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return true
		}
		if e := h.fails(h.client(t.TempDir()), ErrUnreachable); !strings.Contains(e.Error(), "redirects") {
			t.Error(e)
		}
	}
}

// Bytes that are not the announced ones are refused, and nothing of them stays.
func TestWrongContent(t *testing.T) {
	for _, tt := range []struct {
		name, file, body string
		want             error
	}{
		{"digest", "/model.safetensors", strings.Repeat("WEIGHTS ", 1000), ErrContent},
		{"short", "/model.safetensors", "short", ErrContent},
		{"long", "/model.safetensors", strings.Repeat("weights ", 1001), ErrContent},
		{"git", "/Org/Toy/resolve/" + firstCommit + "/config.json", `{"a":9}`, ErrContent},
		{"page", "/model.safetensors", "<!DOCTYPE html><p>Log in", ErrPage},
	} {
		h, cache := newHub(t), t.TempDir()
		c := h.client(cache)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.Method != http.MethodGet || r.URL.Path != tt.file {
				return false
			}
			_, _ = w.Write([]byte(tt.body))
			return true
		}
		if e := h.fails(c, tt.want); e.Hint() == "" || tt.want == ErrContent && e.ExitCode() != exitIntegrity {
			t.Errorf("%s: %v, hint %q", tt.name, e, e.Hint())
		}
		if _, err := os.Stat(c.Cache.refPath(toy.Repo, "main")); err == nil {
			t.Errorf("%s: the revision has a commit", tt.name)
		}
		// Once is chance.
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.Method != http.MethodGet || r.URL.Path != tt.file || h.count["again"] > 0 || tt.want == ErrPage {
				return false
			}
			h.count["again"]++
			_, _ = w.Write([]byte(tt.body))
			return true
		}
		h.get(c)
	}
}

// Failures that pass are waited out, as long as the server asks; others are told at once,
// each with its cure.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		code       string
		status     int
		want       error
		hint, tell string
	}{
		{"RepoNotFound", 404, ErrRepoNotFound, "--dataset", "no such model " + secretToken},
		{"RevisionNotFound", 404, ErrRevisionNotFound, "main", ""},
		{"EntryNotFound", 404, ErrEntryNotFound, "path", ""},
		{"GatedRepo", 403, ErrGated, "accept the licence", ""},
		{"DisabledRepo", 403, ErrDisabled, "another", ""},
		{"", 403, ErrDisabled, "another", "Access to this resource is disabled."},
		{"", 401, ErrToken, "HF_TOKEN", "Invalid credentials"},
		{"", 503, ErrUnreachable, "later", ""},
	} {
		h := newHub(t)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			w.Header().Set("X-Error-Code", tt.code)
			w.Header().Set("X-Error-Message", tt.tell)
			w.WriteHeader(tt.status)
			return true
		}
		e := h.fails(h.client(t.TempDir()), tt.want)
		if !strings.Contains(e.Hint(), tt.hint) {
			t.Errorf("%s %d: hint %q", tt.code, tt.status, e.Hint())
		}
		if tries := len(h.log); tt.status == 503 && tries != retries+1 || tt.status != 503 && tries != 1 {
			t.Errorf("%s %d: %d tries", tt.code, tt.status, tries)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	h := newHub(t)
	c := h.client(t.TempDir())
	var waits []string
	c.Note = func(text string) { waits = append(waits, text) }
	h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if !strings.Contains(r.URL.Path, "/revision/") || n > 1 {
			return false
		}
		if n == 0 {
			w.Header().Set("Retry-After", "7")
		}
		w.WriteHeader([]int{429, 502}[n])
		return true
	}
	h.get(c)
	if len(waits) != 2 || !strings.HasSuffix(waits[0], "in 7s") || !strings.HasSuffix(waits[1], "in 2s") {
		t.Errorf("waits: %v", waits)
	}
}

// Several clients that get one repository at once fetch each file once.
func TestConcurrentGets(t *testing.T) {
	h, cache := newHub(t), t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		c := h.client(cache)
		wg.Go(func() {
			if _, err := c.Get(context.Background(), Request{Ref: toy}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.logged("GET /model.safetensors"); n != 1 {
		t.Errorf("the weights were fetched %d times", n)
	}
	if _, err := (Cache{cache}).Find(toy); err != nil {
		t.Error(err)
	}
}

// On a file system without links, hard or symbolic, the snapshot holds the files themselves.
func TestWithoutLinks(t *testing.T) {
	none := func(string, string) error { return errors.New("not supported") }
	for _, hard := range []bool{true, false} {
		h, cache := newHub(t), t.TempDir()
		c := h.client(cache)
		c.symlink = none
		if !hard {
			c.hardlink = none
		}
		res := h.get(c)
		info, err := os.Lstat(filepath.Join(res.Path, "model.safetensors"))
		if err != nil || !info.Mode().IsRegular() || info.Size() != 8000 {
			t.Fatal(info, err)
		}
		if again := h.get(c); again.Fetched != 0 {
			t.Errorf("fetched %d bytes again", again.Fetched)
		}
		f, err := c.Cache.Find(toy)
		if err != nil {
			t.Fatal(err)
		}
		if sums, err := f.Sums(context.Background()); err != nil || sums[1].SHA256 != h.digest("model.safetensors") {
			t.Errorf("%+v, %v", sums, err)
		}
		for _, name := range treeOf(t, cache) {
			if strings.Contains(name, ".tmp-") {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// A hub that names files outside the cache, or malformed digests, is refused.
func TestHostileNames(t *testing.T) {
	for _, answer := range []string{
		`[{"type":"file","path":"../../x.json","size":1,"oid":"` + firstCommit + `"}]`,
		`[{"type":"file","path":"/etc/x.json","size":1,"oid":"` + firstCommit + `"}]`,
		`[{"type":"file","path":"config.json","size":1,"oid":"../../../../x"}]`,
	} {
		h := newHub(t)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if !strings.Contains(r.URL.Path, "/tree/") {
				return false
			}
			_, _ = w.Write([]byte(answer))
			return true
		}
		_, err := h.client(t.TempDir()).Get(context.Background(), Request{Ref: toy})
		var e *Error
		if !errors.As(err, &e) || e.ExitCode() != exitIntegrity {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// A mirror without trees and with other tags still works: sizes and digests come with the
// files. A mirror that contradicts itself does not.
func TestMirrors(t *testing.T) {
	h := newHub(t)
	h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if strings.Contains(r.URL.Path, "/tree/") {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	h.get(h.client(t.TempDir()))
	for header, value := range map[string]string{"X-Linked-Etag": strings.Repeat("a", 64), "X-Repo-Commit": secondCommit, "X-Linked-Size": "5"} {
		h := newHub(t)
		h.fault = func(w http.ResponseWriter, r *http.Request, n int) bool {
			if r.Method != http.MethodHead || !strings.HasSuffix(r.URL.Path, "model.safetensors") {
				return false
			}
			w.Header().Set(header, value)
			w.Header().Set("Location", h.store.URL+"/x")
			w.WriteHeader(http.StatusFound)
			return true
		}
		h.fails(h.client(t.TempDir()), ErrContent)
	}
}

// A file that only calls itself parquet is refused even if the hub's digest is right.
func TestDataSet(t *testing.T) {
	h, cache := newHub(t), t.TempDir()
	h.files = map[string]string{"data/a b-00000-of-00002.parquet": "PAR1 x PAR1",
		"data/a b-00001-of-00002.parquet": "PAR1 y PAR1", "c.parquet": "no",
		"e.csv": "a\n1\n"}
	c := h.client(cache)
	data := Repo{Kind: DataSet, Name: "Org/Data"}
	get := func(include ...string) error {
		_, err := c.Get(context.Background(), Request{Ref: Ref{Repo: data, Part: Data, Revision: "main"}, Include: include})
		return err
	}
	ref := func(file string) Ref { return Ref{Repo: data, Part: Data, Revision: "main", File: file} }
	if err := get("e.csv"); err != nil {
		t.Fatal(err)
	}
	if f, err := c.Cache.Find(ref("")); err != nil || filepath.Base(f.Path) != "e.csv" {
		t.Errorf("nothing but a table: %+v, %v", f, err)
	}
	if err := get("data/*00000*"); err != nil {
		t.Fatal(err)
	}
	if h.logged("HEAD /datasets/Org/Data/resolve/"+firstCommit+"/data/a%20b-00000") != 1 {
		t.Errorf("requests: %v", h.log)
	}
	var missing *MissingError
	if _, err := c.Cache.Find(ref("data/a b-*.parquet")); !errors.As(err, &missing) || !slices.Equal(missing.Lacks, []string{"data/a b-00001-of-00002.parquet"}) {
		t.Errorf("a shard is missing: %v", err)
	}
	if f, err := c.Cache.Find(ref("")); err != nil || filepath.Base(f.Path) != "a b-00000-of-00002.parquet" {
		t.Errorf("the only file besides a table: %+v, %v", f, err)
	}
	if err := get("data/"); err != nil {
		t.Fatal(err)
	}
	if f, err := c.Cache.Find(ref("data/a b-*.parquet")); err != nil || len(f.Files) != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	var several *AmbiguousError
	if _, err := c.Cache.Find(ref("")); !errors.As(err, &several) || len(several.Files) != 2 {
		t.Errorf("two files: %v", err)
	}
	if err := get("c.parquet"); err == nil || !strings.Contains(err.Error(), "not a parquet file") {
		t.Errorf("%v", err)
	}
	if err := get("d.parquet"); !errors.Is(err, ErrEntryNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := c.Cache.Find(ref("d.parquet")); !errors.As(err, &missing) || !missing.Never {
		t.Errorf("a file that the commit does not have: %v", err)
	}
}
