package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"exp/train/checkpoint/extent"
	"exp/train/checkpoint/megatron"
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
