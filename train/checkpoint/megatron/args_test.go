package megatron

import (
	"strings"
	"testing"

	"exp/train/checkpoint/torchfile"
)

// Arguments that change the formulas are refused by name, and their neutral values are not.
func TestArgsUnsupported(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bad, neutral any
	}{
		{"window_size", []float64{15, 0}, []float64{-1, 0}},
		{"softmax_type", "off-by-one", "vanilla"},
		{"softmax_scale", 0.3, nil},
		{"no_rope_freq", 4, []float64{0, 0}},
		{"no_rope_freq", []float64{0, 1}, nil},
		{"qk_l2_norm", true, false},
		{"apply_residual_connection_post_layernorm", true, false},
		{"rotary_seq_len_interpolation_factor", 4, 1},
		{"activation_func_clamp_value", 7.0, nil},
		{"glu_linear_offset", 1.0, 0.0},
		{"quick_geglu", true, false},
		{"mtp_num_layers", 1, 0},
		{"heterogeneous_layers_config_path", "layers.json", nil},
		{"moe_expert_capacity_factor", 1.25, nil},
		{"moe_router_load_balancing_type", "sinkhorn", "aux_loss"},
		{"moe_router_topk_scaling_factor", 2.5, 1.0},
		{"normalization", "LayerNorm", "RMSNorm"},
		{"rotary_percent", 0.5, 1.0},
	} {
		problems := Args{tt.name: tt.bad}.unsupported()
		if len(problems) != 1 || !strings.HasPrefix(problems[0], tt.name+" is ") {
			t.Errorf("%s = %v: problems %q", tt.name, tt.bad, problems)
		}
		a := Args{}
		if tt.neutral != nil {
			a[tt.name] = tt.neutral
		}
		if problems := a.unsupported(); len(problems) > 0 {
			t.Errorf("%s = %v: problems %q", tt.name, tt.neutral, problems)
		}
	}
}

// Lists and tuples of numbers are read; lists of other things are left out.
func TestReadArgsLists(t *testing.T) {
	pickle := "\x80\x02cargparse\nNamespace\n)\x81}(X\x01\x00\x00\x00wK\x0fK\x00\x86X\x01\x00\x00\x00l](K\x01G" +
		"\x3f\xe0\x00\x00\x00\x00\x00\x00eX\x01\x00\x00\x00o]K\x01\x85aub."
	n, err := torchfile.Decode("args", []byte(pickle))
	if err != nil {
		t.Fatal(err)
	}
	a := readArgs(n)
	w, _ := a["w"].([]float64)
	l, _ := a["l"].([]float64)
	if len(w) != 2 || w[0] != 15 || w[1] != 0 || len(l) != 2 || l[0] != 1 || l[1] != 0.5 || a["o"] != nil {
		t.Errorf("got %v", a)
	}
}
