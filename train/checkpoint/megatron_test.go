package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/megatron"
	"exp/train/model"
)

// megatronCases are the golden checkpoints, written by megatron-core.
func megatronCases(t *testing.T) []string {
	dir := goldenContainer(t, "megatron")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, filepath.Join(dir, e.Name()))
	}
	return list
}

// The layout puts the elements where megatron-core has them.
func TestMegatronLayout(t *testing.T) {
	for _, dir := range megatronCases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var want struct {
				TP, PP, VP, EP int
				Ranks          []struct {
					Rank    struct{ TP, PP, EP int }
					Folder  string
					Tensors map[string]map[string]struct {
						Shape  []int
						SHA256 string
					}
				}
			}
			if err := json.Unmarshal(readFile(t, filepath.Join(dir, "layout.json")), &want); err != nil {
				t.Fatal(err)
			}
			c, err := ReadConfig(filepath.Join(dir, "hf"))
			if err != nil {
				t.Fatal(err)
			}
			x := opened(t, OpenFolder, filepath.Join(dir, "hf"))
			l, err := megatron.Even(c, megatron.Grid{TP: want.TP, PP: want.PP, VP: want.VP, EP: want.EP})
			if err != nil {
				t.Fatal(err)
			}
			if len(want.Ranks) != len(l.Grid.Ranks()) {
				t.Fatalf("%d ranks, want %d", len(l.Grid.Ranks()), len(want.Ranks))
			}
			for _, r := range want.Ranks {
				rank := megatron.Rank(r.Rank)
				if got := l.Grid.Folder(rank); got != r.Folder {
					t.Errorf("folder %s, want %s", got, r.Folder)
				}
				for v := range want.VP {
					key := "model"
					if want.VP > 1 {
						key = fmt.Sprintf("model%d", v)
					}
					tensors := l.Chunk(rank, v)
					if len(tensors) != len(r.Tensors[key]) {
						t.Errorf("%s %s: %d tensors, want %d", r.Folder, key, len(tensors), len(r.Tensors[key]))
					}
					for _, tensor := range tensors {
						data, _, err := tensor.Compose(func(name string) extent.Tensor {
							p := x.where[name]
							return extent.Tensor{DType: string(p.DType), Shape: p.Shape, Data: p.data}
						})
						if err != nil {
							t.Fatal(err)
						}
						h := sha256.New()
						if _, err := io.Copy(h, io.NewSectionReader(data, 0, data.Size())); err != nil {
							t.Fatal(err)
						}
						sum := r.Tensors[key][tensor.Name]
						if hex.EncodeToString(h.Sum(nil)) != sum.SHA256 || !slices.Equal(tensor.Shape, sum.Shape) {
							t.Errorf("%s %s: %s has other elements", r.Folder, key, tensor.Name)
						}
					}
				}
			}
		})
	}
}

// Both formats give the Hugging Face model that they were made from.
func TestGoldenMegatron(t *testing.T) {
	for _, dir := range megatronCases(t) {
		for _, format := range []string{"torch", "torch_dist"} {
			path := filepath.Join(dir, format)
			if _, err := os.Stat(path); err != nil {
				continue // virtual stages have no torch_dist here
			}
			t.Run(filepath.Base(dir)+"/"+format, func(t *testing.T) {
				c, err := FindContainer(path)
				if err != nil {
					t.Fatal(err)
				}
				want := opened(t, OpenFolder, filepath.Join(dir, "hf"))
				c.Texts = filepath.Join(dir, "hf")
				got, err := c.Open()
				if err != nil {
					t.Fatal(err)
				}
				defer got.Close()
				if err := got.agree(); err != nil {
					t.Error(err)
				}
				sameContents(t, got, want)

				c.Texts, c.Vocab = "", 509
				conf, err := c.argsConfig()
				known, err2 := ReadConfig(filepath.Join(dir, "hf"))
				if err2 != nil {
					t.Fatal(err2)
				}
				if filepath.Base(dir) == "moe-pp2ep2" { // its arguments leave the routing out
					if err == nil {
						t.Error("no error about experts per token")
					}
					return
				}
				if err != nil || fmt.Sprint(conf) != fmt.Sprint(known) {
					t.Errorf("the arguments say %+v (%v), config.json %+v", conf, err, known)
				}
			})
		}
	}
}

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

// Every way to spread a model gives it back, bit for bit.
func TestSpreadAndBack(t *testing.T) {
	for name, c := range spreadModels() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := spreadModel(t, c)
			want := opened(t, OpenFolder, from)
			for _, tp := range []int{1, 2, 4} {
				for _, pp := range []int{1, 2, 4} {
					for _, vp := range []int{1, 2} {
						for _, ep := range []int{1, 2} {
							if ep > 1 && c.Sparse == nil || pp*vp > 4 {
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
	base := model.Config{Vocab: 37, Layers: 4, Width: 16, Heads: 4, KVHeads: 4, Head: 4, FFN: 24, RopeTheta: 1e4,
		NormEps: 1e-6, MaxPositions: 64, InitStd: 0.5}
	list := map[string]model.Config{"plain": base}
	tied := base
	tied.TieEmbeddings, tied.KVHeads = true, 2 // fewer groups than TP 4
	list["tied, groups straddle"] = tied
	bias := base
	bias.QKVBias, bias.KVHeads = true, 1
	list["bias, one group"] = bias
	norms := tied
	norms.QKNorm, norms.TieEmbeddings, norms.Head = true, false, 6
	list["norms of queries and keys"] = norms
	moe := norms
	moe.Sparse, moe.Experts = []bool{true, true, true, true}, model.Experts{Count: 4, Top: 2, FFN: 8, Renorm: true}
	list["experts"] = moe
	shared := bias
	shared.Sparse, shared.Experts = []bool{false, true, true, true}, model.Experts{Count: 2, Top: 1, FFN: 8, Shared: 12}
	list["shared expert, dense layer"] = shared
	return list
}

func roundTrip(t *testing.T, from string, want *Tensors, o SpreadOptions) {
	t.Helper()
	c, err := FindContainer(from)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Spread(context.Background(), c, out, o); err != nil {
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
