package rl

import (
	"maps"
	"slices"
)

// The settings of the loss "flowrl". FlowPreset chooses the defaults of all settings except
// the log Z head's: see FlowRLVariants.
var (
	FlowPreset = Setting{Key: "flowrl.preset", Preset: true,
		Help: "which published FlowRL: verl's recipe (w <= 10), the released code (w unclipped), the paper (w in " +
			"1 +- 0.2), or a variant of the authors' branches"}
	FlowBeta = Setting{Key: "flowrl.beta", Range: "(0, inf)", Verl: []string{"flowrl_beta_coef"},
		Help: "scale of the reward in the residual"}
	FlowLogZ = Setting{Key: "flowrl.use_logz",
		Help: "learn log Z of each prompt; false sets it to 0 and installs no head"}
	FlowLogZFrom = Setting{Key: "flowrl.logz.from", Default: logZHead, Words: logZWords, Late: true,
		While: []Condition{{Key: "flowrl.use_logz"}},
		Help:  "a head learns log Z, or each group of completions estimates it (VarGrad: no head)"}
	LogZLayers = Setting{Key: "flowrl.logz.layers", Default: 3, Range: "[1, 64]", Unit: "layers", While: withLogZ,
		Verl: []string{"proj_layer", "porj_layer"}, Help: "linear layers of the log Z head"}
	LogZDropout = Setting{Key: "flowrl.logz.dropout", Default: 0.1, Range: "[0, 1)", Unit: "fraction",
		While: withLogZ,
		Help:  "dropout in the head during updates"}
	LogZPool = Setting{Key: "flowrl.logz.pool", Default: "drop_last", Words: []string{"drop_last", "all"},
		While: withLogZ,
		Help:  "prompt positions whose hidden states are averaged; upstream drops the last one"}
	LogZDetach = Setting{Key: "flowrl.logz.detach", Default: false, While: withLogZ,
		Help: "stop the head's gradient at the hidden states"}
	FlowWeightLevel = Setting{Key: "flowrl.weight.level", Words: levelWords[WeightSum:],
		Help: "importance weight from the sum or the mean of a completion's log-ratios"}
	FlowWeightLow = Setting{Key: "flowrl.weight.low", Range: "[0, inf)", UpTo: "flowrl.weight.high",
		Help: "lower limit of the weight"}
	FlowWeightHigh = Setting{Key: "flowrl.weight.high", Null: true, Range: "(0, inf)",
		Help: "upper limit of the weight; null means no limit"}
	FlowReference = Setting{Key: "flowrl.reference", Words: referenceWords[ReferencePolicy:],
		Help: "reference policy in the residual: the frozen start, the policy before the step, or none"}
	FlowReward = Setting{Key: "flowrl.reward", Words: []string{flowStandardized, flowCentered, flowRaw},
		Help: "reward in the residual: group-normalised, group-centered, or as graded"}
	FlowTokenMask = Setting{Key: "flowrl.token_mask", Words: tokenMaskWords[KeepAll:],
		Help: "cispo drops tokens whose ratio has moved beyond [0.8, 1.28] in the direction of the advantage"}
	FlowTerms = Setting{Key: "flowrl.terms", Words: termsWords,
		Help: "one residual per completion (from means over its tokens) or one per token"}
	FlowMeanClip = Setting{Key: "flowrl.mean_clip", Words: meanClipWords,
		Help: "bound the log-prob in the residual by algo.clip around the old one: never, on both sides, or where " +
			"GSPO clips"}
	FlowSurrogate = Setting{Key: "flowrl.surrogate",
		Help: "add PPO's clipped loss with the residual as advantage"}
	FlowRatioFractions = Setting{Key: "flowrl.ratio_fractions",
		Help: "record the fractions of tokens whose ratio to the reference is beyond algo.clip (first release)"}

	withLogZ = []Condition{{Key: "flowrl.use_logz"}, {Key: "flowrl.logz.from", Words: logZWords[:1]}}
)

// The words of FlowReward.
const (
	flowStandardized = "advantage"
	flowCentered     = "adv_no_std"
	flowRaw          = "raw"
)

// The words of FlowLogZFrom.
const (
	logZHead  = "head"
	logZGroup = "group"
)

// The words of settings that choose a constant, indexed by the constant.
var (
	logZWords      = []string{logZHead, logZGroup}
	levelWords     = []string{WeightSum: "sum", WeightMean: "mean"}
	referenceWords = []string{ReferencePolicy: "ref", OldPolicy: "old", NoReference: "none"}
	tokenMaskWords = []string{KeepAll: "none", DropCISPO: "cispo"}
	termsWords     = []string{RowTerms: "row", TokenTerms: "token"}
	meanClipWords  = []string{NoMeanClip: "none", ClipMean: "both", ClipMeanGSPO: "gspo"}
)

// flowRecipe is the variant whose settings are the defaults.
const flowRecipe = "recipe"

// FlowRLPresets are the names of FlowRLVariants, the default first.
func FlowRLPresets() []string {
	names := slices.Sorted(maps.Keys(FlowRLVariants()))
	at := slices.Index(names, flowRecipe)
	return slices.Insert(slices.Delete(names, at, at+1), 0, flowRecipe)
}

