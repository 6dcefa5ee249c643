package checkpoint

import (
	"io"
	"regexp"
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

// adapterConfig is the part of adapter_config.json that this program writes.
type adapterConfig struct {
	PEFTType    string         `json:"peft_type"`
	TaskType    string         `json:"task_type"`
	Base        string         `json:"base_model_name_or_path"`
	Rank        int            `json:"r"`
	Alpha       float64        `json:"lora_alpha"`
	Dropout     float64        `json:"lora_dropout"`
	Targets     any            `json:"target_modules"` // names, or a regular expression
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

// WriteAdapterTensors writes the adapters as folder dir in PEFT's layout
// (adapter_config.json, adapter_model.safetensors) and returns its files. base becomes
// PEFT's base_model_name_or_path. An existing dir is replaced.
func (x Trained) WriteAdapterTensors(be kernels.Backend, dir, base string) ([]FileInfo, error) {
	var list []Source
	for _, t := range x.learned() {
		if !t.Auxiliary() {
			s := streamed{be: be, t: x.Learned, tensor: Tensor{Name: t.Name, DType: dtypeOf(be.Float()),
				Shape: t.Shape}}
			list = append(list, s.source())
		}
	}
	list = publish(list, sourceTensor, stackedSource, turnedSource, x.Config)
	targets := slices.Sorted(slices.Values(x.Heads.Adapters.Targets))
	if !x.Config.ReadsImages() {
		return writeAdapters(x.Heads.Adapters, list, dir, base, targets)
	}
	inner := languageModel
	if name := x.Config.Images.Module; name != "" {
		inner = backbonePrefix + name + "."
	}
	for i := range list {
		rest := strings.TrimPrefix(list[i].Name, adapterPrefix)
		if ofTower(rest) {
			list[i].Name = adapterPrefix + backbonePrefix + rest
		} else {
			list[i].Name = adapterPrefix + inner + strings.TrimPrefix(rest, backbonePrefix)
		}
	}
	if len(x.Heads.Adapters.Tower) > 0 { // last parts would also name filters of pixels
		return writeAdapters(x.Heads.Adapters, list, dir, base, modulesOf(list))
	}
	// Maps of the vision tower may have the same names.
	return writeAdapters(x.Heads.Adapters, list, dir, base,
		regexp.QuoteMeta(inner)+`.*\.(`+strings.Join(targets, "|")+")")
}

// modulesOf returns the names of the modules that tensors of adapters are on.
func modulesOf(list []Source) (names []string) {
	for _, s := range list {
		if name, part := mapOf(s.Name); part == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// What the names of the language model's modules begin with, within a model of text and images: where transformers 5
// has them, and in Idefics3 and SmolVLM.
const (
	languageModel = backbonePrefix + "language_model."
	textModel     = backbonePrefix + textModule + "."
	textModule    = "text_model"
)

func writeAdapters(a *model.Adapters, tensors []Source, dir, base string, targets any) ([]FileInfo, error) {
	out, err := system().stage("write adapters", dir)
	if err != nil {
		return nil, err
	}
	defer out.discard()
	config := indented(adapterConfig{
		PEFTType: "LORA", TaskType: "CAUSAL_LM", Base: base, Rank: a.Rank, Alpha: a.Alpha, Dropout: a.Dropout,
		Targets: targets, Bias: "none", Inference: true, InitWeights: true, RSLoRA: a.Stabilized,
		RankPattern: map[string]int{}, AlphaBy: map[string]any{},
		FanInFanOut: slices.ContainsFunc(tensors, func(s Source) bool {
			return strings.HasPrefix(s.Name, adapterPrefix+"transformer.h.") // GPT-2's weights are transposed
		}),
	})
	var files []FileInfo
	for _, f := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{adapterConfigFile, func(w io.Writer) error { _, err := w.Write(config); return err }},
		{adapterFile, func(w io.Writer) error { return WriteSafetensors(w, tensors) }},
	} {
		info, err := out.write(f.name, f.write)
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	return files, out.publish(true)
}
