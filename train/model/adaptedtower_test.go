package model

import (
	"math"
	"strings"
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// toyAdapted makes features of adapters of rank 1 on a tower's map: feature c of row r of kind k is (1+r)·B[k]·A[c].
type toyAdapted struct {
	*gallery
	m  *Model
	be kernels.Backend
}

// adaptedHeads returns heads with adapters on the language model and on the map of a toyAdapted.
func adaptedHeads(c Config) Heads {
	return Heads{LM: true, Adapters: &Adapters{Rank: 1, Alpha: 2, Targets: []string{"q_proj", "down_proj"},
		Tower: []TowerMap{{Name: "visual.map", Out: 1 + c.Images.Deep, In: c.Width}}}}
}

// parts returns A and B of the tower's adapter in an arena.
func (x *toyAdapted) parts(view func(name string) kernels.Buffer) (a, b kernels.Buffer) {
	t := x.m.Heads.Adapters.Tower[0].Adapted()
	return view(t.A), view(t.B)
}

func (x *toyAdapted) Refresh() {}

func (x *toyAdapted) Features(_ kernels.Backend, im Image) []float32 {
	at, bt := x.parts(x.m.View)
	A, B, C := hostOf(x.be, at), hostOf(x.be, bt), x.m.Config.Width
	f := make([]float32, len(B)*im.Tokens()*C)
	for i := range f {
		f[i] = float32(float64(1+i/C%im.Tokens()) * B[i/C/im.Tokens()] * A[i%C])
	}
	return f
}

func (x *toyAdapted) Backward(_ kernels.Backend, im Image, d []float32) {
	at, bt := x.parts(x.m.View)
	da, db := x.parts(x.m.Grad)
	A, B, C := hostOf(x.be, at), hostOf(x.be, bt), x.m.Config.Width
	dA, dB := hostOf(x.be, da), hostOf(x.be, db)
	for i, v := range d {
		k, r, c := i/C/im.Tokens(), float64(1+i/C%im.Tokens()), i%C
		dA[c] += r * B[k] * float64(v)
		dB[k] += r * A[c] * float64(v)
	}
	x.be.Copy(da, kernels.Host(dA))
	x.be.Copy(db, kernels.Host(dB))
	x.be.Sync()
}

// adaptedBatch is imageBatch of a model with a toyAdapted.
func adaptedBatch(m *Model, be kernels.Backend) Batch {
	plain := &Model{Config: m.Config}
	b := imageBatch(plain)
	m.SetImages(&toyAdapted{gallery: plain.images.(*gallery), m: m, be: be})
	return b
}

// The gradient of adapters on a tower is the central difference of the objective, on a backbone whose embedding is
// frozen, and the ones on the language model are theirs.
func TestAdaptedTowerGradients(t *testing.T) {
	c := variants["qwen3-vl"]
	const h = 1.0 / 256 // features are float32: products of multiples of it lose nothing
	objectiveOf := func(keep Keep) *objective {
		o := newObjective(t, c, adaptedHeads(c), keep)
		for _, x := range o.m.Tensors() {
			if !strings.Contains(x.Name, "visual.") {
				continue
			}
			v := hostOf(o.be, o.m.View(x.Name))
			for i := range v {
				v[i] = math.Round(8*v[i]/h) * h // small features bend sharply behind a norm
			}
			o.be.Copy(o.m.View(x.Name), kernels.Host(v))
		}
		return o
	}
	o := objectiveOf(KeepAll)
	got := [2][]float64{o.gradient(), objectiveOf(KeepInputs).gradient()}
	tested := 0
	for _, x := range o.m.Tensors() {
		if !strings.Contains(x.Name, "visual.") && !strings.Contains(x.Name, "layers.0.mlp.down_proj.lora_A") {
			continue
		}
		for i := range x.Len() {
			at := o.m.View(x.Name).Slice(i, i+1)
			was := hostOf(o.be, at)[0]
			value := func(v float64) float64 {
				o.be.Copy(at, kernels.Host([]float64{v}))
				return o.value()
			}
			difference := func(h float64) float64 { return (value(was+h) - value(was-h)) / (2 * h) }
			want := (4*difference(h) - difference(2*h)) / 3 // Richardson: the error is of order h⁴
			o.be.Copy(at, kernels.Host([]float64{was}))
			for keep, g := range got {
				if d := g[x.off+i]; !(math.Abs(d-want) <= 2e-4*max(1, math.Abs(want))) {
					t.Errorf("way %d: %s[%d]: gradient %g, difference %g", keep, x.Name, i, d, want)
				}
			}
			tested++
		}
	}
	if tested < c.Width+2 {
		t.Errorf("%d elements", tested)
	}
}

// Adapters on a tower are parameters of the model behind the language model's, which do not move for them, and
// a model with its own tower folds them in.
func TestAdaptersOnTowers(t *testing.T) {
	c, be := withTower(variants["qwen2.5-vl"]), ref.New[float32]()
	plain := &Adapters{Rank: 2, Alpha: 3, Targets: []string{"q_proj"}}
	on := *plain
	on.Tower = c.TowerMaps()
	if len(on.Tower) != 1 || on.Tower[0] != (TowerMap{"visual.slope", 1, c.Width}) || c.TowerTargets()[0] != "slope" {
		t.Fatalf("maps of the tower %+v", on.Tower) // base is a table
	}
	before, _ := AdapterLayout(c, Heads{}, plain)
	after, _ := AdapterLayout(c, Heads{LM: true, Value: true}, &on)
	for i, x := range before {
		if after[i].Name != x.Name || after[i].off != x.off {
			t.Errorf("%s has moved", x.Name)
		}
	}
	if got := after[len(before)+1].Name; got != "base_model.model.visual.slope.lora_B.weight" {
		t.Errorf("behind them is %s", got)
	}
	if err := (Adapters{Rank: 1, Alpha: 1, Targets: []string{"slope"}}).Validate(c); err == nil ||
		!strings.Contains(err.Error(), "in the vision tower slope") {
		t.Errorf("a map of the tower among the language model's: %v", err)
	}
	if err := (Adapters{Rank: 1, Alpha: 1, Tower: on.Tower}).Validate(c); err != nil {
		t.Error(err)
	}
	base, err := NewBackbone(be, c, true, kernels.F32)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	from, err := NewOn(base, Heads{LM: true, Adapters: &on}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	fillAdapters(from)
	if !from.AdaptsTower() || from.HoldsTower() {
		t.Error("the tower is another's, and the adapters on it are the model's")
	}
	m, err := New(be, c, Heads{LM: true}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	learningBatch(m, be)
	initialised(m)
	was := hostOf(be, m.View("visual.slope.weight"))
	if err := m.FoldAdapters(from); err != nil {
		t.Fatal(err)
	}
	A, B := hostOf(be, from.View("base_model.model.visual.slope.lora_A.weight")), hostOf(be, from.View(after[len(before)+1].Name))
	for i, v := range hostOf(be, m.View("visual.slope.weight")) {
		if want := was[i] + 1.5*(B[0]*A[i]+B[1]*A[c.Width+i]); math.Abs(v-want) > 1e-5 || v == was[i] {
			t.Errorf("weight %d is %g, want %g", i, v, want)
		}
	}
}
