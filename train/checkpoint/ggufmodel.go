package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/checkpoint/gguf"
	"exp/train/model"
)

// GGUFOptions say how WriteGGUF writes a file.
type GGUFOptions struct {
	// Type is the type of matrices, one of GGUFTypes; "keep" is their own. Vectors, and routers of experts, have F32.
	Type    string
	Replace bool // swap out an existing target, which is otherwise an error
	// Progress, if set, is called now and then with the bytes written so far.
	Progress func(done int64)
}

// GGUFTypes returns the types in which WriteGGUF writes matrices.
func GGUFTypes() []string { return []string{"keep", "bf16", "f16", "f32", "q8_0"} }

// ggufFile is the file in a folder that WriteGGUF makes.
const ggufFile = "model.gguf"

// WriteGGUF writes the language model c, with its tokenizer and chat template, as DIR/model.gguf, which llama.cpp and
// programs built on it read. Classes are LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM and
// Qwen3MoeForCausalLM; the tokenizer has byte-level BPE with a pattern that llama.cpp knows. On any error, and if ctx
// ends, dir is unchanged.
func WriteGGUF(ctx context.Context, c *Container, dir string, o GGUFOptions) (*Packed, error) {
	return system().writeGGUF(ctx, c, dir, o)
}

func (d disk) writeGGUF(ctx context.Context, c *Container, dir string, o GGUFOptions) (*Packed, error) {
	if _, err := os.Lstat(dir); err == nil && !o.Replace {
		return nil, taken("convert", dir)
	}
	conf, raw, err := c.architecture()
	if err != nil {
		return nil, err
	}
	t, err := c.openWhole()
	if err != nil {
		return nil, err
	}
	if err = errors.Join(t.Fits(conf), t.tied(conf), t.agree()); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	p := &packer{d: d, c: c, t: t, config: raw}
	p.out = Packed{Container: c.Kind, Source: c.Path, Ranks: c.Ranks, Class: classOf(raw)}
	err = p.gguf(ctx, dir, conf, o)
	return &p.out, errors.Join(err, t.Close())
}

func (p *packer) gguf(ctx context.Context, dir string, conf model.Config, o GGUFOptions) error {
	unfit := func(err error) error {
		if e := (*Error)(nil); errors.As(err, &e) {
			return err
		}
		return &Error{Op: "convert", Path: p.c.Path, Err: err}
	}
	arch, err := ggufArchitecture(p.out.Class, conf)
	if err != nil {
		return unfit(err)
	}
	fields := ggufSettings(arch, conf)
	words, err := p.ggufTokenizer(conf)
	if err != nil {
		return unfit(err)
	}
	tensors, kind, err := p.ggufTensors(arch, conf, o.Type)
	if err != nil {
		return unfit(err)
	}
	fields = append(append(fields, gguf.Field{Key: "general.file_type", Value: ggufFileType(kind)}), words...)
	if kind == gguf.Q8 {
		fields = append(fields, gguf.Field{Key: "general.quantization_version", Value: uint32(2)})
	}
	if conf.Windowed != nil && slices.Contains(conf.Windowed, true) {
		p.note("llama.cpp has no windows in this class: texts of more than %d tokens get other log-probs", conf.Window)
	}
	s, err := p.d.stage("convert", dir)
	if err != nil {
		return err
	}
	defer s.discard()
	w := &watched{ctx: ctx, progress: o.Progress}
	info, err := s.write(ggufFile, func(to io.Writer) error {
		w.to = to
		return gguf.Write(w, fields, tensors)
	})
	if err != nil {
		return err
	}
	p.out.Files = append(p.out.Files, DescribedFile{Name: info.Name, Bytes: info.Bytes})
	return s.publish(o.Replace)
}

