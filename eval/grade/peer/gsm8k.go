package peer

import (
	"strings"

	"exp/eval/grade"
	"exp/eval/grade/pattern"
)

var (
	gsm8kMark   = pattern.New(`#### (-?[0-9.,]+)`)
	gsm8kNumber = pattern.New(`(-?[0-9.,]+)`)
)

// GSM8KStrict is compute_score of verl's gsm8k.py with method "strict".
func GSM8KStrict(gold, response string) grade.Verdict {
	all := gsm8kMark.FindAllStringSubmatch(lastRunes(response, 300), -1)
	if len(all) == 0 {
		return verdict(false, "", "no #### number")
	}
	return gsm8k(gold, stripMoney(all[len(all)-1][1]))
}

// GSM8KFlexible is compute_score with method "flexible": the last run of digits, points and commas other
// than a lone point.
func GSM8KFlexible(gold, response string) grade.Verdict {
	all := gsm8kNumber.FindAllString(lastRunes(response, 300), -1)
	if len(all) == 0 {
		return verdict(false, "", "no number")
	}
	answer := all[0]
	for i := len(all) - 1; i >= 0; i-- {
		if answer = all[i]; answer != "." {
			break
		}
	}
	return gsm8k(gold, answer)
}

func stripMoney(s string) string { return strings.NewReplacer(",", "", "$", "").Replace(s) }

func gsm8k(gold, answer string) grade.Verdict {
	return verdict(answer == gold, answer, equalText(answer == gold))
}
