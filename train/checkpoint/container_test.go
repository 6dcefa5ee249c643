package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// othersDir is where checkpoints written by torch and by FSDP lie, if at all.
const othersDir = "../../../shared/data/models"

// goldenContainer returns the path of one; the test is skipped where it is not to be had.
func goldenContainer(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(othersDir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the golden checkpoints are not here: %v", err)
	}
	return path
}

// bytesOf returns the elements of all tensors by name, after their type and shape.
func bytesOf(t testing.TB, x *Tensors) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range x.Sources() {
		var b bytes.Buffer
		if err := s.Raw(&b); err != nil {
			t.Fatal(err)
		}
		all[s.Name] = s.kind() + " " + b.String()
	}
	return all
}

// sameContents compares the tensors of two sets, and their digests.
func sameContents(t testing.TB, got, want *Tensors) {
	t.Helper()
	if !cmp.Equal(bytesOf(t, got), bytesOf(t, want)) {
		t.Errorf("other tensors: %v, want %v", got.List(), want.List())
	}
	a, err := got.Digests(nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.Digests(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("other digests (-want +got):\n%s", diff)
	}
}

func opened(t testing.TB, open func(string) (*Tensors, error), path string) *Tensors {
	t.Helper()
	x, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func TestGoldenContainers(t *testing.T) {
	for name, kind := range map[string]string{"pytorch/zip": "torch", "verl/fsdp1_2": "verl FSDP", "verl/fsdp1_4": "verl FSDP",
		"verl/fsdp2_2": "verl FSDP", "verl/hsdp_2x2": "verl FSDP"} {
		t.Run(name, func(t *testing.T) {
			dir := goldenContainer(t, name)
			sameContents(t, opened(t, OpenFolder, dir), opened(t, OpenFile, filepath.Join(dir, "merged.safetensors")))
			d, err := Describe(dir)
			if err != nil || !d.Known || d.Container != kind {
				t.Errorf("described as %s, known: %v %v, %v", d.Container, d.Known, d.Reason, err)
			}
		})
	}
}

// A model loaded from the files of ranks has the bits of the merged one.
func TestLoadFromRanks(t *testing.T) {
	dir := goldenContainer(t, "verl/fsdp1_4")
	be := refBackend()
	c, err := ReadConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	load := func(x *Tensors) []Source {
		m, err := model.New(be, c, model.Heads{LM: true}, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		if err := LoadWeights(be, m, x, Plain); err != nil {
			t.Fatal(err)
		}
		return Weights(be, m, Plain)
	}
	got := load(opened(t, OpenFolder, dir))
	for i, want := range load(opened(t, OpenFile, filepath.Join(dir, "merged.safetensors"))) {
		var a, b bytes.Buffer
		if err := errors.Join(got[i].Raw(&a), want.Raw(&b)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s has other elements", want.Name)
		}
	}
}

// The folders that verl makes around the files of its ranks.
func TestDescend(t *testing.T) {
	golden, err := filepath.Abs(goldenContainer(t, "verl/fsdp1_2"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	step := filepath.Join(root, "global_step_12")
	if err := os.MkdirAll(step, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(golden, filepath.Join(step, "actor")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "latest_checkpointed_iteration.txt"), []byte("12\n"))
	for _, path := range []string{root, step, filepath.Join(step, "actor")} {
		c, err := FindContainer(path)
		if err != nil {
			t.Fatal(err)
		}
		if c.Path != filepath.Join(step, "actor") || c.Kind != "verl FSDP" || c.Ranks != 2 ||
			c.Texts != filepath.Join(c.Path, "huggingface") {
			t.Errorf("%s: found %+v", path, c)
		}
		if _, err := ReadConfig(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if o, err := ReadOrigin(path); err != nil || o.DTypes[embedding] != F32 || o.ShardBytes != 0 {
			t.Errorf("%s: %v, %v", path, o, err)
		}
	}
	for text, want := range map[string]string{"13": "global_step_13", "x": "not the number of a step", "-1": "not the number"} {
		writeFile(t, filepath.Join(root, "latest_checkpointed_iteration.txt"), []byte(text))
		if _, err := FindContainer(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTorchShards(t *testing.T) {
	odd, nested := goldenContainer(t, "pytorch/odd.pt"), goldenContainer(t, "pytorch/nested.pt")
	x := opened(t, OpenFile, goldenContainer(t, "pytorch/odd.merged.safetensors"))
	index := func(extra string) string {
		var parts []string
		for _, tensor := range x.List() {
			parts = append(parts, `"`+tensor.Name+`": "1.bin"`)
		}
		return `{"weight_map": {` + strings.Join(append(parts, extra), ", ") + `}}`
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "1.bin"), readFile(t, odd))
	writeFile(t, filepath.Join(dir, "2.bin"), readFile(t, nested))
	writeFile(t, filepath.Join(dir, torchIndexFile), []byte(index(`"w": "2.bin"`)))
	got := bytesOf(t, opened(t, OpenFolder, dir))
	want := bytesOf(t, x)
	if want["w"] = got["w"]; !cmp.Equal(got, want) || !strings.HasPrefix(got["w"], "F32 [6,8]") {
		t.Errorf("got %v", slices.Sorted(func(yield func(string) bool) {
			for name := range got {
				if !yield(name) {
					return
				}
			}
		}))
	}
	for extra, want := range map[string]string{`"w": "1.bin"`: "missing: w (not in 1.bin)", `"v": "2.bin"`: "missing: v",
		`"w": "3.bin"`: "3.bin", `"w": "../2.bin"`: "not a file of this folder"} {
		writeFile(t, filepath.Join(dir, torchIndexFile), []byte(index(extra)))
		if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", extra, err)
		}
	}
}

func TestTorchFiles(t *testing.T) {
	sameContents(t, opened(t, OpenFolder, goldenContainer(t, "pytorch/odd.pt")),
		opened(t, OpenFile, goldenContainer(t, "pytorch/odd.merged.safetensors")))
	if _, err := OpenFolder(goldenContainer(t, "pytorch/legacy.pt")); err == nil ||
		!strings.Contains(err.Error(), "before 1.6") {
		t.Errorf("legacy: %v", err)
	}
	d, err := Describe(goldenContainer(t, "pytorch/refuse_global.pt"))
	if err != nil || len(d.Tensors) != 1 || d.Tensors[0].Name != "w" || len(d.Notes) != 1 ||
		!strings.Contains(d.Notes[0], "when (datetime.datetime)") {
		t.Errorf("%+v, %v", d, err)
	}
	dir := t.TempDir()
	for name, tt := range map[string]struct{ content, want string }{
		"a.pt":  {"version https://git-lfs.github.com/spec/v1\n", "pointer of git-lfs"},
		"b.bin": {"", "not an archive of torch.save"},
		"c":     {"PK\x03\x04 and no more of it than this", "truncated"},
	} {
		path := writeFile(t, filepath.Join(dir, name), []byte(tt.content))
		if _, err := OpenFolder(path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FindContainer(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// Copies of a tensor must be equal, whoever reads it.
func TestReplicas(t *testing.T) {
	dir := t.TempDir()
	files := make([]*os.File, 3)
	for i, content := range []string{"abcdefgh", "abcdefgh", "abcdxfgh"} {
		f, err := os.Open(writeFile(t, filepath.Join(dir, string(rune('0'+i))), []byte(content)))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = f
	}
	part := func(i int) extent.Extent { return extent.Range(files[i], 0, 8) }
	for _, tt := range []struct {
		other int
		want  string
	}{{1, ""}, {2, "differs from its copy in " + files[2].Name() + ", first at byte 4"}} {
		x, err := newTensors(dir, files, []extent.Tensor{{Name: "w", DType: "F32", Shape: []int{2}, Data: part(0),
			Replicas: []extent.Extent{part(tt.other)}}})
		if err != nil {
			t.Fatal(err)
		}
		_, digests := x.Digests(nil)
		for _, err := range []error{digests, x.consistent(model.Config{})} {
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("copy %d: %v", tt.other, err)
			}
		}
	}
	if got, err := io.ReadAll(io.NewSectionReader(part(2), 0, 8)); err != nil || string(got) != "abcdxfgh" {
		t.Errorf("%q, %v", got, err)
	}
	for want, bad := range map[string]extent.Tensor{
		"is also in":          {Name: "w", DType: "F32", Shape: []int{2}, Data: part(0)},
		`unknown dtype "F7"`:  {Name: "v", DType: "F7", Shape: []int{2}, Data: part(0)},
		"takes 12 bytes, but": {Name: "v", DType: "F32", Shape: []int{3}, Data: part(0)},
		"is too large":        {Name: "v", DType: "F32", Shape: []int{1 << 40, 1 << 40}, Data: part(0)},
	} {
		good := extent.Tensor{Name: "w", DType: "F32", Shape: []int{2}, Data: part(0)}
		f, err := os.Open(files[0].Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newTensors(dir, []*os.File{f}, []extent.Tensor{good, bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A cached digest is used only while all files of a tensor are unchanged.
func TestDigestCacheOfRanks(t *testing.T) {
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"a", "b"} {
		f, err := os.Open(writeFile(t, filepath.Join(dir, name), []byte("abcdefgh")))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	c := OpenDigestCache(filepath.Join(dir, "cache"))
	if _, _, ok := c.stampsOf(files); !ok {
		t.Skip("no inodes on this system")
	}
	sum := [32]byte{1}
	_, stamps, _ := c.stampsOf(files)
	c.files[cacheKey(files)] = cachedFile{Stamp: stamps[0], Others: stamps[1:], Tensors: map[string]string{
		"w": "01" + strings.Repeat("00", 31)}}
	if got := c.lookup(files); got["w"] != sum {
		t.Errorf("not remembered: %v", got)
	}
	if got := c.lookup(files[:1]); got != nil {
		t.Errorf("one file has the digests of two: %v", got)
	}
	writeFile(t, filepath.Join(dir, "b"), []byte("abcdefg"))
	if got := c.lookup(files); got != nil {
		t.Errorf("a changed file has the old digest: %v", got)
	}
}
