package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
	"exp/kernels/ref"
	"exp/train/model"
)

// All selects everything.
func All(model.Tensor) bool { return true }

// newCPU returns a fast backend.
func newCPU(t *testing.T) kernels.Backend {
	t.Helper()
	be, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

// Every architecture and head, on every backend, reads back bit for bit.
func TestWeightsRoundTrip(t *testing.T) {
	backends := map[string]func(*testing.T) kernels.Backend{
		"ref":     func(*testing.T) kernels.Backend { return refBackend() },
		"float64": func(*testing.T) kernels.Backend { return ref.New[float64]() },
		"cpu":     newCPU,
	}
	configs := map[string]model.Config{"llama": toyLlama, "qwen2": toyQwen2, "qwen3": toyQwen3}
	heads := map[string]model.Heads{"policy": policyHeads, "critic": {Value: true}, "plain": {LM: true}}
	for bname, open := range backends {
		for cname, c := range configs {
			for hname, h := range heads {
				t.Run(bname+"/"+cname+"/"+hname, func(t *testing.T) {
					be := open(t)
					m := newModel(t, be, c, h, true)
					path := writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), Weights(be, m, All)...)
					fresh := emptyModel(t, be, c, h)
					x, err := OpenFile(path)
					if err != nil {
						t.Fatal(err)
					}
					defer x.Close()
					if err := LoadWeights(be, fresh, x, All); err != nil {
						t.Fatal(err)
					}
					for _, tensor := range m.Tensors() {
						if !bytes.Equal(bufferBytes(be, fresh.View(tensor.Name)), bufferBytes(be, m.View(tensor.Name))) {
							t.Errorf("%s differs", tensor.Name)
						}
					}
				})
			}
		}
	}
}

// The digest of weights is computed of (name, dtype, shape, bytes): the same
// whether they come from a model, its file, or another backend.
func TestWeightsDigest(t *testing.T) {
	digest := func(list []Source) string {
		h := sha256.New()
		for _, s := range list {
			io.WriteString(h, s.Name+" "+s.kind())
			if err := s.Raw(h); err != nil {
				t.Fatal(err)
			}
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	be := refBackend()
	m := newModel(t, be, toyQwen2, policyHeads, false)
	want := digest(Weights(be, m, All))
	x := open(t, writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), Weights(be, m, All)...))
	if got := digest(x.Sources()); got != want {
		t.Errorf("of the file %s, of the model %s", got, want)
	}
	other := newCPU(t)
	if got := digest(Weights(other, newModel(t, other, toyQwen2, policyHeads, true), All)); got != want {
		t.Errorf("of another backend %s, of the first %s", got, want)
	}
	if got := digest(Weights(be, m, Plain)); got == want {
		t.Error("without the head the digest is the same")
	}
}

func TestWeightsFilters(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, model.Heads{LM: true, Value: true, LogZ: policyHeads.LogZ}, false)
	names := func(keep Filter) (list []string) {
		for _, s := range Weights(be, m, keep) {
			list = append(list, s.Name)
		}
		return list
	}
	plain, auxiliary, all := names(Plain), names(Auxiliary), names(All)
	if !slices.IsSorted(all) || len(plain)+len(auxiliary) != len(all) {
		t.Errorf("%d plain and %d auxiliary of %d tensors", len(plain), len(auxiliary), len(all))
	}
	want := []string{"proj_z.net.0.bias", "proj_z.net.0.weight", "proj_z.net.2.bias", "proj_z.net.2.weight", "proj_z.net.4.bias",
		"proj_z.net.4.weight", "proj_z.net.6.bias", "proj_z.net.6.weight", "proj_z.net.8.bias", "proj_z.net.8.weight", "score.bias", "score.weight"}
	if !slices.Equal(auxiliary, want) {
		t.Errorf("auxiliary tensors %q, want %q", auxiliary, want)
	}
}

// A bf16 file of another writer fills a float32 model exactly.
func TestLoadWeightsConverts(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	var list []Source
	for _, s := range Weights(be, m, All) {
		var raw, upper bytes.Buffer
		s.Raw(&raw)
		for i := 0; i < raw.Len(); i += 4 {
			upper.Write(raw.Bytes()[i+2 : i+4])
		}
		list = append(list, source(s.Name, BF16, s.Shape, upper.String()))
	}
	fresh := emptyModel(t, be, toyQwen2, model.Heads{LM: true})
	x := open(t, writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), list...))
	if err := LoadWeights(be, fresh, x, Plain); err != nil {
		t.Fatal(err)
	}
	want := bufferBytes(be, m.View("model.norm.weight"))
	for i := 0; i < len(want); i += 4 {
		want[i], want[i+1] = 0, 0 // the lower half is cut off
	}
	if got := bufferBytes(be, fresh.View("model.norm.weight")); !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// replaced returns the weights of m with some tensors replaced; nil drops one.
func replaced(be kernels.Backend, m *model.Model, changes map[string]*Source) []Source {
	var list []Source
	for _, s := range Weights(be, m, All) {
		if other, ok := changes[s.Name]; !ok {
			list = append(list, s)
		} else if other != nil {
			list = append(list, *other)
		}
		delete(changes, s.Name)
	}
	for _, s := range changes {
		list = append(list, *s)
	}
	return list
}

