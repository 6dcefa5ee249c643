package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// byteTokens is a tokenizer.json of byte-level BPE with so many tokens, the last one special.
func byteTokens(vocab int, pre string) string {
	words := map[string]int{}
	for i := range vocab - 2 {
		words[fmt.Sprint("w", i)] = i
	}
	b, _ := json.Marshal(words)
	return fmt.Sprintf(`{"model": {"type": "BPE", "vocab": %s, "merges": ["w 0", ["w", "1"]]}, "pre_tokenizer": %s,
		"added_tokens": [{"id": %d, "content": "<call>", "special": false}, {"id": %d, "content": "<end>", "special": true}],
		"post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
			"single": [{"SpecialToken": {"id": "<end>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]}}`, b, pre, vocab-2, vocab-1)
}

const (
	preGPT2  = `{"type": "ByteLevel", "add_prefix_space": false}`
	preQwen2 = `{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}, "behavior": "Isolated", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}`
)

// ggufRead is a file that was read back.
type ggufRead struct {
	fields  map[string]any
	tensors map[string][]float32
	shapes  map[string][]int
	kinds   map[string]uint32
}

// readGGUF reads a file.
func readGGUF(t *testing.T, path string) (g ggufRead) {
	t.Helper()
	raw := readFile(t, path)
	r := bytes.NewReader(raw)
	u32 := func() (x uint32) { _ = binary.Read(r, binary.LittleEndian, &x); return x }
	u64 := func() (x uint64) { _ = binary.Read(r, binary.LittleEndian, &x); return x }
	text := func() string {
		b := make([]byte, u64())
		_, _ = r.Read(b)
		return string(b)
	}
	if magic, version := u32(), u32(); magic != 0x46554747 || version != 3 {
		t.Fatalf("%x, version %d", magic, version)
	}
	tensors, fields := u64(), u64()
	g = ggufRead{map[string]any{}, map[string][]float32{}, map[string][]int{}, map[string]uint32{}}
	for range fields {
		key := text()
		switch kind := u32(); kind {
		case 4, 5:
			g.fields[key] = int(int32(u32()))
		case 6:
			g.fields[key] = math.Float32frombits(u32())
		case 7:
			b, _ := r.ReadByte()
			g.fields[key] = b == 1
		case 8:
			g.fields[key] = text()
		case 9:
			var list []any
			of := u32()
			for range u64() {
				if of == 8 {
					list = append(list, text())
				} else {
					list = append(list, int(int32(u32())))
				}
			}
			g.fields[key] = list
		}
	}
	at := map[string]uint64{}
	var names []string
	for range tensors {
		name := text()
		names = append(names, name)
		for range u32() {
			g.shapes[name] = append(g.shapes[name], int(u64()))
		}
		slices.Reverse(g.shapes[name])
		g.kinds[name] = u32()
		at[name] = u64()
	}
	begin := (len(raw) - r.Len() + 31) / 32 * 32
	for _, name := range names {
		n := 1
		for _, d := range g.shapes[name] {
			n *= d
		}
		b := raw[begin+int(at[name]):]
		for i := range n {
			var x float32
			switch g.kinds[name] {
			case 0:
				x = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			case 1:
				x = extent.Half(binary.LittleEndian.Uint16(b[2*i:]))
			case 8:
				block := b[i/32*34:]
				x = extent.Half(binary.LittleEndian.Uint16(block)) * float32(int8(block[2+i%32]))
			case 30:
				x = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
			}
			g.tensors[name] = append(g.tensors[name], x)
		}
	}
	return g
}

