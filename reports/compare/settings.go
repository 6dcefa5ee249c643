package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"exp/experiments/store"
	"exp/harness/config"
)

// settings is a stored configuration.
type settings struct {
	text     map[string]string // by path, as written in a file
	vary     []string
	minSeeds int
}

func (rd *reader) settings(ctx context.Context, run store.Run) (*settings, error) {
	if s, ok := rd.configs[run.Config]; ok {
		return s, nil
	}
	c, err := rd.db.Config(ctx, run.Config)
	if err != nil {
		return nil, err
	}
	s := &settings{}
	if s.text, err = flatten([]byte(c.JSON)); err != nil {
		return nil, fmt.Errorf("configuration of run %s: %w", run.RID.Short(), err)
	}
	var own struct {
		Compare struct {
			Vary     []string `json:"vary"`
			MinSeeds int      `json:"min_seeds"`
		} `json:"compare"`
	}
	if err := json.Unmarshal([]byte(c.JSON), &own); err != nil {
		return nil, fmt.Errorf("configuration of run %s: %w", run.RID.Short(), err)
	}
	s.vary, s.minSeeds = own.Compare.Vary, own.Compare.MinSeeds
	rd.configs[run.Config] = s
	return s, nil
}

// flatten turns nested objects into text by dotted path, formatted as by config.Format.
// Unknown keys (from an older or newer program) keep their JSON.
func flatten(text []byte) (map[string]string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var nested map[string]any
	if err := d.Decode(&nested); err != nil {
		return nil, err
	}
	flat := map[string]string{}
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for name, v := range m {
			path := prefix + name
			if inner, ok := v.(map[string]any); ok {
				walk(path+".", inner)
				continue
			}
			flat[path] = settingText(path, v)
		}
	}
	walk("", nested)
	return flat, nil
}

func settingText(path string, v any) string {
	if k, ok := config.Lookup(path); ok {
		if text := config.Format(k, plain(k, v)); text != "" {
			return text
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("compare: " + err.Error()) // it came out of JSON
	}
	return string(b)
}

// plain converts JSON to the plain value of a key (config.Kind).
func plain(k *config.Key, v any) any {
	switch v := v.(type) {
	case json.Number:
		switch k.Kind {
		case config.Int, config.Duration, config.Size:
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return n
			}
		}
		if x, err := v.Float64(); err == nil {
			return x
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(k, v[i])
		}
		return list
	case map[string]any:
		m := make(map[string]any, len(v))
		for i := range k.Fields {
			f := &k.Fields[i]
			m[f.Path] = plain(f, v[f.Path])
		}
		return m
	}
	return v
}
