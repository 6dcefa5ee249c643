package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
)

// The published recipes end with the published protocol, every setting of it.
func TestRecipeProtocol(t *testing.T) {
	for file, name := range map[string]string{"flowrl_7b_math": "flowrl-math", "flowrl_32b_math": "flowrl-math", "flowrl_7b_code": "flowrl-code"} {
		r, err := Load(Input{File: "../../configs/" + file + ".yaml"})
		if err != nil {
			t.Fatal(err)
		}
		p, err := eval.ProtocolByName(name)
		if err != nil {
			t.Fatal(err)
		}
		f := r.Run.Eval.Final
		if f.N != p.N || f.Temperature != p.Temperature || f.TopP != p.TopP || f.TopK != p.TopK || f.MaxNewTokens != p.MaxNewTokens || r.Run.Data.MaxPromptTokens != p.MaxPromptTokens {
			t.Errorf("%s: %+v, and %s is %s", file, f, name, p.Settings())
		}
	}
}

// A protocol sets what it says and the settings may be changed over it.
func TestProtocolPreset(t *testing.T) {
	for _, p := range eval.Protocols() {
		r := load(t, Input{File: "testdata/base.yaml", Sets: []string{"eval.final.protocol=" + p.Name, "eval.final.pass_k=[1]", "model.arch.max_positions=20000"}})
		if f := r.Run.Eval.Final; f.N != p.N || f.Temperature != p.Temperature || f.TopP != p.TopP || f.TopK != p.TopK || f.MaxNewTokens != p.MaxNewTokens {
			t.Errorf("%s: %+v", p.Name, f)
		}
	}
	r := load(t, Input{File: "testdata/base.yaml", Sets: []string{"eval.final.protocol=flowrl-math", "eval.final.top_k=0", "model.arch.max_positions=20000"}})
	paper := load(t, Input{File: "testdata/base.yaml", Sets: []string{"eval.final.protocol=flowrl-math-paper", "model.arch.max_positions=20000"}})
	if diff := cmp.Diff(r.Protocol(), paper.Protocol()); diff != "" {
		t.Errorf("the protocol without top-k (-set +preset):\n%s", diff)
	}
}