// flowRLSettings returns the settings of the loss "flowrl" with their defaults by preset,
// and the clip bounds that parts of the loss use.
func flowRLSettings() []Setting {
	variants, names := FlowRLVariants(), FlowRLPresets()
	preset := FlowPreset
	preset.Default, preset.Words = flowRecipe, names
	by := func(s Setting, of func(v FlowRLVariant) any) Setting {
		s.Default = of(variants[flowRecipe])
		for _, name := range names {
			if x := of(variants[name]); x != s.Default {
				s.From, s.Cases = FlowPreset.Key, append(s.Cases, Case{name, x})
			}
		}
		return s
	}
	clip := func(s Setting, of func(c Clip) float64) Setting {
		s.Where = []Condition{
			{FlowMeanClip.Key, meanClipWords[ClipMean:]}, {Key: FlowSurrogate.Key}, {Key: FlowRatioFractions.Key},
		}
		s.From = FlowPreset.Key
		for _, name := range names {
			if c := variants[name].Loss.Clip; c != (Clip{}) {
				s.Cases = append(s.Cases, Case{name, of(c)})
			}
		}
		return s
	}
	return []Setting{
		preset,
		by(FlowBeta, func(v FlowRLVariant) any { return v.Loss.Beta }),
		by(FlowLogZ, func(v FlowRLVariant) any { return v.Loss.UseLogZ }),
		FlowLogZFrom, LogZLayers, LogZDropout, LogZPool, LogZDetach,
		by(FlowWeightLevel, func(v FlowRLVariant) any { return levelWords[v.Loss.WeightLevel] }),
		by(FlowWeightLow, func(v FlowRLVariant) any { return v.Loss.WeightLow }),
		by(FlowWeightHigh, func(v FlowRLVariant) any { return v.Loss.WeightHigh }),
		by(FlowReference, func(v FlowRLVariant) any { return referenceWords[v.Loss.Reference] }),
		by(FlowReward, func(v FlowRLVariant) any {
			if v.Scale {
				return flowStandardized
			}
			return flowCentered
		}),
		by(FlowTokenMask, func(v FlowRLVariant) any { return tokenMaskWords[v.Loss.TokenMask] }),
		by(FlowTerms, func(v FlowRLVariant) any { return termsWords[v.Loss.Terms] }),
		by(FlowMeanClip, func(v FlowRLVariant) any { return meanClipWords[v.Loss.MeanClip] }),
		by(FlowSurrogate, func(v FlowRLVariant) any { return v.Loss.Surrogate }),
		by(FlowRatioFractions, func(v FlowRLVariant) any { return v.Loss.RatioFractions }),
		clip(clipLow, func(c Clip) float64 { return c.Low }),
		clip(clipHigh, func(c Clip) float64 { return c.High }),
	}
}

// flowRLConfig reads the settings of the residual.
func flowRLConfig(c Settings) FlowRLConfig {
	f := FlowRLConfig{
		Beta: c.Float(FlowBeta), UseLogZ: c.Bool(FlowLogZ),
		WeightLevel: Level(c.place(FlowWeightLevel, levelWords)),
		WeightLow:   c.Float(FlowWeightLow), WeightHigh: c.Float(FlowWeightHigh),
		Reference: Reference(c.place(FlowReference, referenceWords)),
		TokenMask: TokenMask(c.place(FlowTokenMask, tokenMaskWords)),
		Terms:     Terms(c.place(FlowTerms, termsWords)),
		MeanClip:  MeanClip(c.place(FlowMeanClip, meanClipWords)),
		Surrogate: c.Bool(FlowSurrogate), RatioFractions: c.Bool(FlowRatioFractions),
	}
	f.GroupLogZ = f.UseLogZ && c.Word(FlowLogZFrom) == logZGroup
	if f.MeanClip != NoMeanClip || f.Surrogate || f.RatioFractions {
		f.Clip = Clip{Low: c.Float(clipLow), High: c.Float(clipHigh)}
	}
	return f
}

// flowRLAdvantages returns the estimator of the reward in the residual and its settings.
func flowRLAdvantages(c Settings) (Estimator, Settings) {
	switch reward := c.Word(FlowReward); reward {
	case flowStandardized, flowCentered:
		return groupEstimator(), Settings{scaleStd.Key: reward == flowStandardized}
	default:
		return scoreEstimator(), nil
	}
}

// flowRLLoss is the loss "flowrl".
func flowRLLoss() PolicyLoss {
	return PolicyLoss{Name: "flowrl", Whole: true, Settings: flowRLSettings(), Advantages: flowRLAdvantages,
		Reads: func(c Settings) (reference, logZ bool) { return flowRLConfig(c).needsRef(), flowRLConfig(c).head() },
		Start: func(c Settings, _ Others) LossRun {
			f, s := flowRLConfig(c), new(FlowRLStats)
			run := LossRun{Metrics: s.Metrics, Add: func(m *Micro) {
				logZ := m.LogZ
				for _, group := range m.Means {
					logZ = append(logZ, float32(group.Mean))
				}
				FlowRL(m.DLogProb, m.DLogZ, m.Batch, logZ, m.Of, f, s)
			}}
			if f.GroupLogZ {
				run.Constants = func(mini *Batch[float32], group []int) RowConstants {
					return RowConstants{Means: FlowRLMeans(mini, group, f)}
				}
			}
			return run
		}}
}
