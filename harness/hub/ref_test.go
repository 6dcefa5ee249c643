package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRef(t *testing.T) {
	for text, want := range map[string]string{
		"hub:Qwen/Qwen2.5-7B@main": "Qwen/Qwen2.5-7B||main", "hub:gpt2": "gpt2||main", "hub:a/b@refs/pr/1": "a/b||refs/pr/1",
		"hub:a/b/c.parquet": "", "hub:../b": "", "hub:a/..": "", "hub:a/b@../x": "", "hub:a/b@": "", "hub:": "", "a/b": "",
		"hub:a/b@x y": "", "hub:/b": "", "hub:a--b/c": "",
	} {
		r, err := ParseRef(text, Weights)
		got := r.Name + "|" + r.File + "|" + r.Revision
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, err)
		}
	}
	r, err := ParseRef("hub:o/d/x/y-*.parquet@v1", Data)
	if err != nil || r.File != "x/y-*.parquet" || r.Folder() != "datasets--o--d" || r.String() != "hub:o/d/x/y-*.parquet@v1" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := ParseRef("hub:o/d/../../x", Data); err == nil {
		t.Error("a path out of the repository")
	}
}

// Settings follow Python's library: variables, then the files that they name.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(" from-file\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		env             map[string]string
		cache, endpoint string
		token           secret
	}{
		{map[string]string{"HOME": "/h"}, "/h/.cache/huggingface/hub", publicHub, ""},
		{map[string]string{"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub", publicHub, ""},
		{map[string]string{"HOME": "/h", "HF_HOME": "~/f"}, "/h/f/hub", publicHub, ""},
		{map[string]string{"HF_HOME": dir}, dir + "/hub", publicHub, "from-file"},
		{map[string]string{"HF_HOME": dir, "HF_TOKEN": "t"}, dir + "/hub", publicHub, "t"},
		{map[string]string{"HF_HUB_CACHE": "/c", "HF_TOKEN_PATH": dir + "/token"}, "/c", publicHub, "from-file"},
		{map[string]string{"HF_ENDPOINT": "http://me:pw@m:1/hf/?q"}, "", "http://m:1/hf", ""},
	} {
		s := FromEnv(func(name string) string { return tt.env[name] })
		token, err := s.readToken()
		if s.Cache.Dir != tt.cache || strings.TrimSuffix(s.Endpoint(), "/") != tt.endpoint || token != tt.token || err != nil {
			t.Errorf("%v: cache %s, endpoint %s, token %q, %v", tt.env, s.Cache.Dir, s.Endpoint(), string(token), err)
		}
	}
	_, err := NewClient(FromEnv(func(name string) string { return map[string]string{"HF_HUB_OFFLINE": "1", "HOME": dir}[name] }))
	if !errors.Is(err, ErrOffline) {
		t.Errorf("offline: %v", err)
	}
	if _, err := NewClient(FromEnv(func(name string) string { return map[string]string{"HF_ENDPOINT": "nowhere", "HOME": dir}[name] })); err == nil {
		t.Error("a malformed endpoint")
	}
}

// A cache that holds a part of a model says which.
func TestWholeModel(t *testing.T) {
	c := Cache{t.TempDir()}
	put := func(name, text string) {
		t.Helper()
		if err := writeFile(c.pointer(toy.Repo, firstCommit, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	lacks := func() []string {
		_, err := c.Find(toy)
		var m *MissingError
		if err != nil && !errors.As(err, &m) {
			t.Fatal(err)
		}
		if m == nil {
			return nil
		}
		return m.Lacks
	}
	if _, err := c.Find(toy); err == nil || !strings.Contains(err.Error(), "is not in the cache") {
		t.Error(err)
	}
	if err := c.setRef(toy.Repo, "main", firstCommit); err != nil {
		t.Fatal(err)
	}
	put("model.safetensors.index.json", `{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`)
	put("m-1.safetensors", "x")
	if diff := cmp.Diff([]string{"config.json", "m-2.safetensors"}, lacks()); diff != "" {
		t.Error(diff)
	}
	put("config.json", "{}")
	put("m-2.safetensors", "x")
	if got := lacks(); got != nil {
		t.Errorf("whole, but lacks %v", got)
	}
	if list, err := c.List(); err != nil || len(list) != 1 || list[0].Repo != toy.Repo || list[0].Snapshots[0].Revisions[0] != "main" {
		t.Errorf("%+v, %v", list, err)
	}
}

// The commands for several references name each repository once.
func TestCommands(t *testing.T) {
	data := func(file string) Ref { r, _ := ParseRef("hub:o/d/"+file+"@main", Data); return r }
	list := Requests([]Ref{toy, data("a.parquet"), data("b-*.parquet"), data("c d.parquet"), toy})
	var got []string
	for _, r := range list {
		got = append(got, r.Command())
	}
	got = append(got, Carry("/my cache", list)...)
	want := []string{"exp hub get Org/Toy@main", "exp hub get o/d@main --dataset --include a.parquet --include 'b-*.parquet' " +
		"--include 'c d.parquet'",
		"tar -C ~/.cache/huggingface/hub -cf hub.tar models--Org--Toy datasets--o--d",
		"mkdir -p '/my cache' && tar -C '/my cache' -xf hub.tar"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, want := Carry("", list)[1], `mkdir -p "$HF_HUB_CACHE" && tar -C "$HF_HUB_CACHE" -xf hub.tar`; got != want {
		t.Errorf("without a known cache: %s, want %s", got, want)
	}
}
