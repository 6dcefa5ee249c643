package checkpoint

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
	"exp/train/model"
)

// quantSide is the width of the square query maps in quantFolder.
const quantSide = 32

const queryLayer = "model.layers.0.self_attn.q_proj"

// quantFolder is a llama of width quantSide in a type, whose query maps are other tensors.
func quantFolder(t *testing.T, dtype DType, quantized any, query ...Source) (dir string, c model.Config) {
	t.Helper()
	dir = t.TempDir()
	config := jsonObject{"architectures": []string{"LlamaForCausalLM"}, "vocab_size": 5, "hidden_size": quantSide,
		"intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "torch_dtype": torchName(dtype),
		"quantization_config": quantized}
	if quantized == nil {
		delete(config, "quantization_config")
	}
	writeFile(t, filepath.Join(dir, configFile), compact(config))
	delete(config, "quantization_config")
	c, err := ParseConfig(configFile, compact(config))
	if err != nil {
		t.Fatal(err)
	}
	list := query
	for _, x := range waves(c) {
		if x.Name != queryLayer+".weight" {
			list = append(list, inType(t, x, dtype))
		}
	}
	writeTensors(t, filepath.Join(dir, "model.safetensors"), list...)
	return dir, c
}

// inType is a tensor of F32 in another type.
func inType(t *testing.T, x Source, dtype DType) Source {
	t.Helper()
	var b sliceWriter
	if err := x.Raw(&b); err != nil {
		t.Fatal(err)
	}
	floats := make([]float32, x.Len())
	F32.float32s(floats, b.bytes)
	return source(x.Name, dtype, x.Shape, typed(dtype, floats...))
}

// typed are numbers in a file.
func typed(dtype DType, list ...float32) string {
	raw := make([]byte, len(list)*dtype.bits()/8)
	if err := dtype.encodeFloats(raw, list); err != nil {
		panic(err)
	}
	return string(raw)
}

// rounding returns a number as a type has it.
func rounding(dtype DType, v float32) float32 {
	raw := make([]byte, dtype.bits()/8)
	if dtype.encodeFloats(raw, []float32{v}) != nil {
		return float32(math.Inf(1))
	}
	var list [1]float32
	dtype.float32s(list[:], raw)
	return list[0]
}

// setBits sets n bits of b from a bit on.
func setBits(b []byte, at, n, v int) {
	for i := range n {
		b[(at+i)/8] |= byte(v>>i&1) << ((at + i) % 8)
	}
}

// quantCase is a folder with quantized query maps and the weight that they mean.
type quantCase struct {
	dtype     DType // the model's
	quantized jsonObject
	query     []Source
	want      []float32
}

// queryWeight reads the query maps of a folder.
func queryWeight(dir string, c model.Config) (got []float32, dtype DType, err error) {
	weights, err := OpenFolder(dir)
	if err != nil {
		return nil, "", err
	}
	defer weights.Close()
	if err := weights.Fits(c); err != nil {
		return nil, "", err
	}
	got = make([]float32, quantSide*quantSide)
	err = weights.Read(ref.New[float32](), queryLayer+".weight", kernels.Host(got))
	return got, weights.where[queryLayer+".weight"].DType, err
}

