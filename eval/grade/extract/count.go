package extract

import (
	"strings"

	"exp/eval/grade/wording"
)

// How many values a sentence lists.

// listedCount matches how many values a sentence lists.
var listedCount = lazy(`(?i)\b(?:is|are|has|have|find|get) (?:exactly |only |precisely )?\$?\{?([0-9]+|[a-z]+)\}?\$? ` +
	`(?:[a-z-]+ ){0,3}[a-z]+(?: to \$[^$]*\$)?(?::|,? namely|,? which are) [^:]*$`)

// howMany returns how many values a sentence says that it lists; "" if it does not.
func howMany(s string) string {
	m := listedCount.FindStringSubmatch(s)
	if m == nil || wording.Unsettled(s[:strings.LastIndex(s, m[1])]) || disbelieved(s) {
		return ""
	}
	if _, word := numberInWords(m[1]); !word && !wording.AllDigits(m[1]) {
		return ""
	}
	return m[1]
}
