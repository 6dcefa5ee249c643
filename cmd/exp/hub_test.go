package main

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hubOf serves the files of a folder as the model Org/Toy.
func hubOf(t *testing.T, dir string) string {
	t.Helper()
	const commit = "1111111111111111111111111111111111111111"
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var tree []map[string]any
	tags := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		tags[e.Name()] = fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(b), b)))
		tree = append(tree, map[string]any{"type": "file", "path": e.Name(), "size": len(b), "oid": tags[e.Name()]})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		switch {
		case !strings.Contains(r.URL.Path, "Org/Toy"):
			w.Header().Set("X-Error-Code", "GatedRepo")
			w.WriteHeader(http.StatusForbidden)
		case strings.Contains(r.URL.Path, "/revision/"):
			_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit})
		case strings.Contains(r.URL.Path, "/tree/"):
			_ = json.NewEncoder(w).Encode(tree)
		default:
			w.Header().Set("ETag", `"`+tags[name]+`"`)
			http.ServeFile(w, r, filepath.Join(dir, name))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A model of a hub is fetched once, then inspected and scored from the cache alone, and the
// record says where it came from.
func TestHub(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "store")
	call{}.run("run", "../../configs/smoke_cpu.yaml", "--store", store).succeeds(t)
	model, err := filepath.Glob(filepath.Join(store, "runs", "*", "model"))
	if err != nil || len(model) != 1 {
		t.Fatal(model, err)
	}
	for i := range 8 { // more files than exp show lists
		extra := filepath.Join(model[0], fmt.Sprintf("tokenizer_%d.json", i))
		if err := os.WriteFile(extra, fmt.Appendf(nil, "%d", i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HF_ENDPOINT": hubOf(t, model[0]), "HF_HUB_CACHE": filepath.Join(dir, "cache"),
		"HF_TOKEN": "hf_secret"}
	run := func(args ...string) ended { return call{env: env}.run(append(args, "--store", store)...) }

	run("inspect", "hub:Org/Toy@main").refuses(t, 7, "not in the cache", "exp hub get Org/Toy@main")
	run("eval", "hub:Org/Toy@main", "--suite", "puzzles").refuses(t, 7, "exp hub get Org/Toy@main")
	run("hub", "get", "Org/Closed").refuses(t, 7, "accept the licence")
	run("hub", "get", "Org/../x").refuses(t, 2, "not the name of a repository")
	e := run("hub", "get", "Org/Toy", "--json")
	e.succeeds(t)
	if !strings.Contains(e.stdout, `"commit": "11111111`) && !strings.Contains(e.stdout, `"commit":"11111111`) {
		t.Errorf("no commit: %s", e.stdout)
	}
	run("hub", "get", "Org/Toy").says(t, "0 B fetched now", "hub:Org/Toy@main")
	run("hub", "ls").says(t, "Org/Toy", "main")

	from := []string{"run", "../../configs/smoke_cpu.yaml", "--set", "model.init=pretrained", "--set",
		"model.base=hub:Org/Toy@main", "--set", "tokenizer.kind=model", "--until", "init"}
	env["HF_HUB_CACHE"] = filepath.Join(dir, "other")
	run(from...).refuses(t, 7, "model.base: hub:Org/Toy@main is not in the cache", "exp hub get Org/Toy@main")
	run(append(from, "--get")...).succeeds(t)
	run(from...).succeeds(t) // from the cache now
	env["HF_HUB_CACHE"] = filepath.Join(dir, "cache")

	env["HF_ENDPOINT"] = "http://127.0.0.1:1" // from here on nobody answers
	run("inspect", "hub:Org/Toy@main").says(t, "parameters")
	puzzles := writeFile(t, "puzzles.jsonl", `{"nums":[3,4],"target":12}`+"\n")
	run("suite", "add", "puzzles", puzzles).succeeds(t)
	run("eval", "hub:Org/Toy@main", "--suite", "puzzles", "--n", "1", "--max-new-tokens", "8").succeeds(t)
	config, err := os.ReadFile(filepath.Join(model[0], "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(config)
	run("show", "@last").says(t, "eval-Toy", "model.base from the hub", "model Org/Toy", "main",
		strings.Repeat("1", 40), "127.0.0.1", "config.json", fmt.Sprintf("%x\n", sum[:4]), "3 files more")
	run("show", "@last", "-o", "wide").says(t, fmt.Sprintf("%x", sum), "tokenizer_config.json")
	run("show", "@last", "--json", "--fields", "events").says(t, `"revision": "main"`, `"sha256"`, "127.0.0.1")
	run("eval", "@last", "--suite", "puzzles", "--n", "2").succeeds(t) // planned again from the record
	for _, e := range []ended{run("show", "@last", "--json"), e} {
		if strings.Contains(e.stdout+e.stderr, "hf_secret") {
			t.Error("the token is shown")
		}
	}
}

// A digest pins the problems of a file.
func TestDataDigest(t *testing.T) {
	puzzles := writeFile(t, "puzzles.jsonl", `{"nums":[3,4],"target":12}`+"\n"+`{"nums":[3,5],"target":8}`+"\n")
	store := filepath.Join(t.TempDir(), "store")
	run := func(digest string) ended {
		return call{}.run("run", "../../configs/smoke_cpu.yaml", "--store", store, "--dry-run", "--set",
			"data.test.source="+puzzles, "--set", "data.test.size=0", "--set", "data.test.digest="+digest)
	}
	e := run("sha256:" + strings.Repeat("0", 64))
	e.refuses(t, 2, "data.test.digest does not match", "found sha256:")
	_, found, _ := strings.Cut(e.stdout+e.stderr, "found ")
	run(found[:len("sha256:")+64]).succeeds(t)
}
