package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestStepDir(t *testing.T) {
	for step, name := range map[int]string{0: "step-00000000", 50: "step-00000050", 123456789: "step-123456789"} {
		if got := stepDir(step); got != name {
			t.Errorf("stepDir(%d) = %s", step, got)
		}
		if got, ok := stepOf(name); !ok || got != step {
			t.Errorf("stepOf(%s) = %d, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "step-", "step-5", "step-000000050", "step--0000001", "step-+0000001", "step-0000005x", ".step-00000050", "step-99999999999999999999"} {
		if step, ok := stepOf(name); ok {
			t.Errorf("stepOf(%q) = %d", name, step)
		}
	}
}

func TestParseManifestRefuses(t *testing.T) {
	good := manifest{Magic: magic, Version: version, Step: 1, State: json.RawMessage("null"), Files: []manifestFile{{Name: "a", Bytes: 1, SHA256: strings.Repeat("0", 64)}}}
	with := func(change func(*manifest)) []byte {
		m := good
		m.Files = append([]manifestFile(nil), good.Files...)
		change(&m)
		b, err := m.render()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	same := with(func(*manifest) {})
	if _, err := parseManifest("p", same); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		raw  []byte
		is   error
		want string
	}{
		{"empty", nil, ErrCorrupt, "unexpected end"},
		{"another file", []byte(`{"model_type":"qwen2"}`), ErrCorrupt, `magic is ""`},
		{"magic", with(func(m *manifest) { m.Magic = "other" }), ErrCorrupt, `magic is "other"`},
		{"newer", with(func(m *manifest) { m.Version = 2 }), ErrNewer, "format version 2"},
		{"version 0", with(func(m *manifest) { m.Version = 0 }), ErrCorrupt, "version 0"},
		{"negative step", with(func(m *manifest) { m.Step = -1 }), ErrCorrupt, "step -1"},
		{"edited", bytes.Replace(same, []byte(`"step": 1`), []byte(`"step": 2`), 1), ErrCorrupt, "not as written"},
		{"spaces", bytes.Replace(same, []byte(`"step": 1`), []byte(`"step":  1`), 1), ErrCorrupt, "not as written"},
		{"unknown key", bytes.Replace(same, []byte(`"step": 1,`), []byte("\"step\": 1,\n  \"extra\": 1,"), 1), ErrCorrupt, "not as written"},
		{"rest", append(bytes.Clone(same), " {}"...), ErrCorrupt, "after top-level value"},
		{"file outside", with(func(m *manifest) { m.Files[0].Name = "../a" }), ErrCorrupt, `"../a"`},
		{"no file name", with(func(m *manifest) { m.Files[0].Name = "" }), ErrCorrupt, `""`},
		{"negative size", with(func(m *manifest) { m.Files[0].Bytes = -1 }), ErrCorrupt, "-1 bytes"},
		{"short digest", with(func(m *manifest) { m.Files[0].SHA256 = "00" }), ErrCorrupt, `file "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseManifest("p", tt.raw)
			var e *Error
			if !errors.Is(err, tt.is) || !errors.As(err, &e) || e.Path != "p" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v; want an *Error that is %v and says %q", err, tt.is, tt.want)
			}
		})
	}
}

// Only what render gives is accepted.
func FuzzParseManifest(f *testing.F) {
	for _, state := range []string{`null`, `{"a": [1, 2.50, "<"]}`} {
		raw, err := manifest{Magic: magic, Version: version, State: json.RawMessage(state), Files: []manifestFile{{"x.safetensors", 8, strings.Repeat("a", 64)}}}.render()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := parseManifest("p", raw)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || e.Path != "p" {
				t.Fatalf("error of an unknown kind: %v", err)
			}
			return
		}
		if again, err := m.render(); err != nil || !bytes.Equal(again, raw) {
			t.Fatalf("accepted %q, which is written as %q", raw, again)
		}
	})
}
