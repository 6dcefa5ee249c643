package config

import (
	"testing"

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
