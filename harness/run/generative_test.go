package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/prompt"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/tokenizer"
)

// writeModel writes some tensors of a model to a folder in Hugging Face's layout.
func (l *lab) writeModel(dir, architecture string, tok tokenizer.Tokenizer, m *model.Model, keep func(t model.Tensor) bool) {
	l.t.Helper()
	var out bytes.Buffer
	if err := checkpoint.WriteSafetensors(&out, checkpoint.Weights(l.be, m, keep)); err != nil {
		l.t.Fatal(err)
	}
	c, files := m.Config, tok.Files()
	files["model.safetensors"] = out.Bytes()
	files["config.json"] = fmt.Appendf(nil, `{"architectures": [%q], "vocab_size": %d, "hidden_size": %d, "num_hidden_layers": %d,
		"num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d, "intermediate_size": %d, "rms_norm_eps": %g, "rope_theta": %g, "max_position_embeddings": %d}`,
		architecture, c.Vocab, c.Width, c.Layers, c.Heads, c.KVHeads, c.Head, c.FFN, c.NormEps, c.RopeTheta, c.MaxPositions)
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			l.t.Fatal(err)
		}
	}
}

// counting writes a language model that counts: after a digit it writes the next one, after 9 it ends, and after
// any other character it writes 5. So it ends its answer to a text with the digits above the text's last one.
func (l *lab) counting(dir string, after string) {
	l.t.Helper()
	tok, err := prompt.Tokenizer(&smoke(l.t).Run)
	if err != nil {
		l.t.Fatal(err)
	}
	c := stage.ModelConfig(&smoke(l.t).Run, tok.VocabSize())
	c.Width, c.Layers, c.TieEmbeddings = 16*((c.Vocab+15)/16), 1, false // each token has a channel of its own
	m, err := model.New(l.be, c, model.Heads{LM: true}, false)
	if err != nil {
		l.t.Fatal(err)
	}
	defer m.Close()
	m.Init(func(string) uint64 { return 0 })
	for _, name := range []string{"self_attn.o_proj", "mlp.down_proj"} { // the layer adds nothing
		v := m.View("model.layers.0." + name + ".weight")
		l.be.Copy(v, kernels.Host(make([]float32, v.Len())))
	}
	id := func(text string) int {
		ids, err := tok.Encode(text, tokenizer.Options{})
		if err != nil || len(ids) != 1 {
			l.t.Fatal(text, ids, err)
		}
		return int(ids[0])
	}
	embed, head := make([]float32, c.Vocab*c.Width), make([]float32, c.Vocab*c.Width)
	next := slices.Repeat([]int{id(after)}, c.Vocab)
	for d := range 9 {
		next[id(fmt.Sprint(d))] = id(fmt.Sprint(d + 1))
	}
	next[id("9")] = int(tok.EndIDs()[0])
	for i, to := range next {
		embed[i*c.Width+i], head[to*c.Width+i] = 1, 20
	}
	l.be.Copy(m.View("model.embed_tokens.weight"), kernels.Host(embed))
	l.be.Copy(m.View("lm_head.weight"), kernels.Host(head))
	l.writeModel(dir, "LlamaForCausalLM", tok, m, func(model.Tensor) bool { return true })
}

// A generative reward model is sampled by the run's own engine. Its scores are those that its answers hold, for any
// number of answers at once, and its weights and message are part of what the run is.
func TestGenerativeReward(t *testing.T) {
	l := newLab(t)
	dir := t.TempDir()
	l.counting(dir, "5")
	template := filepath.Join(t.TempDir(), "judge.txt")
	message := func(text string) {
		if err := os.WriteFile(template, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	message("{prompt}{response}")
	conf := fmt.Sprintf("reward={kind: genrm, weights: %s, judge: {template: %s, pattern: '^([0-9])', max_tokens: 16, context: 32}, max_not_graded: 1}", dir, template)
	p := l.plan(1, rewarded, conf)
	res, _ := l.execute(p)
	l.samplesAgain(p)
	samples, err := l.db.Samples(t.Context(), res.Run.ID, store.SampleQuery{Scope: "train"})
	if err != nil {
		t.Fatal(err)
	}
	packs := l.db.Blobs.NewPackReader()
	defer packs.Close()
	const limit = 32 - 16
	scores, long := map[float64]int{}, 0
	for _, x := range samples {
		var kept keptSample
		if err := packs.Read(x.Ref, &kept); err != nil {
			t.Fatal(err)
		}
		last, want := kept.Text[max(0, len(kept.Text)-1):], 5.0
		if d, err := strconv.Atoi(last); err == nil {
			want = float64(d + 1)
		}
		fits := len(kept.Prompt+kept.Text) <= limit
		switch v := x.Verdict; {
		case v == nil || v.Graded != (fits && last != "9"):
			t.Fatalf("%q: %+v", kept.Text, v)
		case !fits && strings.Contains(v.Reason, "more than the 16 that reward.judge.context leaves it"):
			long++
		case v.Graded && v.Reward != want:
			t.Fatalf("%q has the score %g, want %g", kept.Text, v.Reward, want)
		case v.Graded:
			scores[want]++
		}
	}
	if len(scores) < 3 || long == 0 {
		t.Errorf("scores of %d samples: %v, and %d had no room", len(samples), scores, long)
	}

	use := l.memoryOf(res.Run.ID)["train"]
	if peak, planned := float64(use.Peak), float64(use.Planned); !(peak > 0 && peak <= 1.05*planned && planned <= 1.2*peak) {
		t.Errorf("peak %.0f bytes, planned %.0f", peak, planned)
	}

	l.options.NoCache = true
	if again, _ := l.execute(l.plan(1, rewarded, conf, "reward.judge.sequences=3")); again.Run.ID != res.Run.ID || again.Executed == 0 {
		t.Errorf("with three answers at once: run %d, %d stages", again.Run.ID, again.Executed)
	}
	for what, change := range map[string]func(){"weights": func() { l.counting(dir, "6") }, "message": func() { message("{response}{prompt}") }} {
		if change(); l.plan(1, rewarded, conf).RID == p.RID {
			t.Errorf("another %s is the same run", what)
		}
	}
}
