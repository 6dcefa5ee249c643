package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// Adapters is a folder of adapters in PEFT's layout, in the form that a model of some
// configuration computes. Mixed ranks become the largest, padded with zeros; mixed scales
// become one, with the ratio, rounded once, folded into B; maps without an adapter get one
// of zeros.
type Adapters struct {
	Dir   string
	Base  string         // the folder's name or path for its model
	Shape model.Adapters // rank, alpha, targets and dropout for model.NewOn
	// Uniform says that all adapters have one rank and one scale and that every targeted
	// map has one, so training can continue from them.
	Uniform bool

	config model.Config
	maps   map[string]adapterPair // by the name of the linear map
}

// adapterPair is an adapter of a linear map in the file.
type adapterPair struct {
	rank  int
	scale float64
}

// OpenAdapterFile opens the tensors of a folder of adapters.
func OpenAdapterFile(dir string) (*Tensors, error) {
	t, err := OpenFile(filepath.Join(dir, adapterFile))
	if errors.Is(err, fs.ErrNotExist) {
		e := &Error{Op: "read", Path: filepath.Join(dir, adapterFile), Err: fs.ErrNotExist,
			Hint: "a folder of adapters in PEFT's layout has adapter_config.json and adapter_model.safetensors"}
		if _, pickled := os.Stat(filepath.Join(dir, "adapter_model.bin")); pickled == nil {
			e.Hint = "it holds PyTorch's pickled adapters, which are not supported; save them again with PEFT " +
				"(safe_serialization=True)"
		}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	// In a model of text and images, the layers of the text part are one level deeper, and in transformers 5 the
	// vision tower, too.
	err = t.rename(func(name string) (string, bool) {
		if inner, ok := strings.CutPrefix(name, adapterPrefix); ok && ofTower(inner) {
			part, _ := towerName(inner)
			return adapterPrefix + learnedName(part), true
		}
		for _, family := range []model.LayerNames{model.NeoXNames, model.GPT2Names} {
			n, _ := namingOf(family)
			if strings.HasPrefix(name, adapterPrefix+n.layers) {
				return n.toHere(name)
			}
		}
		for _, deeper := range []string{languageModel, textModel, "language_model.model."} {
			if rest, ok := strings.CutPrefix(name, adapterPrefix+deeper); ok {
				return adapterPrefix + backbonePrefix + rest, true
			}
		}
		return name, true
	})
	return t.orClosed(err)
}

// adapterPrefix begins tensor names in PEFT's files.
const adapterPrefix = "base_model.model."

// ReadAdapters reads the settings and the headers of a folder of adapters for a model of
// configuration c, which has the maps of the vision tower if adapters may be on it
// (WithTowerMaps). It returns a *ConfigError that lists everything unsupported.
func ReadAdapters(dir string, c model.Config) (*Adapters, error) {
	set, err := readAdapterSettings(dir)
	if err != nil {
		return nil, err
	}
	out := &Adapters{Dir: dir, Base: set.base, config: c, maps: map[string]adapterPair{}}
	if len(set.problems) == 0 {
		t, err := OpenAdapterFile(dir)
		if err != nil {
			return nil, err
		}
		out.gather(set, t)
		if err := t.Close(); err != nil {
			return nil, err
		}
	}
	if len(set.problems) > 0 {
		return nil, &ConfigError{Path: filepath.Join(dir, adapterConfigFile), Problems: set.problems}
	}
	return out, nil
}

// gather finds the adapters among the tensors; the tensors decide, whatever target_modules
// says.
func (a *Adapters) gather(set *adapterSettings, t *Tensors) {
	possible := a.possible()
	half := map[string]int{} // number of A and B that a map has
	var strange, misfits []string
	for _, x := range t.List() {
		name, part := mapOf(x.Name)
		dims, can := possible[name]
		switch {
		case !can || part < 0:
			strange = append(strange, x.Name)
			continue
		case len(x.Shape) != 2 || x.Shape[1-part] != dims[1-part] || !x.DType.convertible():
			misfits = append(misfits, fmt.Sprintf("%s is %s and fits no map of %d outputs and %d inputs", x.Name,
				x.kind(), dims[0], dims[1]))
			continue
		}
		rank := x.Shape[part]
		half[name]++
		if old, ok := a.maps[name]; ok && old.rank != rank {
			set.problem("%s has rank %d, its other half %d", x.Name, rank, old.rank)
		}
		if rank < 1 || rank > maxRank || rank != set.rank && !set.ranks {
			misfits = append(misfits, fmt.Sprintf("%s has rank %d, r is %d", x.Name, rank, set.rank))
		}
		a.maps[name] = adapterPair{rank, set.scale(moduleName(name), max(rank, 1))}
	}
	for _, name := range sortedKeys(half) {
		if half[name] != 2 {
			misfits = append(misfits, fmt.Sprintf("%s has one half of an adapter: lora_A or lora_B is missing or "+
				"does not fit", name))
		}
	}
	if len(misfits) > 0 {
		set.problem("%s", firstOf(misfits))
	}
	if len(strange) > 0 {
		set.problem("no adapter can target %s; the model can have adapters on %s in its %d layers",
			firstOf(strange), strings.Join(a.config.AdapterTargets(), ", "), a.config.Layers)
	}
	if len(a.maps) == 0 && len(set.problems) == 0 {
		set.problem("%s holds no adapters", adapterFile)
	}
	if len(set.problems) == 0 {
		a.shape(set, possible)
	}
}

// possible returns outputs and inputs of the linear maps that can have an adapter.
func (a *Adapters) possible() map[string][2]int {
	all := map[string][2]int{}
	layout, _ := model.AdapterLayout(a.config, model.Heads{}, &model.Adapters{Rank: 1, Alpha: 1,
		Targets: a.config.AdapterTargets(), Tower: a.config.TowerMaps()})
	for _, t := range layout {
		name, part := mapOf(t.Name)
		dims := all[name]
		dims[1-part] = t.Shape[1-part]
		all[name] = dims
	}
	return all
}

// mapOf splits the name of a tensor into the linear map and the half of the adapter: 0 for
// A [rank,in], 1 for B [out,rank], -1 for neither.
func mapOf(tensor string) (name string, part int) {
	name, ok := strings.CutPrefix(tensor, adapterPrefix)
	if !ok {
		return tensor, -1
	}
	for i, suffix := range []string{".lora_A.weight", ".lora_B.weight"} {
		if rest, ok := strings.CutSuffix(name, suffix); ok {
			return rest, i
		}
	}
	return name, -1
}

// moduleName returns the name of a linear map that patterns of adapter_config.json match: the vision tower's are those
// of transformers 5.
func moduleName(name string) string {
	if ofTower(name) {
		return backbonePrefix + name
	}
	return name
}

// firstOf lists the first few texts and counts the rest.
func firstOf(list []string) string {
	const most = 3
	text := strings.Join(list[:min(len(list), most)], ", ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// shape finds the settings that hold all adapters.
func (a *Adapters) shape(set *adapterSettings, possible map[string][2]int) {
	s := model.Adapters{Dropout: set.dropout}
	for _, name := range sortedKeys(a.maps) {
		s.Rank = max(s.Rank, a.maps[name].rank)
		if t := lastPart(name); !ofTower(name) && !slices.Contains(s.Targets, t) {
			s.Targets = append(s.Targets, t)
		}
	}
	slices.Sort(s.Targets)
	for _, t := range a.config.TowerMaps() {
		if _, ok := a.maps[t.Name]; ok {
			s.Tower = append(s.Tower, t)
		}
	}
	var missing []string
	a.Uniform = true
	scale := a.maps[slices.Min(slices.Collect(maps.Keys(a.maps)))].scale
	for _, name := range sortedKeys(possible) {
		x, ok := a.maps[name]
		if slices.Contains(s.Targets, lastPart(name)) && !ok && !ofTower(name) {
			missing = append(missing, name)
		}
		if ok {
			a.Uniform = a.Uniform && x.rank == s.Rank && x.scale == scale
			scale = max(scale, x.scale)
		}
	}
	if len(missing) > 0 && !set.partial {
		set.problem("the adapter of %s is missing (%d in all), and neither layers_to_transform nor exclude_modules "+
			"excludes any", missing[0], len(missing))
	}
	a.Uniform = a.Uniform && len(missing) == 0
	a.boundPadding(set, s)
	s.Alpha = scale * float64(s.Rank)
	if a.Uniform && !set.stable && len(set.alphas) == 0 {
		s.Alpha = set.alpha // not rounded
	}
	a.Shape = s
}

// boundPadding refuses adapters whose padding would multiply their size.
func (a *Adapters) boundPadding(set *adapterSettings, s model.Adapters) {
	const most, times = 1 << 30, 16 // elements
	own, padded := 0, 0
	for name, dims := range a.possible() {
		if x, ok := a.maps[name]; ok {
			own += x.rank * (dims[0] + dims[1])
		}
		if _, has := a.maps[name]; has || slices.Contains(s.Targets, lastPart(name)) && !ofTower(name) {
			padded += s.Rank * (dims[0] + dims[1])
		}
	}
	if padded > most && padded > times*own {
		set.problem("the ranks go up to %d: padding all adapters to that rank turns %d numbers "+
			"into %d", s.Rank, own, padded)
	}
}

// ofTower reports whether a linear map is the vision tower's.
func ofTower(name string) bool {
	_, ok := towerName(name)
	return ok
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Load sets the adapters of m, which has the shape of a, and refreshes m.
func (a *Adapters) Load(be kernels.Backend, m *model.Model) error {
	t, err := OpenAdapterFile(a.Dir)
	if err != nil {
		return err
	}
	err = a.load(be, m, t)
	m.Refresh()
	return errors.Join(err, t.Close())
}

func (a *Adapters) load(be kernels.Backend, m *model.Model, t *Tensors) error {
	R := a.Shape.Rank
	for _, to := range m.Tensors() {
		name, part := mapOf(to.Name)
		if part < 0 {
			continue // a head
		}
		out := make([]float32, to.Len())
		if x, ok := a.maps[name]; ok {
			tensor, found := t.Lookup(to.Name)
			if !found || len(tensor.Shape) != 2 || tensor.Shape[part] != x.rank ||
				tensor.Shape[1-part] != to.Shape[1-part] {
				return corrupt(t.path, to.Name, "changed while being read")
			}
			in := make([]float32, tensor.Len())
			if err := t.Read(be, to.Name, kernels.Host(in)); err != nil {
				return err
			}
			if n, ok := namingOf(a.config.Names); ok {
				n.inOrder(in, tensor, a.config.Heads)
			}
			if part == 0 {
				copy(out, in) // rows above the rank stay zero
			} else {
				widen(out, in, R, x.rank, x.scale/a.Shape.Scale())
			}
		}
		be.Copy(m.View(to.Name), kernels.Host(out))
		be.Sync()
	}
	return nil
}

// widen sets rows of R elements to rows of r elements times a ratio, padded with zeros.
func widen(out, in []float32, R, r int, ratio float64) {
	if math.Abs(ratio-1) < 1e-12 {
		ratio = 1 // alpha/rank times rank, divided again
	}
	for i := range len(in) / r {
		for k, v := range in[i*r : (i+1)*r] {
			out[i*R+k] = float32(float64(v) * ratio)
		}
	}
}

// Scales returns the scale of every adapter by the name of its linear map.
func (a *Adapters) Scales() map[string]float64 {
	m := map[string]float64{}
	for name, x := range a.maps {
		m[name] = x.scale
	}
	return m
}
