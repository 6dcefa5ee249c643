package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// spreadModel returns a folder with a tiny model of other bytes in every tensor.
func spreadModel(t *testing.T, c model.Config) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hf")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	raw, err := configJSON(c, F32, nil)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, configFile), raw)
	layout, _ := model.Layout(c, model.Heads{LM: true})
	var sources []Source
	for _, x := range layout {
		tensor := Tensor{Name: x.Name, DType: F32, Shape: x.Shape}
		sources = append(sources, Source{Tensor: tensor, Raw: func(w io.Writer) error {
			elements := make([]byte, tensor.Bytes())
			rand.NewChaCha8(sha256.Sum256([]byte(tensor.Name))).Read(elements)
			_, err := w.Write(elements)
			return err
		}})
	}
	var b bytes.Buffer
	if err := WriteSafetensors(&b, sources); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, weightsFile), b.Bytes())
	return dir
}

// Every way to spread a model gives it back, bit for bit. Each model takes a third of the grids, which
// are other ones for the next model; EXP_TEST_ALL=1 takes all.
func TestSpreadAndBack(t *testing.T) {
	models := spreadModels()
	for turn, name := range slices.Sorted(maps.Keys(models)) {
		c := models[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := spreadModel(t, c)
			want := opened(t, OpenFolder, from)
			for _, tp := range []int{1, 2, 4} {
				for _, pp := range []int{1, 2, 4} {
					for _, vp := range []int{1, 2} {
						for _, ep := range []int{1, 2} {
							third := (tp/2+pp/2+vp+ep+turn)%3 == 0 || os.Getenv("EXP_TEST_ALL") != ""
							if ep > 1 && c.Sparse == nil || !third {
								continue
							}
							roundTrip(t, from, want, SpreadOptions{Megatron: &megatron.Grid{TP: tp, PP: pp, VP: vp, EP: ep}})
						}
					}
				}
			}
			for _, ranks := range []int{1, 2, 3, 5} {
				roundTrip(t, from, want, SpreadOptions{FSDP: ranks})
			}
		})
	}
}

// spreadModels are the variants of models that a layout must keep apart.
func spreadModels() map[string]model.Config {
	base := model.Config{Vocab: 37, Layers: 8, Width: 16, Heads: 4, KVHeads: 4, Head: 4, FFN: 24, RopeTheta: 1e4,
		NormEps: 1e-6, MaxPositions: 64, InitStd: 0.5}
	list := map[string]model.Config{"plain": base}
	tied := base
	tied.TieEmbeddings, tied.KVHeads = true, 2 // fewer groups than TP 4
	list["tied, groups straddle"] = tied
	bias := base
	bias.QKVBias, bias.KVHeads = true, 1
	list["bias, one group"] = bias
	fused := tied
	fused.Fused, fused.TieEmbeddings = true, false
	list["fused projections"] = fused
	norms := tied
	norms.QKNorm, norms.TieEmbeddings, norms.Head = true, false, 6
	list["norms of queries and keys"] = norms
	moe := norms
	moe.Sparse, moe.Experts = slices.Repeat([]bool{true}, 8), model.Experts{Count: 4, Top: 2, FFN: 8, Renorm: true}
	list["experts"] = moe
	shared := bias
	shared.Sparse = []bool{false, true, true, true, false, true, true, true}
	shared.Experts = model.Experts{Count: 2, Top: 1, FFN: 8, Shared: 12}
	list["shared expert, dense layer"] = shared
	return list
}

// unsynced is the disk without waiting for it: many small files take long otherwise.
func unsynced() disk {
	d := system()
	d.create = func(path string) (file, error) {
		f, err := system().create(path)
		return hasty{f}, err
	}
	d.syncDir = func(string) error { return nil }
	return d
}

type hasty struct{ file }

func (hasty) Sync() error { return nil }

func roundTrip(t *testing.T, from string, want *Tensors, o SpreadOptions) {
	t.Helper()
	c, err := FindContainer(from)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := unsynced().spread(context.Background(), c, out, o); err != nil {
		t.Fatalf("%+v: %v", o.Megatron, err)
	}
	got, err := OpenFolder(out)
	if err != nil {
		t.Fatalf("%+v: %v", o.Megatron, err)
	}
	defer got.Close()
	if err := got.agree(); err != nil {
		t.Errorf("%+v: %v", o.Megatron, err)
	}
	if conf, err := ReadConfig(from); err != nil || got.tied(conf) != nil {
		t.Error(err)
	}
	if _, has := want.where[lmHead]; !has {
		delete(got.where, lmHead) // verl stores a tied one too
	}
	sameContents(t, got, want)
}

