package inspect

import (
	"cmp"
	"fmt"

	"exp/harness/config"
	"exp/harness/forecast"
	"exp/train/checkpoint"
)

// Report describes a model's files, in the schema exp.inspect/1.
type Report struct {
	Path         string               `json:"path"`
	Container    string               `json:"container"`
	Class        string               `json:"class,omitempty"`
	Architecture []string             `json:"architecture,omitempty"` // in words
	Computable   bool                 `json:"computable"`
	Reasons      []string             `json:"reasons"` // why not
	Notes        []string             `json:"notes"`
	Parameters   int64                `json:"parameters"` // elements of all tensors
	Positions    int                  `json:"max_positions,omitempty"`
	Needs        *forecast.ModelNeeds `json:"needs,omitempty"`
	DTypes       []DTypeCount         `json:"dtypes"`
	TensorCount  int                  `json:"tensor_count"`
	Tensors      []Tensor             `json:"tensors,omitempty"`
	Files        []File               `json:"files"`
	Adapter      *Adapter             `json:"adapter,omitempty"`
}

// DTypeCount says how much of a model has a type.
type DTypeCount struct {
	DType    string `json:"dtype"`
	Tensors  int    `json:"tensors"`
	Elements int64  `json:"elements"`
	Bytes    int64  `json:"bytes"`
}

// Tensor is one tensor in the files.
type Tensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int64  `json:"bytes"`
	File  string `json:"file"`
}

// File is one file.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
}

// Adapter describes LoRA adapters.
type Adapter struct {
	Path       string   `json:"path"`
	Base       string   `json:"base,omitempty"` // as named in the folder
	Rank       int      `json:"rank"`
	Alpha      float64  `json:"alpha"`
	Targets    []string `json:"targets"`
	Parameters int      `json:"parameters"`
	Trainable  bool     `json:"trainable"` // training can continue them

	Facts []string `json:"-"` // in words
}

// Options select how much of a model's files is read and listed.
type Options struct {
	Tensors bool // list the tensors
	Digest  bool // hash the files
}

// Describe reads the headers of the files. Problems with the model go into the report,
// not into the error.
func (f Folder) Describe(o Options) (*Report, error) {
	if f.Dir == "" {
		return describeAlone(f.Adapter, o)
	}
	describe := checkpoint.Describe
	switch f.Part {
	case config.PartText:
		describe = checkpoint.DescribeText
	case config.PartImages:
		describe = checkpoint.DescribeImages
	}
	d, err := describe(f.Dir)
	if err != nil {
		return nil, err
	}
	if o.Digest {
		if err := d.Digest(); err != nil {
			return nil, err
		}
	}
	d.Notes = append(d.Notes, tokenizerNotes(d)...)
	r := newReport(d, o.Tensors)
	if f.Adapter != "" {
		return r, r.addAdapter(d, f.Adapter)
	}
	return r, nil
}

// describeAlone describes adapters whose model is not here.
func describeAlone(path string, o Options) (*Report, error) {
	x, err := checkpoint.DescribeAdapters(path, nil)
	if err != nil {
		return nil, err
	}
	d := &checkpoint.Description{Path: path, Container: "safetensors", Tensors: x.Tensors, Reason: x.Reason}
	d.Reason = append(d.Reason,
		fmt.Sprintf("%v: exp inspect MODEL --adapter %s says whether they fit", NoModel(path), path))
	if err := d.List(); err != nil {
		return nil, err
	}
	if o.Digest {
		if err := d.Digest(); err != nil {
			return nil, err
		}
	}
	r := newReport(d, o.Tensors)
	r.Class, r.Adapter = "LoRA adapters", newAdapter(x)
	return r, nil
}

func newReport(d *checkpoint.Description, tensors bool) *Report {
	r := &Report{Path: d.Path, Container: d.Container, Class: d.Class, Computable: d.Known,
		Reasons: orEmpty(d.Reason), Notes: orEmpty(d.Notes), TensorCount: len(d.Tensors), Files: []File{},
		DTypes: []DTypeCount{}}
	for _, f := range d.Files {
		r.Files = append(r.Files, File{f.Name, f.Bytes, f.SHA256})
	}
	at := map[checkpoint.DType]int{}
	for _, t := range d.Tensors {
		if _, ok := at[t.DType]; !ok {
			at[t.DType] = len(r.DTypes)
			r.DTypes = append(r.DTypes, DTypeCount{DType: string(t.DType)})
		}
		n := &r.DTypes[at[t.DType]]
		n.Tensors++
		n.Elements += int64(t.Len())
		n.Bytes += t.Bytes()
		r.Parameters += int64(t.Len())
		if tensors {
			r.Tensors = append(r.Tensors, Tensor{t.Name, string(t.DType), t.Shape, t.Bytes(), t.File})
		}
	}
	if d.Config.Layers > 0 {
		r.Architecture = checkpoint.Words(d.Config, cmp.Or(d.Backbone, d.Class))
		r.Positions = d.Config.MaxPositions
	}
	if d.Config.Layers > 0 && d.Backbone == "" { // else exp eval --dry-run says what it needs beside a policy
		needs := forecast.NeedsOf(d.Config)
		r.Needs = &needs
	}
	return r
}

// orEmpty turns nil into an empty list, for JSON.
func orEmpty(list []string) []string { return append([]string{}, list...) }

func newAdapter(d *checkpoint.AdapterDescription) *Adapter {
	return &Adapter{Path: d.Path, Base: d.Base, Rank: d.Rank, Alpha: d.Alpha, Targets: orEmpty(d.Targets),
		Parameters: d.Parameters, Trainable: d.Uniform, Facts: d.Facts()}
}

// addAdapter adds the adapters to the report of a model.
func (r *Report) addAdapter(d *checkpoint.Description, path string) error {
	config := &d.Config
	if !d.Known {
		config = nil
	} else if c, err := checkpoint.WithTowerMaps(d.Config, d.Path); err == nil { // Reasons have the error
		config = &c
	}
	x, err := checkpoint.DescribeAdapters(path, config)
	if err != nil {
		return err
	}
	r.Adapter = newAdapter(x)
	for _, reason := range x.Reason {
		r.Reasons, r.Computable = append(r.Reasons, "adapters: "+reason), false
	}
	return nil
}
