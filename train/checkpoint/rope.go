package checkpoint

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/train/model"
)

// ropeScopes are the keys under which transformers 5 stores rope parameters that differ by
// layer.
const (
	fullScope   = "full_attention"
	windowScope = "sliding_attention"
)

// ropeKinds lists the supported scalings.
func ropeKinds() []string { return []string{"linear", "llama3", "yarn", "dynamic", "longrope"} }

// rope reads the rotation of positions, in two spellings: rope_theta and rope_scaling
// (transformers 4), and rope_parameters, which holds both (transformers 5). A file may have
// both; they must agree on theta, and rope_scaling takes precedence, as in transformers.
func (r *settings) rope(a architecture, c *model.Config) {
	c.RopeTheta = a.theta
	local := c.Windowed != nil && a.ownRope
	params, scaling := r.inner("rope_parameters"), r.inner("rope_scaling")
	var windowed *settings
	if params != nil && (params.has(fullScope) || params.has(windowScope)) {
		params, windowed = r.scopes(a, params)
	} else if params != nil && a.ownRope {
		r.problem("rope_parameters: %s has them under %s and %s; transformers ignores others", a.class, fullScope,
			windowScope)
	}
	r.theta("rope_theta", &c.RopeTheta, params, scaling)
	if a.kind == "olmo3" && !r.has("rope_theta") && !params.holds("rope_theta") && !scaling.holds("rope_theta") {
		r.problem("rope_theta is missing: transformers 4 takes 10000, transformers 5 takes %g", float64(olmo3Theta))
	}
	if local {
		r.localTheta(a, c, windowed)
		if windowed != nil && windowed.kind() != "default" {
			r.problem("rope_parameters: %s: windowed layers support only unscaled positions, not %q", windowScope,
				windowed.kind())
		}
	}
	r.spellings(scaling, params)
	if a.ownRope && scaling.holds("type") && !scaling.holds("rope_type") && scaling.kind() != "default" {
		r.problem("rope_scaling: type is %q: transformers 5 ignores it in this class; call it rope_type",
			scaling.kind())
	}
	if a.gemmaFour() {
		r.gemmaFourRope(c, params)
		return
	}
	key, in := "rope_scaling", scaling
	if in == nil {
		key, in = "rope_parameters", params
	}
	r.rotary(a, c, in)
	if in != nil {
		in.scaling(a, c, r)
		r.take(key, in)
	}
	if a.kind == "olmo3" && c.LocalTheta == c.RopeTheta && c.Rope.Kind == "" {
		c.LocalTheta = 0
	}
}

// olmo3Theta is transformers 5's rope_theta of OLMo 3.
const olmo3Theta = 5e5

// localTheta reads the base of windowed layers.
func (r *settings) localTheta(a architecture, c *model.Config, windowed *settings) {
	if a.gemmaFour() {
		c.LocalTheta = 1e4
		windowed.orEmpty().get("rope_theta", &c.LocalTheta)
		return
	}
	if a.kind == "gemma3_text" {
		c.LocalTheta = 1e4
		r.theta("rope_local_base_freq", &c.LocalTheta, windowed)
		return
	}
	c.LocalTheta = c.RopeTheta
	if windowed != nil && windowed.get("rope_theta", &c.LocalTheta) {
		return
	}
	if c.RopeTheta != olmo3Theta {
		r.problem("rope_theta is %g: transformers 5 takes %g for windowed layers unless rope_parameters has their "+
			"rope_theta under %s", c.RopeTheta, float64(olmo3Theta), windowScope)
	}
}

// scopes splits parameters that differ by layer.
func (r *settings) scopes(a architecture, params *settings) (full, windowed *settings) {
	full, windowed = params.inner(fullScope), params.inner(windowScope)
	r.take("rope_parameters", params)
	if !a.ownRope {
		r.problem("rope_parameters: rotary positions that differ by layer are not supported for %s", a.class)
		return full, nil
	}
	return full, windowed
}

// theta reads a base of rotary frequencies from every place that may hold it.
func (r *settings) theta(key string, v *float64, others ...*settings) {
	said := r.get(key, v)
	for _, o := range others {
		if o == nil {
			continue
		}
		inner := *v
		if o.get("rope_theta", &inner); said && inner != *v {
			r.problem("%s is %g, but another place in the file says %g; transformers 4 and 5 would read "+
				"different models", key, *v, inner)
		}
		said = said || o.has("rope_theta")
		*v = inner
	}
}

