package fsdp

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/train/checkpoint/fault"
)

// saved is a tensor of BF16 elements as one rank stores it.
type saved struct {
	name  string
	local []int  // the shape of its part
	raw   []byte // the elements of its part
	// global is the shape of the whole of a distributed tensor; nil for a plain one.
	global     []int
	mesh       []int
	meshShape  []int
	placements []string // "0", "1", …: the axis of a Shard; "r": Replicate
	// layout says how the mesh is stored: 0 as a tensor; as torch 2.10 and newer do, 1 with
	// sizes and strides, 2 with axes that have them, none for a size of 1; 3 the same with
	// axes of several sizes.
	layout int
}

// write writes the file of a rank as torch.save does.
func write(t testing.TB, path string, list []saved) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name string, content []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "m/" + name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pickle := "\x80\x02" + "ccollections\nOrderedDict\n)R("
	for i, x := range list {
		key := fmt.Sprint(2 * i)
		add("data/"+key, x.raw)
		value := view("BFloat16Storage", key, x.local)
		if x.global != nil {
			var ranks []byte
			for _, r := range x.mesh {
				ranks = binary.LittleEndian.AppendUint64(ranks, uint64(r))
			}
			add("data/"+fmt.Sprint(2*i+1), ranks)
			key, mesh := fmt.Sprint(2*i+1), ""
			if x.layout == 0 {
				mesh = text("mesh") + view("LongStorage", key, x.meshShape)
			} else {
				mesh = text("_layout") + layout(x.meshShape, x.layout) + text("_rank_map") +
					view("LongStorage", key, []int{len(x.mesh)})
			}
			value = x.distributed(value, mesh)
		}
		pickle += text(x.name) + value
	}
	add("data.pkl", []byte(pickle+text("step")+integer(3)+"u."))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// distributed pickles a DTensor around its local tensor.
func (x saved) distributed(local, mesh string) string {
	placements := "("
	for _, p := range x.placements {
		if p == "r" {
			placements += "ctorch.distributed.tensor.placement_types\nReplicate\n)\x81"
		} else {
			placements += "ctorch.distributed.tensor.placement_types\nShard\n)\x81}" + text("dim") + "K" +
				string(p[0]-'0') + "sb"
		}
	}
	spec := "cspec\nDTensorSpec\n)\x81}(" + text("mesh") + "cmesh\nDeviceMesh\n)\x81}(" + mesh + "ub" +
		text("placements") + placements + "tub"
	return "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_wrapper_subclass\n" +
		"ctorch.distributed.tensor\nDTensor\n(N" + "ctorch\nbfloat16\n" + ints(x.global) + ints(x.global) + "tN}(" +
		text("_local_tensor") + local + text("_spec") + spec + "u\x86tR"
}

// layout pickles a mesh without its ranks.
func layout(shape []int, how int) string {
	sizes, strides := "(", "("
	list := "("
	for k, n := range shape {
		step := 1
		for _, m := range shape[k+1:] {
			step *= m
		}
		sizes, strides = sizes+integer(n), strides+integer(step)
		size, stride := []int{n}, []int{step}
		switch {
		case n == 1:
			size, stride = nil, nil
		case how == 3 && n%2 == 0:
			size, stride = []int{n / 2, 2}, []int{2 * step, step}
		}
		list += "claid\nFlat\n)\x81}(" + text("shape") + ints(size) + text("stride") + ints(stride) + "ub"
	}
	if how >= 2 {
		return "claid\nOut\n)\x81}" + text("axes") + list + "tsb"
	}
	if len(shape) == 1 { // without tuples
		return "claid\nOut\n)\x81}(" + text("shape") + sizes[1:] + text("stride") + strides[1:] + "ub"
	}
	return "claid\nOut\n)\x81}(" + text("shape") + sizes + "t" + text("stride") + strides + "tub"
}

func view(class, key string, shape []int) string {
	n, strides := 1, make([]int, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		strides[k] = n
		n *= shape[k]
	}
	return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + class + "\n" + text(key) + text("cpu") +
		integer(n) + "tQK\x00" + ints(shape) + ints(strides) + "\x89NtR"
}