// All misfits are listed at once, and the model is not touched.
func TestLoadWeightsMismatch(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyLlama, policyHeads, false)
	short := source("model.norm.weight", F32, []int{2}, "12345678")
	ints := source("model.layers.0.input_layernorm.weight", "I64", []int{12}, strings.Repeat("x", 96))
	extra := source("model.layers.7.mlp.up_proj.weight", F32, []int{1}, "1234")
	x := open(t, writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), replaced(be, m, map[string]*Source{
		short.Name: &short, ints.Name: &ints, extra.Name: &extra, "lm_head.weight": nil, "model.layers.1.mlp.up_proj.weight": nil,
	})...))
	fresh := emptyModel(t, be, toyLlama, policyHeads)
	err := LoadWeights(be, fresh, x, All)
	var e *MismatchError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *MismatchError", err)
	}
	if want := []string{"lm_head.weight", "model.layers.1.mlp.up_proj.weight"}; !slices.Equal(e.Missing, want) {
		t.Errorf("missing %q, want %q", e.Missing, want)
	}
	if want := []string{extra.Name}; !slices.Equal(e.Unexpected, want) {
		t.Errorf("unexpected %q, want %q", e.Unexpected, want)
	}
	want := []Misshape{{ints.Name, "I64 [12]", "F32 [12]"}, {short.Name, "F32 [2]", "F32 [12]"}}
	if !slices.Equal(e.Misshaped, want) {
		t.Errorf("shapes %+v, want %+v", e.Misshaped, want)
	}
	for _, line := range []string{"missing: lm_head.weight", "unexpected: " + extra.Name, "shape: model.norm.weight: the file has F32 [2], wanted F32 [12]"} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("error %q does not say %q", err, line)
		}
	}
	if b := bufferBytes(be, fresh.Params()); !bytes.Equal(b, make([]byte, len(b))) {
		t.Error("the model was changed")
	}
}

// The error of a wrong architecture stays readable.
func TestMismatchErrorIsShort(t *testing.T) {
	e := &MismatchError{Path: "p"}
	for range 300 {
		e.Missing = append(e.Missing, "x")
	}
	if got := e.Error(); strings.Count(got, "\n") != listed+1 || !strings.HasSuffix(got, "missing: and 288 more") {
		t.Errorf("got %q", got)
	}
}

func TestLoadWeightsTied(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, model.Heads{LM: true}, false)
	embed := string(bufferBytes(be, m.View(embedding)))
	same := source(lmHead, F32, []int{11, 8}, embed)
	other := source(lmHead, F32, []int{11, 8}, embed[:len(embed)-1]+"!")
	dir := t.TempDir()
	absent := writeTensors(t, filepath.Join(dir, "absent"), Weights(be, m, All)...)
	equal := writeTensors(t, filepath.Join(dir, "equal"), replaced(be, m, map[string]*Source{lmHead: &same})...)
	differs := writeTensors(t, filepath.Join(dir, "differs"), replaced(be, m, map[string]*Source{lmHead: &other})...)
	for path, ok := range map[string]bool{absent: true, equal: true, differs: false} {
		err := LoadWeights(be, emptyModel(t, be, toyQwen2, model.Heads{LM: true}), open(t, path), Plain)
		if (err == nil) != ok {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
		var e *Error
		if !ok && (!errors.As(err, &e) || e.Tensor != lmHead || !strings.Contains(e.Hint, "tie_word_embeddings")) {
			t.Errorf("%s: %v, want an *Error about %s with a hint", filepath.Base(path), err, lmHead)
		}
	}
	untied := toyQwen2
	untied.TieEmbeddings = false
	if err := LoadWeights(be, emptyModel(t, be, untied, model.Heads{LM: true}), open(t, absent), Plain); err == nil {
		t.Error("an untied model was filled from a file without lm_head.weight")
	}
	if err := LoadWeights(be, emptyModel(t, be, untied, model.Heads{LM: true}), open(t, differs), Plain); err != nil {
		t.Errorf("untied: %v", err)
	}
}

// A folder with more than the model needs: FlowRL's published models keep the
// log Z head among the weights, and a critic starts from a policy.
func TestLoadWeightsIgnores(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyLlama, policyHeads, false)
	table := source("model.layers.0.self_attn.rotary_emb.inv_freq", F32, []int{2}, "12345678")
	x := open(t, writeTensors(t, filepath.Join(t.TempDir(), "x.safetensors"), replaced(be, m, map[string]*Source{table.Name: &table})...))
	critic := newModel(t, be, toyLlama, model.Heads{Value: true}, false)
	head := bufferBytes(be, critic.View("score.weight"))
	plain := emptyModel(t, be, toyLlama, model.Heads{LM: true})
	for _, to := range []*model.Model{plain, critic} {
		if err := LoadWeights(be, to, x, Plain); err != nil {
			t.Fatal(err)
		}
		for _, b := range Buffers(to, Plain) {
			if !bytes.Equal(bufferBytes(be, b.Data), bufferBytes(be, m.View(b.Name))) {
				t.Errorf("%s differs", b.Name)
			}
		}
	}
	if !bytes.Equal(bufferBytes(be, critic.View("score.weight")), head) {
		t.Error("the value head was changed")
	}
}
