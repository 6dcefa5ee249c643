package checkpoint

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// distributedFolder returns a folder with testdata/dcp.tar.gz: in step what torch 2.15 saved of a model of
// transformers on two ranks, after a step of SGD with a learning rate of 0,
//
//	fully_shard(model); weights, states = get_state_dict(model, optimizer)
//	dcp.save({"app": {"model": weights, "optim": states}}, checkpoint_id="step")
//
// and in model.safetensors what save_pretrained had written of it before.
func distributedFolder(t *testing.T) string {
	t.Helper()
	return untarred(t, "testdata/dcp.tar.gz")
}

func untarred(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		b, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr, os.MkdirAll(filepath.Join(dir, filepath.Dir(h.Name)), 0o777)); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, h.Name), b)
	}
}

// A checkpoint of torch.distributed.checkpoint has the tensors of its model, whatever they lie below and next to.
func TestDistributedCheckpoint(t *testing.T) {
	dir := distributedFolder(t)
	step := filepath.Join(dir, "step")
	c, err := FindContainer(step)
	if err != nil || c.Kind != "torch DCP" || c.Texts != step {
		t.Fatalf("%+v, %v", c, err)
	}
	want := opened(t, OpenFile, filepath.Join(dir, "model.safetensors"))
	sameContents(t, opened(t, OpenFolder, step), want)
	out, p := packed(t, step, PackOptions{})
	sameContents(t, opened(t, OpenFolder, out), want)
	if p.Container != "torch DCP" || p.Class != "LlamaForCausalLM" {
		t.Errorf("packed %+v", p)
	}

	// accelerate puts it into a folder of the step.
	inner := filepath.Join(dir, "checkpoint-5", "pytorch_model_fsdp_0")
	if err := errors.Join(os.Mkdir(filepath.Dir(inner), 0o777), os.Rename(step, inner),
		os.Rename(filepath.Join(inner, configFile), filepath.Join(dir, "checkpoint-5", configFile))); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(filepath.Dir(inner)); err != nil {
		t.Error(err)
	}
	sameContents(t, opened(t, OpenFolder, filepath.Dir(inner)), want)
}

// What cannot be read is refused by name.
func TestDistributedCheckpointErrors(t *testing.T) {
	for _, tt := range []struct{ name, file, from, to, want string }{
		{"other names", ".metadata", "embed_tokens", "tok_embeddin", "torch.distributed.checkpoint without Hugging Face's names (model.embed_tokens.weight, …); it has app.model.lm_head.weight"},
		{"a file outside", ".metadata", "__1_0.distcp", "../_0.distcp", "is not a file of this folder"},
		{"a file that is missing", ".metadata", "__1_0.distcp", "__7_0.distcp", "no such file"},
		{"truncated", "__1_0.distcp", "", "", "beyond the end"},
	} {
		dir := filepath.Join(distributedFolder(t), "step")
		path := filepath.Join(dir, tt.file)
		raw := readFile(t, path)
		if tt.from == "" {
			raw = raw[:1000]
		}
		if writeFile(t, path, bytes.ReplaceAll(raw, []byte(tt.from), []byte(tt.to))); tt.from == "" {
			writeFile(t, path, raw)
		}
		x, err := OpenFolder(dir)
		if err == nil {
			x.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// testdata/dcpzstd.tar.gz is what torch 2.15 saves of one tensor with _extensions=[ZStandard()].
func TestDistributedCheckpointCompressed(t *testing.T) {
	x, err := OpenFolder(filepath.Join(untarred(t, "testdata/dcpzstd.tar.gz"), "step"))
	if err == nil {
		x.Close()
	}
	const want = `tensor "model.model.embed_tokens.weight": its elements went through "stream.zstd/1"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Damaged metadata is an error, or gives tensors that can be read: no panic, no huge allocation.
func TestDistributedCheckpointDamaged(t *testing.T) {
	dir := filepath.Join(distributedFolder(t), "step")
	path := filepath.Join(dir, ".metadata")
	raw := readFile(t, path)
	tries := 400
	if os.Getenv("EXP_TEST_ALL") != "" {
		tries = 20_000
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range tries {
		bad := bytes.Clone(raw)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] = byte(r.IntN(256))
		}
		writeFile(t, path, bad)
		x, err := OpenFolder(dir)
		if err != nil {
			continue
		}
		_, _ = x.Digests(nil) // reads all
		x.Close()
	}
}