func text(s string) string {
	return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
}

func integer(n int) string {
	return "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(n)))
}

func ints(list []int) string {
	s := "("
	for _, n := range list {
		s += integer(n)
	}
	return s + "t"
}

// chunk returns the rows of a rank as torch.chunk gives them.
func chunk(rows, ranks, rank int) (from, to int) {
	c := (rows + ranks - 1) / ranks
	return min(rank*c, rows), min((rank+1)*c, rows)
}

// cut returns the part of a row-major array of 2-byte elements along an axis.
func cut(raw []byte, shape []int, axis, from, to int) ([]int, []byte) {
	before, after := 1, 2
	for _, n := range shape[:axis] {
		before *= n
	}
	for _, n := range shape[axis+1:] {
		after *= n
	}
	var out []byte
	for i := range before {
		block := raw[i*shape[axis]*after:]
		out = append(out, block[from*after:to*after]...)
	}
	part := slices.Clone(shape)
	part[axis] = to - from
	return part, out
}

func random(r *rand.Rand, shape []int) []byte {
	n := 2
	for _, d := range shape {
		n *= d
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Tensors of many shapes on many ranks, with and without copies, along any axis.
func TestOpenGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, tt := range []struct{ copies, ranks int }{{1, 1}, {1, 2}, {1, 3}, {1, 7}, {1, 16}, {2, 2}, {3, 2}, {2, 5},
		{3, 1}, {4, 2}} {
		t.Run(fmt.Sprintf("%d x %d", tt.copies, tt.ranks), func(t *testing.T) {
			dir := t.TempDir()
			want := map[string][]byte{}
			files := make([][]saved, tt.copies*tt.ranks)
			order := r.Perm(len(files)) // of the ranks on the mesh
			for k := range 40 {
				shape := []int{}
				for range 1 + r.IntN(3) {
					shape = append(shape, 1+r.IntN(20))
				}
				axis := 0
				if k%5 == 0 {
					axis = r.IntN(len(shape))
				}
				name := fmt.Sprintf("t%d", k)
				raw := random(r, shape)
				want[name] = raw
				for i, rank := range order {
					part := i % tt.ranks
					if k%2 == 1 { // the mesh's first axis cuts, the second copies
						part = i / tt.copies
					}
					from, to := chunk(shape[axis], tt.ranks, part)
					x := saved{name: name, global: shape, mesh: order, meshShape: []int{len(files)},
						placements: []string{fmt.Sprint(axis)}, layout: k % 4}
					if tt.copies > 1 {
						x.meshShape, x.placements = []int{tt.copies, tt.ranks}, []string{"r", fmt.Sprint(axis)}
						if k%2 == 1 {
							slices.Reverse(x.meshShape)
							slices.Reverse(x.placements)
						}
					}
					if x.local, x.raw = cut(raw, shape, axis, from, to); from == to {
						x.local = []int{0} // as torch stores it
					}
					files[rank] = append(files[rank], x)
				}
			}
			for rank, list := range files {
				write(t, filepath.Join(dir, fmt.Sprintf("model_world_size_%d_rank_%d.pt", len(files), rank)), list)
			}
			holds(t, dir, nil, want)
		})
	}
}

// holds checks the elements of all tensors of a folder.
func holds(t *testing.T, dir string, wanted map[string][]int, want map[string][]byte) {
	t.Helper()
	files, list, err := Open(dir, shapes(wanted))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(want) {
		t.Errorf("%d tensors, want %d", len(list), len(want))
	}
	for _, x := range list {
		for _, e := range append(x.Replicas, x.Data) {
			got, err := io.ReadAll(io.NewSectionReader(e, 0, e.Size()))
			if err != nil || !bytes.Equal(got, want[x.Name]) || x.DType != "BF16" {
				t.Errorf("%s %v: %v\n got %x\nwant %x", x.Name, x.Shape, err, got, want[x.Name])
			}
		}
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func shapes(m map[string][]int) Wanted {
	return func(name string) ([]int, bool) { s, ok := m[name]; return s, ok }
}

// Plain tensors are copies, unless the configuration says that they are pieces.
func TestPlain(t *testing.T) {
	two := []saved{{name: "w", local: []int{2}, raw: []byte{1, 2, 3, 4}}, {name: "w", local: []int{2}, raw: []byte{5, 6, 7, 8}}}
	same := []saved{two[0], two[0]}
	uneven := []saved{two[0], {name: "w", local: []int{1}, raw: []byte{9, 9}}}
	folder := func(t *testing.T, list []saved) string {
		dir := t.TempDir()
		for i, x := range list {
			write(t, filepath.Join(dir, fmt.Sprintf("model_world_size_%d_rank_%d.pt", len(list), i)), []saved{x})
		}
		return dir
	}
	holds(t, folder(t, same), nil, map[string][]byte{"w": {1, 2, 3, 4}})
	holds(t, folder(t, same), map[string][]int{"w": {2}}, map[string][]byte{"w": {1, 2, 3, 4}})
	holds(t, folder(t, two), map[string][]int{"w": {4}}, map[string][]byte{"w": {1, 2, 3, 4, 5, 6, 7, 8}})
	holds(t, folder(t, uneven), map[string][]int{"w": {3}}, map[string][]byte{"w": {1, 2, 3, 4, 9, 9}})
	holds(t, folder(t, two[:1]), map[string][]int{"w": {9}}, map[string][]byte{"w": {1, 2, 3, 4}})
	for _, tt := range []struct {
		list   []saved
		wanted map[string][]int
		want   string
	}{
		{two, map[string][]int{"w": {5}}, "the configuration wants [5]"},
		{uneven, nil, "it is not known whether they are pieces"},
	} {
		_, _, err := Open(folder(t, tt.list), shapes(tt.wanted))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"w"`) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
	files, list, err := Open(folder(t, two), shapes(nil))
	if err != nil || len(list[0].Replicas) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, f := range files {
		f.Close()
	}
}

func TestOpenErrors(t *testing.T) {
	good := func(rank int) saved {
		return saved{name: "w", local: []int{2, 1}, raw: []byte{1, 2, 3, 4}, global: []int{4, 1}, mesh: []int{0, 1},
			meshShape: []int{2}, placements: []string{"0"}}
	}
	for _, tt := range []struct {
		name   string
		change func(x *saved)
		want   string
	}{
		{"other shape", func(x *saved) { x.global = []int{5, 1} }, "is another tensor than on rank 0"},
		{"other cut", func(x *saved) { x.placements = []string{"1"} }, "is another tensor than on rank 0"},
		{"other name", func(x *saved) { x.name = "v" }, "is missing, but rank 0 has it"},
		{"plain", func(x *saved) { x.global = nil }, "distributed tensor on some ranks"},
		{"too few rows", func(x *saved) { x.local, x.raw = []int{1, 1}, x.raw[:2] }, "have 3 rows along axis 0"},
		{"other columns", func(x *saved) { x.local = []int{1, 2} }, "does not fit into [4 1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			x := good(1)
			tt.change(&x)
			write(t, filepath.Join(dir, "model_world_size_2_rank_0.pt"), []saved{good(0)})
			write(t, filepath.Join(dir, "model_world_size_2_rank_1.pt"), []saved{x})
			_, _, err := Open(dir, shapes(nil))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	both := func(change func(x *saved)) string {
		dir := t.TempDir()
		for i := range 2 {
			x := good(i)
			change(&x)
			write(t, filepath.Join(dir, fmt.Sprintf("model_world_size_2_rank_%d.pt", i)), []saved{x})
		}
		return dir
	}
	for name, tt := range map[string]struct{ dir, want string }{
		"two cuts": {both(func(x *saved) {
			x.mesh, x.meshShape, x.placements = []int{0, 1, 2, 3}, []int{2, 2}, []string{"0", "0"}
		}), "cut along two axes of the mesh"},
		"unknown ranks":  {both(func(x *saved) { x.mesh = []int{0, 2} }), "on a mesh of the ranks [0 2]"},
		"repeated ranks": {both(func(x *saved) { x.mesh = []int{0, 0} }), "on a mesh of the ranks [0 0]"},
		"no such axis":   {both(func(x *saved) { x.placements = []string{"2"} }), "cut along axis 2"},
		"scalar":         {both(func(x *saved) { x.global = []int{} }), "is a scalar, but cut"},
		"a larger mesh": {both(func(x *saved) { x.mesh, x.meshShape = []int{0, 1, 2}, []int{3} }),
			"on a mesh of 3 ranks, but there are 2"},
		"a part of a mesh": {both(func(x *saved) { x.mesh, x.meshShape, x.layout = []int{0, 1, 2, 3}, []int{2}, 2 }),
			"on a part of the mesh of all 4 ranks"},
		"mesh of two axes": {both(func(x *saved) { x.meshShape = []int{2, 1} }),
			"1 placements on a mesh of 2 axes"},
	} {
		if _, _, err := Open(tt.dir, shapes(nil)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	// An axis of one rank cuts nothing.
	holds(t, both(func(x *saved) { x.meshShape, x.placements = []int{1, 2}, []string{"0", "0"} }), nil,
		map[string][]byte{"w": {1, 2, 3, 4, 1, 2, 3, 4}})
}

func TestMissingRank(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "model_world_size_3_rank_0.pt"), []saved{{name: "w", local: []int{1}, raw: []byte{1, 2}}})
	write(t, filepath.Join(dir, "model_world_size_3_rank_2.pt"), []saved{{name: "w", local: []int{1}, raw: []byte{1, 2}}})
	_, _, err := Open(dir, shapes(nil))
	var e *fault.Error
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "rank 1 of 3") || !errors.As(err, &e) ||
		!strings.Contains(e.Hint, "every rank") {
		t.Errorf("got %v", err)
	}
	if !Has(dir) || Ranks(dir) != 3 || Has(t.TempDir()) {
		t.Error("the checkpoint is not recognized")
	}
}

// A folder with checkpoints of other numbers of ranks needs fsdp_config.json.
func TestTwoWorldSizes(t *testing.T) {
	dir := t.TempDir()
	x := saved{name: "w", local: []int{1}, raw: []byte{1, 2}}
	write(t, filepath.Join(dir, "model_world_size_1_rank_0.pt"), []saved{x})
	write(t, filepath.Join(dir, "model_world_size_2_rank_0.pt"), []saved{x})
	if _, _, err := Open(dir, shapes(nil)); err == nil || !strings.Contains(err.Error(), "[1 2] ranks") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fsdp_config.json"), []byte(`{"world_size": 1}`), 0o666); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, nil, map[string][]byte{"w": {1, 2}})
}

// FuzzOpen changes the file of both ranks: tensors that are put together can be read.
func FuzzOpen(f *testing.F) {
	for i := range 3 {
		path := filepath.Join(f.TempDir(), "x.pt")
		write(f, path, []saved{{name: "w", local: []int{2, 1}, raw: []byte{1, 2, 3, 4}, global: []int{4, 1},
			mesh: []int{0, 1}, meshShape: []int{2}, placements: []string{fmt.Sprint(i / 2)}, layout: i}})
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	golden, _ := filepath.Glob("../../../../shared/data/models/verl/*2/*rank_1.pt")
	for _, path := range golden {
		if b, err := os.ReadFile(path); err == nil {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		for i := range 2 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("model_world_size_2_rank_%d.pt", i)), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		files, list, err := Open(dir, shapes(nil))
		if err != nil {
			return
		}
		for _, x := range list {
			part := make([]byte, min(x.Data.Size(), 1000))
			if _, err := x.Data.ReadAt(part, 0); err != nil && len(part) > 0 {
				t.Errorf("%s: %v", x.Name, err)
			}
		}
		for _, f := range files {
			f.Close()
		}
	})
}