// check checks that everybody reads the weight, and that a merged folder has it and says no more of quantization.
func (x quantCase) check(t *testing.T) {
	t.Helper()
	dir, c := quantFolder(t, x.dtype, x.quantized, x.query...)
	if got, err := ReadConfig(dir); err != nil || got.Width != quantSide {
		t.Fatal(got, err)
	}
	merged, _ := packed(t, dir, PackOptions{})
	for _, dir := range []string{dir, merged} {
		got, dtype, err := queryWeight(dir, c)
		if err != nil || dtype != x.dtype {
			t.Fatalf("%s: type %s, %v", dir, dtype, err)
		}
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(x.want[i]) {
				t.Fatalf("%s: row %d, column %d is %v, want %v", dir, i/quantSide, i%quantSide, v, x.want[i])
			}
		}
	}
	if a, b := digestsIn(t, dir), digestsIn(t, merged); !reflect.DeepEqual(a, b) {
		t.Errorf("digests are %v, and %v when multiplied out", a, b)
	}
	if text := string(readFile(t, filepath.Join(merged, configFile))); strings.Contains(text, "quantization") {
		t.Errorf("the merged config.json is %s", text)
	}
	d, err := Describe(dir)
	if err != nil || !d.Known || !strings.Contains(strings.Join(d.Notes, "\n"), "weights are quantized by "+
		x.quantized["quant_method"].(string)) {
		t.Errorf("described as %+v, %v", d, err)
	}
	weights, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	if held := weights.Frozen(); (held == kernels.BF16) != (x.dtype == BF16) {
		t.Errorf("weights in %s are held as %s", x.dtype, held)
	}
}

// scaled is (q - zero) · scale, rounded to the type of the scales, then to the model's.
func scaledBy(q, zero int, scale float32, scales, dtype DType) float32 {
	return rounding(dtype, rounding(scales, float32(q-zero)*scale))
}

// randomScales are numbers in a type.
func randomScales(r *rand.Rand, dtype DType, n int) []float32 {
	list := make([]float32, n)
	for i := range list {
		list[i] = rounding(dtype, 0.02+0.03*r.Float32())
	}
	return list
}

// refusal is a folder that is not read.
type refusal struct {
	change map[string]any    // of the settings
	query  func(q *[]Source) // of the tensors
	want   string            // in the error
}

// without drops a tensor.
func without(end string) func(q *[]Source) {
	return func(q *[]Source) {
		*q = slices.DeleteFunc(slices.Clone(*q), func(s Source) bool { return s.Name == queryLayer+end })
	}
}

// instead replaces a tensor.
func instead(end string, dtype DType, shape []int, raw string) func(q *[]Source) {
	return func(q *[]Source) {
		without(end)(q)
		*q = append(*q, source(queryLayer+end, dtype, shape, raw))
	}
}