// rotary reads the number of rotated channels of a head.
func (r *settings) rotary(a architecture, c *model.Config, in *settings) {
	part, read := 1.0, r.maybe
	if a.part > 0 {
		part, read = a.part, r.get // null is not the default: transformers 5 rotates all channels then
	}
	read("partial_rotary_factor", &part)
	if in != nil {
		in.maybe("partial_rotary_factor", &part)
	}
	n := int(float64(c.Head) * part)
	switch {
	case part == 1:
	case !a.partial:
		r.problem("partial_rotary_factor is %g, only 1 is supported for %s", part, a.class)
	case !(part > 0) || part > 1 || n < 2 || n%2 != 0:
		r.problem("partial_rotary_factor is %g: %d of %d channels cannot be rotated in pairs", part, n, c.Head)
	case n < c.Head:
		c.Rotary = n
	}
}

// scaling reads a rope_scaling, or the rope_parameters, r of the file top.
func (r *settings) scaling(a architecture, c *model.Config, top *settings) {
	kind := r.kind()
	if a.kind == "phi3" && (kind == "su" || kind == "yarn") {
		kind = "longrope" // the name in early Phi-3 files
	}
	var nested []string
	for name, v := range r.values {
		if strings.HasPrefix(string(v), "{") {
			nested = append(nested, name)
		}
	}
	if slices.Sort(nested); len(nested) > 0 {
		r.problem("%s: rotary positions that differ by layer are not supported", nested[0])
		return
	}
	if kind == "default" {
		if beta := 0.0; a.kind == "ministral3" && r.maybe("llama_4_scaling_beta", &beta) && beta != 0 {
			r.problem("llama_4_scaling_beta is %g: only with yarn it is supported", beta)
		}
		return
	}
	if alpha := 0.0; kind == "dynamic" && strings.HasPrefix(a.kind, "hunyuan_v1") && r.maybe("alpha", &alpha) &&
		alpha != 0 {
		// A larger base, whatever the length.
		theta := c.RopeTheta * math.Pow(alpha, float64(c.Head)/float64(c.Head-2))
		if !(alpha > 0) || math.IsInf(theta, 1) {
			r.problem("alpha is %g: heads of %d channels have no base of their frequencies with it", alpha, c.Head)
			return
		}
		c.RopeTheta = theta
		return
	}
	if !slices.Contains(ropeKinds(), kind) {
		r.problem("rope type %q is not supported; supported are default, %s", kind, strings.Join(ropeKinds(), ", "))
		return
	}
	if a.kind == "phi3" && kind != "longrope" {
		r.problem("rope type %q: %s supports only longrope, in transformers too", kind, a.class)
		return
	}
	if all := 0.0; a.latent && kind != "yarn" && r.maybe("mscale_all_dim", &all) && all != 0 {
		r.problem("mscale_all_dim is %g: only yarn with it is supported for this class", all)
	}
	s := model.RopeScaling{Kind: kind}
	if kind != "longrope" {
		if !r.maybe("factor", &s.Factor) {
			r.problem("%s needs a factor", kind)
			s.Factor = 1
		}
		r.positive("factor", s.Factor)
	}
	outside := top
	if a.ownRope {
		outside = &settings{} // where transformers does not look in these classes
	}
	switch kind {
	case "llama3":
		r.llama3(c, &s, outside)
	case "yarn":
		r.yarn(c, &s, outside)
	case "dynamic":
		s.Original = c.MaxPositions
	case "longrope":
		r.longrope(a, c, &s, top)
	}
	if a.kind == "ministral3" {
		r.queryBeta(c, &s)
	}
	c.Rope = s
}

func (r *settings) positive(key string, v float64) {
	if !(v > 0) {
		r.problem("%s is %g, must be positive", key, v)
	}
}

func (r *settings) llama3(c *model.Config, s *model.RopeScaling, top *settings) {
	r.original(c, s, top)
	for _, f := range []struct {
		key string
		v   *float64
	}{{"low_freq_factor", &s.LowFactor}, {"high_freq_factor", &s.HighFactor}} {
		if !r.maybe(f.key, f.v) {
			r.problem("llama3 needs a %s", f.key)
			return
		}
	}
	if r.positive("low_freq_factor", s.LowFactor); !(s.HighFactor > s.LowFactor) {
		r.problem("high_freq_factor is %g, must be above low_freq_factor %g", s.HighFactor, s.LowFactor)
	}
}