// ggufArchitecture returns llama.cpp's name of a class, or why it cannot have the model.
func ggufArchitecture(class string, c model.Config) (string, error) {
	names := map[string]string{"LlamaForCausalLM": "llama", "MistralForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2",
		"Qwen3ForCausalLM": "qwen3", "Qwen3MoeForCausalLM": "qwen3moe"}
	arch, ok := names[class]
	if !ok {
		return "", fmt.Errorf("%s is not written as GGUF: LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, "+
			"Qwen3ForCausalLM and Qwen3MoeForCausalLM are", class)
	}
	switch r := c.Rope.Kind; {
	case !slices.Contains([]string{"", "linear", "llama3", "yarn"}, r):
		return "", fmt.Errorf("rotary scaling %s is not written as GGUF", r)
	case r == "llama3" && arch != "llama":
		return "", fmt.Errorf("llama.cpp knows rotary scaling llama3 of Llama's class only")
	case r == "yarn" && c.Rope.Exact:
		return "", errors.New("llama.cpp has no yarn with truncate: false")
	case r == "yarn" && (c.Rope.BetaFast != 32 || c.Rope.BetaSlow != 1 ||
		math.Abs(c.Rope.Attention-yarnScale(c)) > 1e-6):
		return "", errors.New("yarn is written as GGUF only with the usual beta_fast 32, beta_slow 1 and " +
			"attention_factor 0.1·ln(factor) + 1")
	case arch == "qwen3moe" && slices.Contains(c.Sparse, false):
		return "", errors.New("llama.cpp's qwen3moe has experts in every layer (mlp_only_layers, decoder_sparse_step)")
	case arch == "qwen3moe" && !c.Experts.Renorm:
		return "", errors.New("llama.cpp's qwen3moe divides the weights of the chosen experts by their sum " +
			"(norm_topk_prob: true)")
	case arch != "llama" && (c.OutBias || c.FFNBias):
		return "", fmt.Errorf("llama.cpp's %s has no biases of outputs (attention_bias, mlp_bias)", arch)
	}
	return arch, nil
}

// yarnScale is the factor of cos and sin that llama.cpp gives yarn (arXiv:2309.00071 eq. 22).
func yarnScale(c model.Config) float64 { return 0.1*math.Log(c.Rope.Factor) + 1 }

// ggufSettings returns the model's settings.
func ggufSettings(arch string, c model.Config) []gguf.Field {
	list := []gguf.Field{{Key: "general.architecture", Value: arch}, {Key: "general.type", Value: "model"}}
	add := func(key string, v any) { list = append(list, gguf.Field{Key: arch + "." + key, Value: v}) }
	add("vocab_size", uint32(c.Vocab))
	add("context_length", uint32(c.MaxPositions))
	add("embedding_length", uint32(c.Width))
	add("block_count", uint32(c.Layers))
	add("feed_forward_length", uint32(c.FFN))
	add("attention.head_count", uint32(c.Heads))
	add("attention.head_count_kv", uint32(c.KVHeads))
	add("attention.key_length", uint32(c.Head))
	add("attention.value_length", uint32(c.Head))
	add("attention.layer_norm_rms_epsilon", float32(c.NormEps))
	add("rope.dimension_count", uint32(c.Head))
	add("rope.freq_base", float32(c.RopeTheta))
	if r := c.Rope; r.Kind == "linear" || r.Kind == "yarn" {
		add("rope.scaling.type", r.Kind)
		add("rope.scaling.factor", float32(r.Factor))
		if r.Kind == "yarn" {
			add("rope.scaling.original_context_length", uint32(r.Original))
		}
	}
	if e := c.Experts; e.Count > 0 {
		add("expert_count", uint32(e.Count))
		add("expert_used_count", uint32(e.Top))
		add("expert_feed_forward_length", uint32(e.FFN))
	}
	return list
}

// ggufFileType returns the format's number of a file whose matrices have a type.
func ggufFileType(t gguf.Type) uint32 {
	return map[gguf.Type]uint32{gguf.F32: 0, gguf.F16: 1, gguf.Q8: 7, gguf.BF16: 32}[t]
}

// ggufNames maps the ends of names to llama.cpp's.
func ggufNames() map[string]string {
	return map[string]string{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
		"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
		"self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
		"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp"}
}

var (
	layerName  = regexp.MustCompile(`^model\.layers\.(\d+)\.(.+)\.(weight|bias)$`)
	expertName = regexp.MustCompile(`^mlp\.experts\.(\d+)\.(gate|up|down)_proj$`)
)

// ggufName returns llama.cpp's name of a tensor; of an expert's, the name that all experts of the layer share.
func ggufName(name string) (string, error) {
	switch name {
	case embedding:
		return "token_embd.weight", nil
	case lmHead:
		return "output.weight", nil
	case "model.norm.weight":
		return "output_norm.weight", nil
	}
	if m := layerName.FindStringSubmatch(name); m != nil {
		if e := expertName.FindStringSubmatch(m[2]); e != nil {
			return "blk." + m[1] + ".ffn_" + e[2] + "_exps." + m[3], nil
		}
		if to, ok := ggufNames()[m[2]]; ok {
			return "blk." + m[1] + "." + to + "." + m[3], nil
		}
	}
	return "", fmt.Errorf("llama.cpp has no name for tensor %s", name)
}