// ggufFolder writes a model with a tokenizer.
func ggufFolder(t *testing.T, c model.Config, pre string, files map[string]string) string {
	t.Helper()
	be := ref.New[float32]()
	m := newModel(t, be, c, model.Heads{LM: true}, false)
	dir := filepath.Join(t.TempDir(), "model")
	if _, err := Merge(be, m, dir, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"tokenizer.json": byteTokens(c.Vocab, pre)}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func toGGUF(t *testing.T, dir, as string) (ggufRead, *Packed, error) {
	t.Helper()
	c, err := FindContainer(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	p, err := WriteGGUF(context.Background(), c, out, GGUFOptions{Type: as})
	if err != nil {
		if _, there := os.Stat(out); there == nil {
			t.Error("a refused conversion left a folder")
		}
		return ggufRead{}, nil, err
	}
	return readGGUF(t, filepath.Join(out, "model.gguf")), p, nil
}

// tensorsOf returns a folder's tensors.
func tensorsOf(t *testing.T, dir string) map[string][]float32 {
	t.Helper()
	x, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	all := map[string][]float32{}
	for _, info := range x.List() {
		var v []float32
		err := x.Stream([]Want{{Name: info.Name, As: kernels.F32}}, func(_ Want, piece kernels.Buffer, _ int) error {
			v = append(v, float32sOf(piece)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		all[info.Name] = v
	}
	return all
}

// Tensors keep their elements under llama.cpp's names. Rows of Llama's queries and keys stand in pairs that turn
// together: channels 0, 2, 1, 3 of a head of 4.
func TestGGUF(t *testing.T) {
	llama := toyLlama
	llama.Rope = model.RopeScaling{Kind: "llama3", Factor: 8, Original: 8, LowFactor: 1, HighFactor: 4}
	for name, c := range map[string]model.Config{"llama": llama, "qwen2": toyQwen2, "qwen3": toyQwen3} {
		dir := ggufFolder(t, c, preGPT2, nil)
		g, p, err := toGGUF(t, dir, "keep")
		if err != nil {
			t.Fatal(err)
		}
		have := tensorsOf(t, dir)
		same := func(to, from string) {
			t.Helper()
			if !slices.Equal(g.tensors[to], have[from]) || len(have[from]) == 0 {
				t.Errorf("%s: %s is not %s", name, to, from)
			}
		}
		same("token_embd.weight", "model.embed_tokens.weight")
		same("output_norm.weight", "model.norm.weight")
		same("blk.0.attn_v.weight", "model.layers.0.self_attn.v_proj.weight")
		same("blk.0.attn_output.weight", "model.layers.0.self_attn.o_proj.weight")
		same("blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight")
		same("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight")
		same("blk.0.ffn_gate.weight", "model.layers.0.mlp.gate_proj.weight")
		same("blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight")
		same("blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight")
		for _, part := range []string{"q", "k"} {
			from, to := have["model.layers.0.self_attn."+part+"_proj.weight"], g.tensors["blk.0.attn_"+part+".weight"]
			for row := range len(from) / c.Width {
				at := row
				if name == "llama" {
					at = row/4*4 + []int{0, 2, 1, 3}[row%4]
				}
				if !slices.Equal(to[row*c.Width:][:c.Width], from[at*c.Width:][:c.Width]) {
					t.Errorf("%s: row %d of %s is not row %d", name, row, part, at)
				}
			}
		}
		switch name {
		case "llama":
			same("output.weight", "lm_head.weight")
			// Of the frequencies 1 and 1/100, the wave of the first, 2π, is between 8/4 and 8/1; the second's is longer.
			smooth := (8/(2*math.Pi) - 1) / 3
			want := []float64{1 / ((1-smooth)/8 + smooth), 8}
			for i, x := range g.tensors["rope_freqs.weight"] {
				if math.Abs(float64(x)-want[i]) > 1e-5 {
					t.Errorf("frequency %d is divided by %v, want %v", i, x, want[i])
				}
			}
		case "qwen2":
			same("blk.1.attn_q.bias", "model.layers.1.self_attn.q_proj.bias")
			if g.tensors["output.weight"] != nil {
				t.Error("a tied output projection was written")
			}
		case "qwen3":
			same("blk.0.attn_q_norm.weight", "model.layers.0.self_attn.q_norm.weight")
		}
		for key, want := range map[string]any{"general.architecture": name, name + ".block_count": c.Layers,
			name + ".attention.head_count_kv": c.KVHeads, name + ".attention.key_length": c.Head, name + ".rope.freq_base": float32(c.RopeTheta),
			name + ".attention.layer_norm_rms_epsilon": float32(c.NormEps), name + ".context_length": c.MaxPositions,
			"general.file_type": 0, "tokenizer.ggml.pre": "gpt-2"} {
			if g.fields[key] != want {
				t.Errorf("%s: %s is %v, want %v", name, key, g.fields[key], want)
			}
		}
		if len(g.tensors) != p.Tensors || p.DType != F32 || p.Files[0].Name != "model.gguf" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Tokens and merges come from tokenizer.json, settings from the other files of the tokenizer.
func TestGGUFTokenizer(t *testing.T) {
	dir := ggufFolder(t, toyQwen2, preQwen2, map[string]string{"tokenizer_config.json": `{"bos_token": {"content": "<end>"}, "pad_token": null,
		"chat_template": "old"}`, "generation_config.json": `{"eos_token_id": [4, 5], "pad_token_id": 10}`, "chat_template.jinja": "new"})
	g, _, err := toGGUF(t, dir, "f16")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.bos_token_id": 10,
		"tokenizer.ggml.eos_token_id": 4, "tokenizer.ggml.padding_token_id": 10, "tokenizer.ggml.add_bos_token": true,
		"tokenizer.chat_template": "new", "general.file_type": 1} {
		if g.fields[key] != want {
			t.Errorf("%s is %v, want %v", key, g.fields[key], want)
		}
	}
	tokens, types := g.fields["tokenizer.ggml.tokens"].([]any), g.fields["tokenizer.ggml.token_type"].([]any)
	if tokens[3] != "w3" || tokens[9] != "<call>" || tokens[10] != "<end>" || types[3] != 1 || types[9] != 4 || types[10] != 3 || len(tokens) != 11 {
		t.Errorf("tokens %v, types %v", tokens, types)
	}
	if merges := g.fields["tokenizer.ggml.merges"].([]any); !slices.Equal(merges, []any{"w 0", "w 1"}) {
		t.Errorf("merges %v", merges)
	}
	if g.kinds["blk.0.attn_norm.weight"] != 0 || g.kinds["blk.0.attn_q.weight"] != 1 {
		t.Errorf("types %v", g.kinds)
	}
	// A model with more rows than tokens, whose texts begin with nothing.
	short := strings.Replace(byteTokens(9, preQwen2), `"TemplateProcessing"`, `"ByteLevel"`, 1)
	dir = ggufFolder(t, toyQwen2, preQwen2, map[string]string{"tokenizer.json": short, "tokenizer_config.json": `{"bos_token": "<end>", "eos_token": "w2"}`,
		"generation_config.json": `{"eos_token_id": 3, "pad_token_id": 4711}`})
	if g, _, err = toGGUF(t, dir, "keep"); err != nil {
		t.Fatal(err)
	}
	tokens, types = g.fields["tokenizer.ggml.tokens"].([]any), g.fields["tokenizer.ggml.token_type"].([]any)
	if tokens[8] != "<end>" || tokens[9] != "[PAD9]" || types[8] != 3 || types[9] != 5 || g.fields["tokenizer.ggml.add_bos_token"] != false ||
		g.fields["tokenizer.ggml.bos_token_id"] != 8 || g.fields["tokenizer.ggml.eos_token_id"] != 2 ||
		g.fields["tokenizer.ggml.padding_token_id"] != nil {
		t.Errorf("tokens %v, types %v, %v", tokens, types, g.fields["tokenizer.ggml.add_bos_token"])
	}
}

// An id beyond the vocabulary names no token.
func TestGGUFOfUnknownIDs(t *testing.T) {
	for _, id := range []string{"11", "-1", "[11]", "1e9"} {
		dir := ggufFolder(t, toyQwen2, preQwen2, map[string]string{"tokenizer_config.json": `{"add_bos_token": true}`,
			"generation_config.json": `{"bos_token_id": ` + id + `}`})
		g, _, err := toGGUF(t, dir, "keep")
		if err != nil || g.fields["tokenizer.ggml.bos_token_id"] != nil || g.fields["tokenizer.ggml.add_bos_token"] != false {
			t.Errorf("%s: %v, %v", id, g.fields["tokenizer.ggml.bos_token_id"], err)
		}
	}
}

// Heads are turned whole, also where a tensor is read in pieces: one of 9.7 MB is.
func TestGGUFOfLargeHeads(t *testing.T) {
	const rows, cols, head = 2016, 1200, 96
	x := make([]byte, 0, 4*rows*cols)
	for i := range rows * cols {
		x = binary.LittleEndian.AppendUint32(x, math.Float32bits(float32(i/cols)))
	}
	path := writeTensors(t, filepath.Join(t.TempDir(), "model.safetensors"), source("q", F32, []int{rows, cols}, string(x)))
	from, err := OpenFolder(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var b bytes.Buffer
	if err := from.ggufTensor(&b, []string{"q"}, 0, head); err != nil {
		t.Fatal(err)
	}
	for row := range rows {
		i := row % head
		want := float32(row - i + i/2 + i%2*(head/2))
		if got := math.Float32frombits(binary.LittleEndian.Uint32(b.Bytes()[4*row*cols:])); got != want {
			t.Fatalf("row %d is row %v, want %v", row, got, want)
		}
	}
}

// Matrices in 8 bits are near their values; rows without whole blocks have F16, and a note says so.
func TestGGUFTypes(t *testing.T) {
	c := toyQwen2
	c.Width, c.Head, c.FFN = 64, 32, 48
	dir := ggufFolder(t, c, preQwen2, nil)
	have := tensorsOf(t, dir)
	for as, most := range map[string]float64{"f32": 0, "bf16": 1. / 256, "f16": 1. / 2048, "q8_0": 1. / 100} {
		g, p, err := toGGUF(t, dir, as)
		if err != nil {
			t.Fatal(err)
		}
		for to, from := range map[string]string{"token_embd.weight": "model.embed_tokens.weight", "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight"} {
			var off, size float64
			for i, x := range g.tensors[to] {
				off = max(off, math.Abs(float64(x-have[from][i])))
				size = max(size, math.Abs(float64(have[from][i])))
			}
			if off > most*size || (off == 0) != (as == "f32") {
				t.Errorf("%s: %s is off by %g of %g", as, to, off, size)
			}
		}
		if down := g.kinds["blk.1.ffn_down.weight"]; as == "q8_0" && (down != 1 || g.kinds["blk.1.ffn_up.weight"] != 8 || len(p.Notes) != c.Layers ||
			!strings.Contains(p.Notes[0], "rows of 48 elements have no blocks of 32, so it is F16")) {
			t.Errorf("type %d, notes %q", down, p.Notes)
		}
	}
}

func TestGGUFRefuses(t *testing.T) {
	yarn := toyQwen2
	yarn.Rope = model.RopeScaling{Kind: "yarn", Factor: 4, Original: 8, BetaFast: 32, BetaSlow: 1, Attention: 1, Exact: true}
	slow, loud := yarn, yarn
	slow.Rope = model.RopeScaling{Kind: "yarn", Factor: 4, Original: 8, BetaFast: 32, BetaSlow: 2, Attention: 0.1*math.Log(4) + 1}
	loud.Rope = model.RopeScaling{Kind: "yarn", Factor: 4, Original: 8, BetaFast: 32, BetaSlow: 1, Attention: 1.3}
	for want, tt := range map[string]struct {
		c   model.Config
		pre string
		as  string
		all map[string]string
	}{
		"llama.cpp has no yarn with truncate: false":           {yarn, preQwen2, "keep", nil},
		"only byte-level BPE without a space before texts":     {toyQwen2, `{"type": "Metaspace"}`, "keep", nil},
		"is not known to cut texts as this one does (Digits, ": {toyQwen2, strings.Replace(preQwen2, `{"type": "Split"`, `{"type": "Digits"`, 1), "keep", nil},
		"llama.cpp has no normalizer Lowercase":                {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": strings.Replace(byteTokens(11, preQwen2), `{"model"`, `{"normalizer": {"type": "Lowercase"}, "model"`, 1)}},
		"no continuing_subword_prefix and":                     {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": strings.Replace(byteTokens(11, preQwen2), `"merges"`, `"end_of_word_suffix": "</w>", "merges"`, 1)}},
		"ignore_merges only with Llama 3's pattern":            {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": strings.Replace(byteTokens(11, preQwen2), `"merges"`, `"ignore_merges": true, "merges"`, 1)}},
		"only with the usual beta_fast 32, beta_slow 1":        {slow, preQwen2, "keep", nil},
		"1 and attention_factor 0.1·ln(factor) + 1":            {loud, preQwen2, "keep", nil},
		"BPE without a space before texts is":                  {toyQwen2, `{"type": "ByteLevel", "add_prefix_space": true}`, "keep", nil},
		"one does (Digits, ByteLevel)":                         {toyQwen2, `{"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false}, {"type": "ByteLevel", "add_prefix_space": false}]}`, "keep", nil},
		"one does (Split, ByteLevel)":                          {toyQwen2, strings.Replace(preQwen2, `\\p{N}|`, `\\p{N}{1,2}|`, 1), "keep", nil},
		"only byte-level BPE is written as GGUF":               {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": `{"model": {"type": "Unigram"}}`}},
		"has id 11, and the model 11 tokens":                   {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": byteTokens(12, preQwen2)}},
		"merge 1 is neither a text nor two":                    {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": strings.Replace(byteTokens(11, preQwen2), `["w", "1"]`, `["w"]`, 1)}},
		"tokenizer_config.json: ":                              {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer_config.json": "{"}},
		"tokenizer.json: ":                                     {toyQwen2, preQwen2, "keep", map[string]string{"tokenizer.json": "{"}},
		"name their type in the file":                          {toyQwen2, preQwen2, "q4", nil},
	} {
		_, _, err := toGGUF(t, ggufFolder(t, tt.c, tt.pre, tt.all), tt.as)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	gemma := toyQwen3
	gemma.UnitOffset, gemma.PostNorms = true, true
	for class, c := range map[string]model.Config{"Qwen2ForCausalLM": {Rope: model.RopeScaling{Kind: "llama3"}}, "Gemma3ForCausalLM": gemma, "Qwen3MoeForCausalLM": {Experts: model.Experts{Count: 2}, Sparse: []bool{true}}} {
		if _, err := ggufArchitecture(class, c); err == nil {
			t.Errorf("%s is not refused", class)
		}
	}
	dir := ggufFolder(t, toyQwen2, preQwen2, nil)
	c, _ := FindContainer(dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "out")
	if _, err := WriteGGUF(ctx, c, out, GGUFOptions{Type: "keep"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a cancelled conversion left a folder")
	}
	if _, err := WriteGGUF(context.Background(), c, dir, GGUFOptions{Type: "keep"}); !errors.Is(err, ErrExists) {
		t.Errorf("over a folder: %v", err)
	}
}

// Every supported class of the tiny models is written whole: its experts, too, one after another.
func TestGGUFOfModels(t *testing.T) {
	for _, name := range []string{"llama2", "llama3.1-rope", "llama-bias", "llama-linear-rope", "qwen2.5", "qwen2.5-yarn", "qwen3", "qwen3-moe", "mistral-window"} {
		from := filepath.Join(goldenDir, name)
		if _, err := os.Stat(from); err != nil {
			t.Skip("no models: " + err.Error())
		}
		dir := filepath.Join(t.TempDir(), "model")
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "expected.safetensors"))
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(byteTokens(509, preQwen2)), 0o666); err != nil {
			t.Fatal(err)
		}
		g, p, err := toGGUF(t, dir, "f32")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		have := tensorsOf(t, dir)
		elements := 0
		for _, x := range have {
			elements += len(x)
		}
		for key, x := range g.tensors {
			if key != "rope_freqs.weight" {
				elements -= len(x)
			}
		}
		if elements != 0 {
			t.Errorf("%s: %d elements are missing", name, elements)
		}
		if name == "qwen2.5-yarn" && (g.fields["qwen2.rope.scaling.type"] != "yarn" || g.fields["qwen2.rope.scaling.factor"] != float32(4) ||
			g.fields["qwen2.rope.scaling.original_context_length"] != 32) {
			t.Errorf("%s: settings %v", name, g.fields)
		}
		if name == "qwen3-moe" {
			if g, _, err := toGGUF(t, dir, "keep"); err != nil || g.kinds["blk.0.ffn_gate_inp.weight"] != 0 || g.kinds["blk.0.ffn_up_exps.weight"] != 30 {
				t.Errorf("experts in bf16: %v, %v", g.kinds, err)
			}
			third := have["model.layers.0.mlp.experts.2.up_proj.weight"]
			if up := g.tensors["blk.0.ffn_up_exps.weight"]; !slices.Equal(up[2*len(third):][:len(third)], third) || g.shapes["blk.0.ffn_up_exps.weight"][0] != 4 ||
				g.fields["qwen3moe.expert_used_count"] != 2 {
				t.Errorf("experts have shape %v", g.shapes["blk.0.ffn_up_exps.weight"])
			}
		}
		if noted := strings.Contains(strings.Join(p.Notes, ""), "has no windows"); noted != (name == "mistral-window") {
			t.Errorf("%s: notes %q", name, p.Notes)
		}
	}
}
