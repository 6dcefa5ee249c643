package checkpoint

import (
	"path/filepath"
	"strings"
	"testing"

	"exp/kernels/ref"
)

// An EXAONE 3 under its own names is read as the Llama that it is, and written as one.
func TestExaoneIsLlama(t *testing.T) {
	eachFamily(t, func(t *testing.T, x family, dir string, tokens []int32) {
		if x.Name != "exaone" {
			return
		}
		c, err := ReadConfig(dir)
		if err != nil {
			t.Fatal(err)
		}
		own := strings.NewReplacer("model.embed_tokens", "transformer.wte", "model.layers", "transformer.h", "model.norm",
			"transformer.ln_f", "self_attn.o_proj", "attn.attention.out_proj", "self_attn", "attn.attention",
			"input_layernorm", "ln_1", "post_attention_layernorm", "ln_2", "gate_proj", "c_fc_0", "up_proj", "c_fc_1",
			"down_proj", "c_proj")
		list := waves(c)
		for i := range list {
			list[i].Name = own.Replace(list[i].Name)
		}
		list = append(list, source("transformer.rotary.inv_freq", F32, []int{1}, "abcd"))
		writeTensors(t, filepath.Join(dir, weightsFile), list...)
		be := ref.New[float64]()
		m := openGolden(t, be, dir, false)
		got := logitsOf(t, be, m, tokens)
		wantNear(t, got[len(got)-len(x.Logits):], x.Logits, 1e-6)
		m.Close()

		origin, err := ReadOrigin(dir)
		if err != nil {
			t.Fatal(err)
		}
		weights, err := OpenFolder(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer weights.Close()
		to := trainedFolder(t, c, weights, MergeOptions{Origin: origin})
		text := string(readFile(t, filepath.Join(to, configFile)))
		for _, part := range []string{`"LlamaForCausalLM"`, `"model_type": "llama"`, `"num_hidden_layers"`} {
			if !strings.Contains(text, part) {
				t.Errorf("the written config.json lacks %s: %s", part, text)
			}
		}
		if strings.Contains(text, "auto_map") {
			t.Errorf("the written config.json names code of EXAONE: %s", text)
		}
	})
}
