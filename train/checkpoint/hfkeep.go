package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"exp/train/model"
)

// Origin holds what a written model keeps of its source: its config.json and its number
// types.
type Origin struct {
	Config []byte           // config.json
	DTypes map[string]DType // of the tensors, by name
	// ShardBytes is how many bytes of tensors its largest file has; 0 if it has one file, or
	// is in files of ranks.
	ShardBytes int64

	// Of a model of text and images:
	Path      string            // of the weights, whose vision tower is kept
	Names     map[string]string // of tensors in the files, by their names here
	Processor map[string][]byte // files of the processors of images and videos, kept byte for byte
	Turned    bool              // all experts of a layer are in tensors whose rows are what goes in
}

// ReadOrigin reads the Origin of a model at a path: config.json and the headers of its
// weights.
func ReadOrigin(path string) (*Origin, error) {
	raw, err := readSmall(filepath.Join(TextsFolder(path), configFile), maxConfig)
	if err != nil {
		return nil, err
	}
	t, err := OpenFolder(path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o := &Origin{Config: raw, DTypes: map[string]DType{}}
	sizes := map[*os.File]int64{}
	for name, p := range t.where {
		o.DTypes[name] = p.DType
		if len(p.files()) == 1 {
			sizes[p.file] += p.Bytes()
		}
	}
	if len(sizes) > 1 {
		o.ShardBytes = slices.Max(slices.Collect(maps.Values(sizes)))
	}
	if tower, _ := towerClass(raw); !tower {
		return o, nil
	}
	o.Path, o.Names, o.Turned = path, map[string]string{}, t.turned
	for name, p := range t.where {
		o.Names[name] = p.stored
	}
	o.Processor, err = readProcessor(TextsFolder(path))
	return o, err
}

// patchConfig returns a folder's config.json adapted to c and weights of type dtype. Keys
// stay where and as they were written, and both spellings of types and rotary positions are
// present afterwards. It falls back to a new file if the old class does not support c.
func patchConfig(old []byte, c model.Config, dtype DType, endIDs []int32) ([]byte, error) {
	switch {
	case c.ReadsImages():
		return wholeJSON(old, c, dtype)
	case wholeClass(old):
		return configJSON(c, dtype, endIDs) // of the text part
	}
	old = unquantized(textPartJSON(old))
	from, err := ParseConfig(configFile, old)
	if err != nil {
		return configJSON(c, dtype, endIDs) // such as the text part of a larger model
	}
	r := settings{}
	if err := json.Unmarshal(old, &r.values); err != nil {
		return nil, err
	}
	a, _ := r.architecture()
	want, have := configValues(a, c, dtype, endIDs), configValues(a, from, dtype, endIDs)
	set := map[string]any{"dtype": torchName(dtype), "torch_dtype": torchName(dtype),
		"architectures": []string{a.class}}
	for key, value := range want {
		if !reflect.DeepEqual(value, have[key]) {
			set[key] = value
		}
	}
	for _, key := range []string{"rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq"} {
		if _, there := r.values[key]; !there && want[key] != nil {
			set[key] = want[key]
		}
	}
	if reflect.DeepEqual(from.Rope, c.Rope) && !a.gemmaFour() && a.kind != "mellum" {
		r.respell(set, want)
	}
	raw, err := setKeys(old, set)
	if err != nil {
		return nil, err
	}
	if got, err := ParseConfig(configFile, raw); err != nil || !reflect.DeepEqual(got, c) {
		return configJSON(c, dtype, endIDs)
	}
	return raw, nil
}

// setKeys sets keys of a JSON object: existing ones in place, new ones at the end, ordered
// by name.
func setKeys(object []byte, set map[string]any) ([]byte, error) {
	keys, values, err := members(object)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, key := range keys {
		if v, ok := set[key]; ok && !sameJSON(values[i], v) {
			values[i] = compact(v)
		}
		seen[key] = true
	}
	for _, key := range sortedKeys(set) {
		if !seen[key] {
			keys, values = append(keys, key), append(values, compact(set[key]))
		}
	}
	return joinMembers(keys, values)
}

// joinMembers returns the JSON object of keys and the texts of their values.
func joinMembers(keys []string, values []json.RawMessage) ([]byte, error) {
	var flat, out bytes.Buffer
	for i, key := range keys {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		flat.WriteByte(sep)
		flat.Write(compact(key))
		flat.WriteByte(':')
		flat.Write(values[i])
	}
	flat.WriteByte('}')
	if err := json.Indent(&out, flat.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// members returns the keys of a JSON object and their values' texts, in order.
func members(raw []byte) (keys []string, values []json.RawMessage, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, fmt.Errorf("config.json is not an object: %v", err)
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, nil, err
		}
		keys, values = append(keys, t.(string)), append(values, v)
	}
	return keys, values, nil
}

// sameJSON reports whether a text has the value v.
func sameJSON(raw json.RawMessage, v any) bool {
	var was, is any
	return json.Unmarshal(raw, &was) == nil && json.Unmarshal(compact(v), &is) == nil && reflect.DeepEqual(was, is)
}