// Auxiliary heads in separate files of a Hugging Face folder go along to another such folder
// and to FSDP's ranks. Megatron has no place for them.
func TestHeadsGoAlong(t *testing.T) {
	from := toyFolder(t, toyLlama, none)
	head := []Source{source("proj_z.net.0.weight", F32, []int{3, 2}, "abcdefghijklmnopqrstuvwx"),
		source("proj_z.net.0.bias", F32, []int{3}, "abcdefghijkl")}
	writeTensors(t, filepath.Join(from, "proj_z.safetensors"), head...)
	want := bytesOf(t, opened(t, OpenFile, filepath.Join(from, "proj_z.safetensors")))

	dir, p := packed(t, from, PackOptions{})
	got := bytesOf(t, opened(t, OpenFile, filepath.Join(dir, "proj_z.safetensors")))
	if layout, _ := model.Layout(toyLlama, model.Heads{LM: true}); !cmp.Equal(got, want) || p.Tensors != len(layout)+2 {
		t.Errorf("%d tensors; the head has %v", p.Tensors, got)
	}
	c, err := FindContainer(dir)
	if err != nil {
		t.Fatal(err)
	}
	ranks := filepath.Join(t.TempDir(), "ranks")
	if _, err := Spread(t.Context(), c, ranks, SpreadOptions{FSDP: 2, Prove: true}); err != nil {
		t.Fatal(err)
	}
	back, _ := packed(t, ranks, PackOptions{})
	if got := bytesOf(t, opened(t, OpenFile, filepath.Join(back, "proj_z.safetensors"))); !cmp.Equal(got, want) {
		t.Errorf("after FSDP the head has %v", got)
	}
	p, err = Spread(t.Context(), c, filepath.Join(t.TempDir(), "out"), SpreadOptions{Prove: true,
		Megatron: &megatron.Grid{TP: 1, PP: 1, VP: 1, EP: 1}})
	if err != nil || !slices.Contains(p.Notes, "2 tensors of auxiliary heads: left out") {
		t.Errorf("notes %q, %v", p.Notes, err)
	}
}

// spreads are a way of each format.
func spreads() map[string]SpreadOptions {
	return map[string]SpreadOptions{"megatron": {Megatron: &megatron.Grid{TP: 2, PP: 2, VP: 1, EP: 1}, Prove: true},
		"fsdp": {FSDP: 2, Prove: true}}
}

// changed flips a bit of every file of ranks that is written.
type changed struct{ file }

func (c changed) Write(b []byte) (int, error) {
	b = bytes.Clone(b)
	if i := bytes.Index(b, []byte("abcd")); i >= 0 {
		b[i] ^= 1
	}
	return c.file.Write(b)
}

// Bits that reach the disk otherwise than they were read are found before the folder has
// its name.
func TestSpreadProves(t *testing.T) {
	for format, o := range spreads() {
		isHead := func(name string) bool { return name == lmHead }
		c, err := FindContainer(toyFolder(t, toyLlama, isHead, source(lmHead, F32, []int{toyLlama.Vocab, toyLlama.Width},
			strings.Repeat("abcd", toyLlama.Vocab*toyLlama.Width))))
		if err != nil {
			t.Fatal(err)
		}
		d := system()
		d.create = func(path string) (file, error) {
			f, err := system().create(path)
			return changed{f}, err
		}
		root := t.TempDir()
		_, err = d.spread(t.Context(), c, filepath.Join(root, "out"), o)
		var e *Error
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Tensor != lmHead || len(tree(t, root)) > 0 {
			t.Errorf("%s: got %v, left %d files", format, err, len(tree(t, root)))
		}
	}
}

// A disk that fills up at any moment leaves what was there, and nothing else.
func TestSpreadOnAFullDisk(t *testing.T) {
	from := toyFolder(t, toyLlama, none)
	for format, o := range spreads() {
		for _, name := range []string{"new", "there"} {
			t.Run(format+" "+name, func(t *testing.T) {
				root := t.TempDir()
				writeFile(t, filepath.Join(root, "there", configFile), []byte("old"))
				o.Replace = true
				eachFault(t, root, func(d disk) error {
					c, err := FindContainer(from)
					if err != nil {
						return err
					}
					_, err = d.spread(t.Context(), c, filepath.Join(root, name), o)
					return err
				})
			})
		}
	}
}

// What cannot be written leaves nothing, and says why.
func TestSpreadErrors(t *testing.T) {
	c, err := FindContainer(toyFolder(t, toyLlama, none))
	if err != nil {
		t.Fatal(err)
	}
	bare := *c
	bare.Texts = ""
	stopped, stop := context.WithCancel(t.Context())
	stop()
	root := t.TempDir()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		from *Container
		o    SpreadOptions
		want string
	}{
		{"TP", t.Context(), c, SpreadOptions{Megatron: &megatron.Grid{TP: 3, PP: 1, VP: 1, EP: 1}}, "TP 3 does not divide"},
		{"all axes", t.Context(), c, SpreadOptions{Megatron: &megatron.Grid{TP: 8, PP: 3, VP: 1, EP: 2}}, "EP 2: this model"},
		{"none", t.Context(), c, SpreadOptions{Megatron: &megatron.Grid{TP: 1, PP: 0, VP: 1, EP: 1}}, "PP is 0"},
		{"no ranks", t.Context(), c, SpreadOptions{}, "0 ranks: want 1 to"},
		{"no configuration", t.Context(), &bare, SpreadOptions{FSDP: 2}, "no config.json"},
		{"stopped", stopped, c, SpreadOptions{FSDP: 2}, "context canceled"},
	} {
		_, err := Spread(tt.ctx, tt.from, filepath.Join(root, "out"), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(tree(t, root)) > 0 {
			t.Errorf("%s: got %v, left %v", tt.name, err, tree(t, root))
		}
		if grid := errors.Is(err, ErrGrid); grid != (tt.from == c && tt.name != "stopped") {
			t.Errorf("%s: is about the grid: %v", tt.name, grid)
		}
	}
}
