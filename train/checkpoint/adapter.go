package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"exp/kernels"
	"exp/train/model"
)

// File names of adapters in PEFT's layout.
const (
	adapterFile       = "adapter_model.safetensors"
	adapterConfigFile = "adapter_config.json"
)

// adapterConfig is what this program reads and writes of adapter_config.json.
type adapterConfig struct {
	PEFTType    string         `json:"peft_type"`
	TaskType    string         `json:"task_type"`
	Base        string         `json:"base_model_name_or_path"`
	Rank        int            `json:"r"`
	Alpha       float64        `json:"lora_alpha"`
	Dropout     float64        `json:"lora_dropout"`
	Targets     targetModules  `json:"target_modules"`
	Bias        string         `json:"bias"`
	FanInFanOut bool           `json:"fan_in_fan_out"`
	Inference   bool           `json:"inference_mode"`
	InitWeights any            `json:"init_lora_weights"`
	RSLoRA      bool           `json:"use_rslora"`
	DoRA        bool           `json:"use_dora"`
	Save        []string       `json:"modules_to_save"`
	RankPattern map[string]int `json:"rank_pattern"`
	AlphaBy     map[string]any `json:"alpha_pattern"`
	Layers      any            `json:"layers_to_transform"`
}

// WriteAdapters writes the adapters of m as folder dir in PEFT's layout
// (adapter_config.json, adapter_model.safetensors) and returns its files. base is what
// PEFT calls base_model_name_or_path. What is at dir is exchanged.
func WriteAdapters(be kernels.Backend, m *model.Model, dir, base string) ([]FileInfo, error) {
	a := m.Heads.Adapters
	out, err := system().stage("write adapters", dir)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	config := indented(adapterConfig{
		PEFTType: "LORA", TaskType: "CAUSAL_LM", Base: base, Rank: a.Rank, Alpha: a.Alpha, Dropout: a.Dropout,
		Targets: slices.Sorted(slices.Values(a.Targets)), Bias: "none", Inference: true, InitWeights: true,
		RankPattern: map[string]int{}, AlphaBy: map[string]any{},
	})
	var files []FileInfo
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{adapterConfigFile, func(w io.Writer) error { _, err := w.Write(config); return err }},
		{adapterFile, func(w io.Writer) error { return WriteSafetensors(w, Weights(be, m, Plain)) }},
	} {
		info, err := out.write(f.name, f.write)
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, out.publish(true)
}

// targetModules is a list of names; a file may also have one name, or a pattern.
type targetModules []string

func (t *targetModules) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = targetModules{one}
		return nil
	}
	var list []string
	err := json.Unmarshal(b, &list)
	*t = list
	return err
}

// allLinear is PEFT's word for every linear map.
const allLinear = "all-linear"

// ReadAdapters returns the shape of the adapters in folder dir, in PEFT's layout, for a
// model of configuration c. The error is a *ConfigError that lists everything about them
// that is not computed here. Their weights are read by LoadAdapters.
func ReadAdapters(dir string, c model.Config) (*model.Adapters, error) {
	path := filepath.Join(dir, adapterConfigFile)
	raw, err := readSmall(path, maxConfig)
	if err != nil {
		return nil, err
	}
	var a adapterConfig
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, corrupt(path, "", "%v", err)
	}
	out := &model.Adapters{Rank: a.Rank, Alpha: a.Alpha, Targets: a.Targets, Dropout: a.Dropout}
	problems := a.refuse()
	if slices.Contains(out.Targets, allLinear) {
		out.Targets = c.AdapterTargets()
	}
	if a.RSLoRA { // arXiv:2312.03732: alpha/√rank
		out.Alpha *= math.Sqrt(float64(a.Rank))
	}
	if err := out.Validate(c); err != nil {
		problems = append(problems, strings.TrimPrefix(err.Error(), "model: "))
	}
	if len(problems) > 0 {
		return nil, &ConfigError{Path: path, Problems: problems}
	}
	return out, nil
}

// refuse lists what would change what adapters compute.
func (a *adapterConfig) refuse() (problems []string) {
	refuse := func(when bool, format string, args ...any) {
		if when {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	refuse(a.PEFTType != "LORA", "peft_type is %q; only LORA is computed", a.PEFTType)
	refuse(a.Bias != "" && a.Bias != "none", "bias is %q; only none is computed", a.Bias)
	refuse(a.FanInFanOut, "fan_in_fan_out: transposed weights are not computed")
	refuse(a.DoRA, "use_dora: DoRA is not computed")
	refuse(len(a.Save) > 0, "modules_to_save is %v: whole modules beside the adapters are not read", a.Save)
	refuse(len(a.RankPattern) > 0 || len(a.AlphaBy) > 0, "rank_pattern and alpha_pattern: adapters of several ranks are not computed")
	refuse(a.Layers != nil, "layers_to_transform: adapters on some layers only are not computed")
	return problems
}

// LoadAdapters sets the adapters of m from folder dir in PEFT's layout, and refreshes m.
func LoadAdapters(be kernels.Backend, m *model.Model, dir string) error {
	t, err := OpenFile(filepath.Join(dir, adapterFile))
	if err != nil {
		return err
	}
	return errors.Join(LoadWeights(be, m, t, Plain), t.Close())
}