// ggufTensors returns the model's tensors, and the type of its matrices.
func (p *packer) ggufTensors(arch string, conf model.Config, as string) (list []gguf.Tensor, kind gguf.Type,
	err error) {
	layout, _ := model.Layout(conf, model.Heads{LM: true})
	from := map[string][]string{} // the tensors that one is made of, in order
	var order []string
	for _, x := range layout {
		name, err := ggufName(x.Name)
		if err != nil {
			return nil, 0, err
		}
		if from[name] == nil {
			order = append(order, name)
		}
		from[name] = append(from[name], x.Name)
	}
	if kind, err = ggufType(as, p.t.where[embedding].DType); err != nil {
		return nil, 0, err
	}
	if conf.Rope.Kind == "llama3" {
		list = append(list, ropeFactors(conf))
	}
	for _, name := range order {
		parts := from[name]
		shape := p.t.where[parts[0]].Shape
		t := gguf.Tensor{Name: name, Type: kind, Shape: shape}
		if strings.Contains(name, "_exps.") {
			t.Shape = append([]int{len(parts)}, shape...)
		}
		cols := shape[len(shape)-1]
		switch {
		case len(shape) == 1 || strings.Contains(name, "ffn_gate_inp"):
			t.Type = gguf.F32
		case !kind.Fits(cols):
			p.note("%s: rows of %d elements have no blocks of %d, so it is F16", name, cols, gguf.Block)
			t.Type = gguf.F16
		}
		head := 0 // of rows to be reordered
		if arch == "llama" && (strings.Contains(name, ".attn_q.") || strings.Contains(name, ".attn_k.")) {
			head = conf.Head
		}
		t.Write = func(w io.Writer) error { return p.t.ggufTensor(w, parts, t.Type, head) }
		list = append(list, t)
	}
	p.out.Tensors, p.out.DType = len(list), DType(strings.ToUpper(as))
	if as == "keep" {
		p.out.DType = p.t.where[embedding].DType
	}
	return list, kind, nil
}

// ggufType returns the type of matrices.
func ggufType(as string, own DType) (gguf.Type, error) {
	if as == "keep" {
		as = strings.ToLower(string(own))
	}
	switch as {
	case "bf16":
		return gguf.BF16, nil
	case "f16":
		return gguf.F16, nil
	case "f32":
		return gguf.F32, nil
	case "q8_0":
		return gguf.Q8, nil
	}
	return 0, fmt.Errorf("matrices are %s: name their type in the file, bf16, f16, f32 or q8_0", as)
}

// ropeFactors are what llama.cpp divides the frequencies of Llama 3's rotary positions by.
func ropeFactors(c model.Config) gguf.Tensor {
	plain, _ := c.Frequencies(c.RopeTheta, model.RopeScaling{}, 1)
	scaled, _ := c.Frequencies(c.RopeTheta, c.Rope, 1)
	by := make([]float32, len(plain))
	for i := range by {
		by[i] = float32(plain[i] / scaled[i])
	}
	return gguf.Tensor{Name: "rope_freqs.weight", Type: gguf.F32, Shape: []int{len(by)},
		Write: func(w io.Writer) error {
			b, _ := gguf.F32.Append(nil, by)
			_, err := w.Write(b)
			return err
		}}
}

// ggufTensor writes tensors one after another as a type. With head, of Llama's queries and keys, it writes channels j
// and j + head/2 of each head next to each other: llama.cpp turns neighbours together.
func (t *Tensors) ggufTensor(to io.Writer, names []string, as gguf.Type, head int) error {
	for _, name := range names {
		shape := t.where[name].Shape
		cols := 1
		if len(shape) == 2 {
			cols = shape[1]
		}
		var turned []float32
		var out []byte
		w := Want{Name: name, As: kernels.F32, Align: max(1, head) * cols}
		err := t.Stream([]Want{w}, func(_ Want, piece kernels.Buffer, _ int) (err error) {
			x := float32sOf(piece)
			if head > 0 {
				turned = slices.Grow(turned[:0], len(x))[:len(x)]
				for at := 0; at < len(x); at += head * cols {
					for i := range head {
						from := i/2 + i%2*(head/2)
						copy(turned[at+i*cols:][:cols], x[at+from*cols:][:cols])
					}
				}
				x = turned
			}
			if out, err = as.Append(out[:0], x); err != nil {
				return &Error{Op: "convert", Path: t.path, Tensor: name, Err: err}
			}
			_, err = to.Write(out)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
