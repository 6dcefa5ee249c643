package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// secretToken is the token of the tests; nothing may repeat it.
const secretToken = "hf_very_secret"

const firstCommit, secondCommit = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

// fakeHub is a hub with one model, Org/Toy, whose large files lie on a second host.
type fakeHub struct {
	t      *testing.T
	api    *httptest.Server
	store  *httptest.Server
	mu     sync.Mutex
	commit string
	files  map[string]string // by path
	lfs    func(path string) bool
	log    []string // METHOD PATH, with the range
	// fault, if not nil, may answer a request itself. n counts the requests of its kind.
	fault func(w http.ResponseWriter, r *http.Request, n int) bool
	count map[string]int
}

func newHub(t *testing.T) *fakeHub {
	t.Helper()
	h := &fakeHub{t: t, commit: firstCommit, count: map[string]int{}, files: map[string]string{
		"config.json": `{"a":1}`, "tokenizer.json": "{}", "model.safetensors": strings.Repeat("weights ", 1000),
		"README.md": "# toy", "pytorch_model.bin": "never", "original/consolidated.00.pth": "never", "x.gguf": "never",
	}, lfs: func(path string) bool {
		return strings.HasSuffix(path, ".safetensors") || strings.HasSuffix(path, ".parquet")
	}}
	h.store = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Errorf("the second host got %q", r.Header.Get("Authorization"))
		}
		h.serve(w, r, h.blob)
	}))
	h.api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+secretToken {
			t.Errorf("the hub got the token %q", got)
		}
		h.serve(w, r, h.answer)
	}))
	t.Cleanup(func() { h.api.Close(); h.store.Close() })
	return h
}

func (h *fakeHub) serve(w http.ResponseWriter, r *http.Request, answer func(http.ResponseWriter, *http.Request)) {
	h.mu.Lock()
	key := r.Method + " " + r.URL.EscapedPath()
	h.log = append(h.log, strings.TrimSpace(key+" "+r.Header.Get("Range")))
	n := h.count[key]
	h.count[key]++
	fault := h.fault
	h.mu.Unlock()
	if fault == nil || !fault(w, r, n) {
		answer(w, r)
	}
}

func (h *fakeHub) digest(path string) string {
	text := h.files[path]
	if h.lfs(path) {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text)))
	return hex.EncodeToString(sum[:])
}

func (h *fakeHub) answer(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	path := r.URL.Path
	var names []string
	for name := range h.files {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case strings.Contains(path, "/revision/"):
		info := map[string]any{"sha": h.commit}
		var list []map[string]string
		for _, n := range names {
			list = append(list, map[string]string{"rfilename": n})
		}
		info["siblings"] = list
		_ = json.NewEncoder(w).Encode(info)
	case strings.Contains(path, "/tree/"): // two files a page
		var from int
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
		to := min(from+2, len(names))
		if to < len(names) {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, h.api.URL, path, to))
		}
		list := []map[string]any{{"type": "directory", "path": "original"}}
		for _, n := range names[from:to] {
			e := map[string]any{"type": "file", "path": n, "size": len(h.files[n]), "oid": h.digest(n)}
			if h.lfs(n) {
				e["oid"] = strings.Repeat("0", 40)
				e["lfs"] = map[string]any{"oid": h.digest(n), "size": len(h.files[n])}
			}
			list = append(list, e)
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		_, name, ok := strings.Cut(path, "/resolve/"+h.commit+"/")
		if _, has := h.files[name]; !ok || !has {
			w.Header().Set("X-Error-Code", "EntryNotFound")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("X-Repo-Commit", h.commit)
		if h.lfs(name) {
			w.Header().Set("X-Linked-Etag", `"`+h.digest(name)+`"`)
			w.Header().Set("X-Linked-Size", fmt.Sprint(len(h.files[name])))
			w.Header().Set("X-Xet-Hash", "abc")
			http.Redirect(w, r, h.store.URL+(&url.URL{Path: "/" + name}).EscapedPath()+"?X-Signature=signed", http.StatusFound)
			return
		}
		w.Header().Set("ETag", `W/"`+h.digest(name)+`"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(h.files[name]))
	}
}

func (h *fakeHub) blob(w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(h.files[strings.TrimPrefix(r.URL.Path, "/")]))
}

// client is a client of the hub with a cache, whose pauses take no time.
func (h *fakeHub) client(cache string) *Client {
	h.t.Helper()
	env := map[string]string{"HF_ENDPOINT": h.api.URL, "HF_TOKEN": secretToken + "\n", "HF_HUB_CACHE": cache}
	c, err := NewClient(FromEnv(func(name string) string { return env[name] }))
	if err != nil {
		h.t.Fatal(err)
	}
	c.sleep = func(ctx context.Context, d time.Duration) error { return ctx.Err() }
	c.Note = func(text string) {
		if strings.Contains(text, secretToken) || strings.Contains(text, "X-Signature") {
			h.t.Errorf("a note holds a secret: %s", text)
		}
	}
	return c
}

var toy = Ref{Repo: Repo{Kind: Model, Name: "Org/Toy"}, Revision: "main"}

// get fetches the model, which must work.
func (h *fakeHub) get(c *Client) *Result {
	h.t.Helper()
	res, err := c.Get(context.Background(), Request{Ref: toy})
	if err != nil {
		h.t.Fatal(err)
	}
	return res
}

// fails is the error of a Get that must not work. It holds no secret, and no blob is left
// that is not whole.
func (h *fakeHub) fails(c *Client, want error) *Error {
	h.t.Helper()
	_, err := c.Get(context.Background(), Request{Ref: toy})
	var e *Error
	if err == nil || !errorsIs(err, want, &e) {
		h.t.Fatalf("error %v, want %v", err, want)
	}
	if text := e.Error() + e.Hint(); strings.Contains(text, secretToken) || strings.Contains(text, "X-Signature") {
		h.t.Errorf("the error holds a secret: %s", text)
	}
	if _, err := os.Stat(c.Cache.pointer(toy.Repo, firstCommit, "model.safetensors")); err == nil && want != nil {
		b, _ := os.ReadFile(c.Cache.pointer(toy.Repo, firstCommit, "model.safetensors"))
		if string(b) != h.files["model.safetensors"] {
			h.t.Error("wrong bytes are linked")
		}
	}
	return e
}

// logged counts the requests that contain a text.
func (h *fakeHub) logged(text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.log {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// tree lists the files below a folder, links with their targets.
func treeOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if target, e := os.Readlink(path); e == nil {
			rel += " -> " + target
		}
		list = append(list, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