// yarn reads arXiv:2309.00071's scaling. The factor of cos and sin is given, or follows
// from mscale, or is 0.1·ln s + 1. The model has s times the positions before scaling;
// max_position_embeddings often still gives the positions before scaling, because people add
// yarn to files by hand.
func (r *settings) yarn(c *model.Config, s *model.RopeScaling, top *settings) {
	if r.original(c, s, top) {
		c.MaxPositions = max(c.MaxPositions, int(min(s.Factor*float64(s.Original), maxPositions)))
	}
	r.maybe("beta_fast", &s.BetaFast)
	r.maybe("beta_slow", &s.BetaSlow)
	if s.BetaFast == 0 {
		s.BetaFast = 32
	}
	if s.BetaSlow == 0 {
		s.BetaSlow = 1
	}
	if !(s.BetaSlow > 0) || !(s.BetaFast > s.BetaSlow) {
		r.problem("beta_fast is %g and beta_slow %g: must be positive, the first the larger", s.BetaFast, s.BetaSlow)
	}
	s.Exact = !r.flag("truncate", true)
	magnitude := func(m float64) float64 {
		if s.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(s.Factor) + 1
	}
	var mscale, all float64
	r.maybe("mscale", &mscale)
	r.maybe("mscale_all_dim", &all)
	if all != 0 && c.Latent.Rank > 0 && s.Factor > 1 {
		c.QueryScale = latentScale(c.Head, s.Factor, all)
	}
	s.Attention = magnitude(1)
	if mscale != 0 && all != 0 {
		s.Attention = magnitude(mscale) / magnitude(all)
	}
	r.maybe("attention_factor", &s.Attention)
	r.positive("attention_factor", s.Attention)
}

// queryBeta reads how Ministral 3 scales queries beyond the positions before scaling, and limits it to those.
func (r *settings) queryBeta(c *model.Config, s *model.RopeScaling) {
	if s.Kind != "yarn" || !r.maybe("llama_4_scaling_beta", &s.QueryBeta) || s.QueryBeta < 0 {
		r.problem("rope type is %q and llama_4_scaling_beta %s: this class needs yarn, and a number of at least 0",
			s.Kind, cmp.Or(shortened(r.values["llama_4_scaling_beta"]), "missing"))
	}
	if s.QueryBeta > 0 {
		c.MaxPositions = min(c.MaxPositions, s.Original)
	}
}

// longrope reads arXiv:2402.13753's scaling. Only sequences of at most n tokens are
// supported, where Short holds: MaxPositions becomes n.
func (r *settings) longrope(a architecture, c *model.Config, s *model.RopeScaling, top *settings) {
	r.originalLong(a, c, s, top)
	s.Factor = float64(c.MaxPositions) / float64(max(s.Original, 1))
	factor := s.Factor
	r.maybe("factor", &factor)
	s.Attention = 1
	if s.Factor > 1 && s.Original > 1 {
		s.Attention = math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(s.Original)))
	}
	if !r.maybe("attention_factor", &s.Attention) && factor != s.Factor {
		r.problem("factor is %g, but max_position_embeddings / original_max_position_embeddings is %g: transformers "+
			"4 and 5 would read different models", factor, s.Factor)
	}
	r.positive("attention_factor", s.Attention)
	rotated := c.Head
	if c.Rotary > 0 {
		rotated = c.Rotary
	}
	s.Short, s.Long = r.factors("short_factor", rotated/2), r.factors("long_factor", rotated/2)
	c.MaxPositions = min(c.MaxPositions, s.Original)
}

// factors reads a list of n positive numbers.
func (r *settings) factors(key string, n int) []float64 {
	var list []float64
	if !r.maybe(key, &list) {
		r.problem("longrope needs a %s", key)
		return nil
	}
	if len(list) != n {
		r.problem("%s has %d numbers, a head has %d pairs of channels", key, len(list), n)
		return nil
	}
	for _, f := range list {
		if !(f > 0) {
			r.problem("%s holds %g, must be positive", key, f)
			return nil
		}
	}
	return list
}

// ropeWords describes rotary positions for people.
func ropeWords(c model.Config) string {
	s := c.Rope
	text := fmt.Sprintf("theta %g", c.RopeTheta)
	switch s.Kind {
	case "":
	case "proportional":
		text += fmt.Sprintf(", %d of %d channels", s.Turned, cmp.Or(c.Global.Head, c.Head))
	case "linear", "dynamic":
		text += fmt.Sprintf(", %s factor %g", s.Kind, s.Factor)
	default:
		text += fmt.Sprintf(", %s factor %g over %d positions", s.Kind, s.Factor, s.Original)
	}
	if c.LocalTheta > 0 {
		text += fmt.Sprintf("; windowed layers theta %g", c.LocalTheta)
	}
	if c.Rotary > 0 {
		text += fmt.Sprintf("; %d of %d channels", c.Rotary, c.Head)
	}
	if c.Interleaved {
		text += "; in pairs of neighbouring channels"
	}
	return text
}
