package reports

import (
	"exp/eval"
	"exp/harness/config"
)

// kindCurves lists the curves of each kind of problems, which runs of several kinds record (task.kind mixed).
func kindCurves() (list []curveKind) {
	for _, kind := range append(config.MixedParts(), config.GeneratedParts()...) {
		list = append(list,
			curveKind{Name: "train-accuracy-" + kind, Metric: "train/accuracy/" + kind, Group: groupKinds},
			curveKind{Name: "train-score-" + kind, Metric: "train/score/" + kind, Group: groupKinds},
			curveKind{Name: "accuracy-" + kind, Metric: "val/" + eval.PassPrefix + kind, Group: groupKinds, Rare: true,
				Start: eval.PassPrefix + kind})
	}
	return list
}