// refuses checks that changes to the case are refused, with the tensor's and the file's name where tensors changed.
func (x quantCase) refuses(t *testing.T, list map[string]refusal) {
	t.Helper()
	for name, bad := range list {
		quantized, query := maps.Clone(x.quantized), slices.Clone(x.query)
		for key, v := range bad.change {
			if quantized[key] = v; v == nil {
				delete(quantized, key)
			}
		}
		if bad.query != nil {
			bad.query(&query)
		}
		dir, c := quantFolder(t, x.dtype, quantized, query...)
		_, err := ReadConfig(dir)
		if bad.query != nil {
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = queryWeight(dir, c)
			if e := (*Error)(nil); !errors.As(err, &e) || !strings.HasSuffix(e.Path, "model.safetensors") || !strings.HasPrefix(e.Tensor, queryLayer) {
				t.Errorf("%s: %v names no tensor and file", name, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: got %v, want %q", name, err, bad.want)
		}
	}
}

// Types that a file gives a model, wherever it says them.
func TestOwnType(t *testing.T) {
	for text, want := range map[string]DType{`{"dtype": "bfloat16"}`: BF16, `{"torch_dtype": "float16"}`: F16,
		`{"torch_dtype": "torch.float32"}`: F32, `{"text_config": {"dtype": "bfloat16"}}`: BF16, `{}`: "",
		`{"dtype": "float8", "text_config": {"dtype": "bfloat16"}}`: "", `{"dtype": null}`: ""} {
		r := settings{}
		if err := json.Unmarshal([]byte(text), &r.values); err != nil {
			t.Fatal(err)
		}
		if got := r.ownType(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Methods that are not read are named.
func TestOtherMethods(t *testing.T) {
	for _, method := range []string{"hqq", "aqlm", "eetq", "quark", "gguf", "modelopt", "torchao", "auto-round"} {
		dir, _ := quantFolder(t, BF16, jsonObject{"quant_method": method})
		_, err := ReadConfig(dir)
		if err == nil || !strings.Contains(err.Error(), `quant_method is "`+method+`"; of quantized weights only`) ||
			!strings.Contains(err.Error(), "use the unquantized model") {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// packedCase is a module of testdata/quantized.json, which the format's own library packed and read back.
type packedCase struct {
	Name    string
	Config  json.RawMessage
	Tensors []struct {
		Name  string
		DType DType
		Shape []int
		Data  []byte
	}
	Shape  []int
	DType  DType
	SHA256 string
}

// packedCases are all of them.
func packedCases(t testing.TB) []packedCase {
	t.Helper()
	var all struct{ Cases []packedCase }
	if err := json.Unmarshal(readFile(t, filepath.Join("testdata", "quantized.json")), &all); err != nil {
		t.Fatal(err)
	}
	return all.Cases
}

// folder writes the case.
func (x packedCase) folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var list []Source
	for _, p := range x.Tensors {
		list = append(list, source(p.Name, p.DType, p.Shape, string(p.Data)))
	}
	writeTensors(t, filepath.Join(dir, weightsFile), list...)
	writeFile(t, filepath.Join(dir, configFile), x.Config)
	return dir
}

// Every element has the bits that GPTQModel, AutoAWQ, compressed-tensors and bitsandbytes give it.
func TestQuantizedAsTheirLibraries(t *testing.T) {
	cases := packedCases(t)
	if len(cases) != 10 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, x := range cases {
		weights, err := OpenFolder(x.folder(t))
		if err != nil {
			t.Errorf("%s: %v", x.Name, err)
			continue
		}
		list, err := weights.Digests(nil)
		want := Tensor{Name: "m.weight", DType: x.DType, Shape: x.Shape}
		if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Tensor, want) || list[0].Hex() != x.SHA256 {
			t.Errorf("%s: %v, %v; want %v with digest %s", x.Name, list, err, want, x.SHA256)
		}
		if err := weights.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Modules whose tensors have other shapes, types or bytes, or miss some, are read or refused, and nothing panics.
func FuzzQuantized(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	cases := packedCases(f)
	types := []DType{F16, BF16, F32, I32, "I64", "I8", "U8", e4m3, "BOOL", "F64"}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		x := cases[r.IntN(len(cases))]
		x.Tensors = slices.Clone(x.Tensors)
		for range 1 + r.IntN(3) {
			p := &x.Tensors[r.IntN(len(x.Tensors))]
			p.Shape, p.Data = slices.Clone(p.Shape), slices.Clone(p.Data)
			switch r.IntN(5) {
			case 0:
				p.Name += "x" // so one is missing
			case 1:
				p.DType = types[r.IntN(len(types))]
			case 2:
				p.Shape = append(p.Shape, r.IntN(3))
			case 3:
				if len(p.Shape) > 0 {
					p.Shape[r.IntN(len(p.Shape))] = r.IntN(70)
				}
			case 4:
				if len(p.Data) > 0 {
					p.Data[r.IntN(len(p.Data))] = byte(r.Uint32())
				}
			}
			n := int(Tensor{DType: p.DType, Shape: p.Shape}.Bytes())
			for len(p.Data) < n {
				p.Data = append(p.Data, byte(len(p.Data)))
			}
			p.Data = p.Data[:n]
		}
		names := map[string]bool{}
		for _, p := range x.Tensors {
			if names[p.Name] {
				return
			}
			names[p.Name] = true
		}
		weights, err := OpenFolder(x.folder(t))
		if err == nil {
			_, err = weights.Digests(nil)
			weights.Close()
		}
		if e := (*Error)(nil); err != nil && (!errors.As(err, &e) || e.Path == "" || e.Tensor == "") {
			t.Errorf("%s: %v names no file and tensor", x.Name, err)
		}
	})
}
