package checkpoint

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPublishedShapes holds the shapes that training writes where transformers has others than package model: constants
// of Apertus's activation have no dimension, norms of Command R+'s heads have two. It reads such a file again.
func TestPublishedShapes(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		if x.Name != "apertus" && x.Name != "cohere-qk-norm" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		to := trainedFolder(t, c, weights, MergeOptions{})
		here := storedTensors(t, filepath.Join(dir, "model.safetensors"))
		got := storedTensors(t, filepath.Join(to, "model.safetensors"))
		if len(got) != len(here) {
			t.Errorf("the file has %d tensors, want %d", len(got), len(here))
		}
		for name, a := range here {
			b, want := got[name], a.Shape
			if strings.HasSuffix(name, ".act_fn.beta") || strings.HasSuffix(name, ".act_fn.eps") {
				want = []int{}
			}
			if headNorm(name) && x.Name == "cohere-qk-norm" {
				want = []int{3, 4}
			}
			if !slices.Equal(b.Shape, want) || !slices.Equal(b.Values, a.Values) {
				t.Errorf("%s is %v of shape %v, want %v of shape %v", name, b.Values, b.Shape, a.Values, want)
			}
		}
		again, err := OpenFolder(to)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := again.Fits(c); err != nil {
			t.Error(err)
		}
		for _, ranks := range []int{1, 2} {
			roundTrip(t, to, opened(t, OpenFolder, to), SpreadOptions{FSDP: ranks})
		}
	})
}

func TestApertusRefuses(t *testing.T) {
	for _, tt := range []struct {
		changes jsonObject
		want    string
	}{
		{jsonObject{"hidden_act": "silu"}, `hidden_act is "silu": only "xielu" is supported`},
		{jsonObject{"qk_norm": false}, "qk_norm must be true"},
		{jsonObject{"post_norm": true}, "post_norm and mlp_bias false"},
		{jsonObject{"rope_theta": nil, "rope_scaling": nil}, "transformers takes llama3 with factor 8"},
	} {
		list := jsonObject{"architectures": []string{"ApertusForCausalLM"}, "model_type": "apertus", "hidden_act": "xielu"}
		for k, v := range tt.changes {
			list[k] = v
		}
		_, err := ParseConfig(configFile, edit(t, list))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

// TestPhiPublishes holds the names of Phi's last norm and output projection that training writes against
// transformers', and the projection's bias against the column in which package model has it.
func TestPhiPublishes(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, _ []int32) {
		if x.Name != "phi" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		zeroed := storedTensors(t, filepath.Join(dir, "model.safetensors"))
		for i := range zeroed["lm_head.weight"].Values {
			if i%c.OutputWidth() > c.Width { // columns after the bias
				zeroed["lm_head.weight"].Values[i] = 0
			}
		}
		writeTensors(t, filepath.Join(dir, "model.safetensors"), sources(zeroed)...)
		weights := opened(t, OpenFolder, dir)
		to := trainedFolder(t, c, weights, MergeOptions{})
		here := storedTensors(t, filepath.Join(dir, "model.safetensors"))
		got := storedTensors(t, filepath.Join(to, "model.safetensors"))
		if len(got) != len(here)+1 || got["model.final_layernorm.weight"].Values == nil ||
			got["model.final_layernorm.bias"].Values == nil || got["model.norm.weight"].Values != nil {
			t.Errorf("the file has %d tensors: %q", len(got), slices.Sorted(maps.Keys(got)))
		}
		weight, bias, wide := got["lm_head.weight"], got["lm_head.bias"], here["lm_head.weight"]
		if !slices.Equal(weight.Shape, []int{c.Vocab, c.Width}) || !slices.Equal(bias.Shape, []int{c.Vocab}) {
			t.Fatalf("the output projection is %v, its bias %v", weight.Shape, bias.Shape)
		}
		for v := range c.Vocab {
			row := wide.Values[v*c.OutputWidth():][:c.Width+1]
			if !slices.Equal(weight.Values[v*c.Width:][:c.Width], row[:c.Width]) || bias.Values[v] != row[c.Width] {
				t.Fatalf("token %d has other weights", v)
			}
		}
		again := opened(t, OpenFolder, to)
		if err := again.Fits(c); err != nil {
			t.Error(err)
		}
		for _, ranks := range []int{1, 3} {
			roundTrip(t, to, again, SpreadOptions{FSDP: ranks})
		}
		delete(got, "lm_head.bias")
		writeTensors(t, filepath.Join(to, "model.safetensors"), sources(got)...)
		if _, err := OpenFolder(to); err == nil || !strings.Contains(err.Error(), "the class has both") {
			t.Errorf("without a bias: %v", err)
		}
	})
}
