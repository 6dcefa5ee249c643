package prompt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exp/experiments/ident"
	"exp/harness/config"
	"exp/harness/prompt/prompttest"
	"exp/train/rollout"
)

func manyProblems(n int) []rollout.Problem {
	list := make([]rollout.Problem, n)
	for i := range list {
		list[i] = rollout.Problem{ID: fmt.Sprint(i), Prompt: fmt.Sprintf("%d + %d é?", i, i)}
	}
	return list
}

func encodeAll(t *testing.T, p *Prompter, problems []rollout.Problem) (all [][]int32) {
	t.Helper()
	for i := range problems {
		ids, err := p.Encode(&problems[i])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ids)
	}
	return all
}

// userCache gives the test a new cache and returns the folder of prompts.
func userCache(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	return filepath.Join(dir, "exp", "prompts")
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The ids are those without a cache, also of another limit, and of a file that is damaged.
func TestPromptFolder(t *testing.T) {
	dir := userCache(t)
	model := prompttest.ModelFolder(t, true, map[string]string{"chat_template.jinja": prompttest.ChatML})
	open := func(limit int) *Prompter {
		p, err := prompterOf(t, model, func(c *config.Run) { c.Data.MaxPromptTokens, c.Data.Truncate = limit, "left" })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	problems := manyProblems(fewestKept)
	for _, few := range []int{0, 1, fewestKept - 1} {
		if err := open(1000).Check(problems[:few]); err != nil || len(namesIn(t, dir)) > 0 {
			t.Fatalf("%d prompts: %v, files %v", few, err, namesIn(t, dir))
		}
	}
	want := encodeAll(t, open(1000), problems)
	if err := open(1000).Check(problems); err != nil {
		t.Fatal(err)
	}
	names := namesIn(t, dir)
	if len(names) != 1 {
		t.Fatalf("files %v", names)
	}
	path := filepath.Join(dir, names[0])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	p := open(20)
	p.remember(problems)
	if p.cache.held == 0 {
		t.Error("the file was not read")
	}
	for i, ids := range encodeAll(t, p, problems) {
		if !slices.Equal(ids, want[i][len(want[i])-20:]) {
			t.Fatalf("problem %d, cut: %v, want the end of %v", i, ids, want[i])
		}
	}
	if len(namesIn(t, dir)) != 1 {
		t.Errorf("another limit made another file: %v", namesIn(t, dir))
	}

	damaged := map[string][]byte{"empty": {}, "cut off": whole[:len(whole)/2], "longer": append(slices.Clone(whole), 0)}
	flipped := slices.Clone(whole)
	flipped[len(flipped)/3] ^= 4
	damaged["flipped"] = flipped
	for name, b := range damaged {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		p := open(1000)
		if err := p.Check(problems); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, encodeAll(t, p, problems)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if b, err := os.ReadFile(path); err != nil || !slices.Equal(b, whole) {
			t.Errorf("%s: the file was not written again: %v", name, err)
		}
	}
}

// A file that was written by this program is believed: the second prompter encodes
// nothing.
func TestPromptFolderIsRead(t *testing.T) {
	userCache(t)
	problems := manyProblems(fewestKept)
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]ident.Digest, len(problems))
	lists := make([][]int32, len(problems))
	for i := range problems {
		if keys[i], err = promptKey(&problems[i]); err != nil {
			t.Fatal(err)
		}
		lists[i] = []int32{int32(i), 1 << 30}
	}
	folder := p.folder()
	if err := folder.write(folder.name(keys), lists); err != nil {
		t.Fatal(err)
	}
	p.remember(problems)
	if diff := cmp.Diff(lists, encodeAll(t, p, problems)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Everything that changes the ids of a prompt changes the name of the file.
func TestPromptFolderKey(t *testing.T) {
	userCache(t)
	im := map[string]string{"chat_template.jinja": prompttest.ChatML}
	seen := map[ident.Digest]string{}
	for _, tt := range []struct {
		name  string
		bos   bool
		files map[string]string
		set   func(c *config.Run)
	}{
		{"chat", false, im, nil},
		{"another template", false, map[string]string{"chat_template.jinja": bosTemplate}, nil},
		{"plain text", false, im, func(c *config.Run) { c.Data.Chat = config.None }},
		{"system", false, im, func(c *config.Run) { c.Data.System = "S" }},
		{"variables", false, im, func(c *config.Run) { c.Data.TemplateVars = map[string]any{"x": true} }},
		{"date", false, im, func(c *config.Run) { c.Data.TemplateDate = "2025-01-01" }},
		{"escape", false, im, func(c *config.Run) { c.Data.EscapeSpecial = true }},
		{"tools", false, im, func(c *config.Run) { c.Data.Tools = `[{"type":"function","function":{"name":"f"}}]` }},
		{"post-processor", true, im, nil},
		{"named tokens", false, map[string]string{"chat_template.jinja": prompttest.ChatML,
			"tokenizer_config.json": `{"bos_token": "</s>", "eos_token": "</s>"}`}, nil},
	} {
		p, err := prompterOf(t, prompttest.ModelFolder(t, tt.bos, tt.files), tt.set)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		name := p.folder().name(nil)
		if other, taken := seen[name]; taken {
			t.Errorf("%s has the name of %s", tt.name, other)
		}
		seen[name] = tt.name
	}
	p, err := prompterOf(t, prompttest.ModelFolder(t, false, im), func(c *config.Run) { c.Data.MaxPromptTokens = 7 })
	if err != nil {
		t.Fatal(err)
	}
	if seen[p.folder().name(nil)] != "chat" {
		t.Error("the same files in another folder, with another limit, have another name")
	}
	a, b := ident.Sum([]byte("a")), ident.Sum([]byte("b"))
	if f := p.folder(); f.name([]ident.Digest{a, b}) == f.name([]ident.Digest{b, a}) {
		t.Error("the order of the prompts does not matter")
	}
}

// The least recently used files go first, partial ones after an hour.
func TestPromptFolderTrims(t *testing.T) {
	dir := t.TempDir()
	f := &promptFolder{dir: dir, most: 400}
	lists := [][]int32{make([]int32, 10)} // a file takes 93 bytes
	var names []ident.Digest
	put := func(i int) {
		t.Helper()
		name := ident.Sum([]byte{byte(i)})
		names = append(names, name)
		if err := f.write(name, lists); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(f.path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		put(i)
	}
	if _, ok := f.read(names[0], 1); !ok { // now the youngest
		t.Fatal("the first file is gone")
	}
	young, old := filepath.Join(dir, "new-1"), filepath.Join(dir, "new-2")
	for _, path := range []string{young, old} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	put(4)
	want := []string{names[0].String(), names[2].String(), names[3].String(), names[4].String(), "new-1"}
	slices.Sort(want)
	if diff := cmp.Diff(want, namesIn(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := f.write(ident.Sum([]byte("large")), [][]int32{make([]int32, 1000)}); err != nil || len(namesIn(t, dir)) != 5 {
		t.Errorf("a file larger than the folder may be: %v, %v", err, namesIn(t, dir))
	}
}

// Only the written bytes are read.
func TestDecodeIDs(t *testing.T) {
	name := ident.Sum([]byte("n"))
	lists := [][]int32{{0, 1, 127, 128, 1<<31 - 1}, {}, {300}}
	b := encodeIDs(name, lists)
	if got, ok := decodeIDs(b, name, 3); !ok || !cmp.Equal(got, lists) {
		t.Fatalf("%v, %v", got, ok)
	}
	if _, ok := decodeIDs(b, ident.Sum([]byte("m")), 3); ok {
		t.Error("read under another name")
	}
	if _, ok := decodeIDs(b, name, 2); ok {
		t.Error("read as another number of lists")
	}
	for i := range b {
		if _, ok := decodeIDs(b[:i], name, 3); ok {
			t.Errorf("read when cut to %d bytes", i)
		}
		flipped := slices.Clone(b)
		flipped[i] ^= 1
		if _, ok := decodeIDs(flipped, name, 3); ok {
			t.Errorf("read with byte %d changed", i)
		}
	}
}
