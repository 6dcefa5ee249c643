package checkpoint

import (
	"cmp"
	"math"

	"exp/train/model"
)

// MiniCPM (arXiv:2404.06395 §3, §5) scales embeddings, what each block adds to the residual stream, and the hidden
// states before the output projection. Its files name other numbers than Granite's for the same three factors:
//
//	embeddings        scale_emb
//	residual stream   scale_depth / sqrt(num_hidden_layers)
//	logits            dim_model_base / hidden_size

// minis are models of MiniCPM, and HyperCLOVA X.
func minis() []architecture {
	latent := model.Latent{Rank: 256, QueryRank: 768, Nope: 64, Rope: 32}
	return []architecture{
		{class: "MiniCPMForCausalLM", kind: "minicpm", words: "MiniCPM: multipliers",
			eps: 1e-6, theta: 1e4, positions: 2048, tied: true, inside: true,
			features: []feature{attentionBias, miniScales(miniNames{1, 1, 1})},
			write:    []writer{outBias, miniValues}},
		{class: "MiniCPM3ForCausalLM", kind: "minicpm3", words: "MiniCPM3: multipliers, latent attention",
			eps: 1e-5, theta: 1e4, positions: 32768, head: 32, vocab: 73448, heads: 40, tied: true, latent: true,
			inside:   true,
			prepare:  mini3Keys,
			features: []feature{latentHeads(latent), noFeedForwardBias, miniScales(miniNames{12, 1.4, 256})},
			write:    []writer{latentValues, miniValues}},
		{class: "HyperCLOVAXForCausalLM", kind: "hyperclovax",
			words: "HyperCLOVA X: multipliers, norms before and after the blocks",
			eps:   1e-6, theta: 1e4, positions: 2048,
			features: []feature{attentionBias, feedForwardBias, hyperLayers},
			write:    []writer{outBias, ffnBias, hyperValues}},
	}
}

// miniNames are the three settings.
type miniNames struct{ embed, depth, base float64 }

// mini3Keys gives MiniCPM3 the defaults of its latent attention; its rotary positions are not interleaved, whatever
// a file says.
func mini3Keys(r *settings) {
	r.values["rope_interleave"] = compact(false)
	var width, heads int
	if !r.has("v_head_dim") && r.maybe("hidden_size", &width) && r.maybe("num_attention_heads", &heads) && heads > 0 {
		r.values["v_head_dim"] = compact(width / heads)
	}
}

// noFeedForwardBias refuses biases of feed-forward blocks, which no published model of the class has.
func noFeedForwardBias(r *settings, _ *model.Config) { r.refuseFlags(false, "mlp_bias") }

// miniScales reads MiniCPM's factors. A factor of 1 is kept as 0. In transformers null makes the factor of the
// residual stream, or of the logits, 1.
func miniScales(absent miniNames) feature {
	return func(r *settings, c *model.Config) {
		const most = 1e6 // as Granite's (multipliers)
		x := absent
		layers, width := math.Sqrt(float64(max(c.Layers, 1))), float64(c.Width)
		for _, f := range []struct {
			key string
			v   *float64
			one float64 // with which the factor is 1
		}{{"scale_emb", &x.embed, 1}, {"scale_depth", &x.depth, layers}, {"dim_model_base", &x.base, width}} {
			if r.null(f.key) {
				*f.v = f.one
			} else if r.maybe(f.key, f.v); !(*f.v >= 1/most && *f.v <= most) {
				r.problem("%s is %g, must be from %g to %g", f.key, *f.v, 1/most, float64(most))
				*f.v = f.one
			}
		}
		for _, f := range []struct {
			to *float64
			by float64
		}{{&c.EmbedScale, x.embed}, {&c.ResidualScale, x.depth / layers}, {&c.LogitDivisor, width / x.base}} {
			if f.by != 1 {
				*f.to = f.by
			}
		}
	}
}

// miniValues writes them.
func miniValues(v map[string]any, _ architecture, c model.Config) {
	layers, width := math.Sqrt(float64(c.Layers)), float64(c.Width)
	residual, divisor := cmp.Or(c.ResidualScale, 1), cmp.Or(c.LogitDivisor, 1)
	v["scale_emb"] = finite(cmp.Or(c.EmbedScale, 1))
	v["scale_depth"] = finite(inverse(residual, func(depth float64) float64 { return depth / layers },
		residual*layers))
	v["dim_model_base"] = finite(inverse(divisor, func(base float64) float64 { return width / base }, width/divisor))
}

// hyperLayers reads HyperCLOVA X's multipliers and norms: logits are multiplied, not divided, and scores have their
// usual factor if the file gives none.
func hyperLayers(r *settings, c *model.Config) {
	usual := !r.has("attention_multiplier")
	if usual {
		r.values["attention_multiplier"] = compact(1)
	}
	by := 1.0
	if r.maybe("logits_scaling", &by); by > 0 {
		r.values["logits_scaling"] = compact(1 / by)
	}
	if multipliers(r, c); usual {
		c.QueryScale = 0
	}
	if r.flag("use_post_norm", true) {
		c.PostNorms, c.Names = true, model.HyperNames
	}
}

func hyperValues(v map[string]any, a architecture, c model.Config) {
	multiplierValues(v, a, c)
	divisor := cmp.Or(c.LogitDivisor, 1)
	v["logits_scaling"] = number(inverse(divisor, func(by float64) float64 { return 1 / by }, 1/divisor))
	v["attention_multiplier"], v["use_post_norm"] = orNull(c.QueryScale), c.PostNorms
}

// sparseNote says that MiniCPM 4.1's sparse attention is not computed.
func (r *settings) sparseNote() []string {
	if r.has("sparse_config") {
		return []string{"sparse_config: attention is dense here, as in programs that ignore the key; the authors' " +
			"code computes sparse attention for sequences of dense_len tokens or more"}
	}
	return nil
}
