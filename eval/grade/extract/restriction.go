package extract

import (
	"strings"
)

// Values that hold only under a condition.

// opined matches words after a marked answer by which the writer vouches for it: 42, I think.
var opined = lazy(`(?i)^(.*[^,; ]),? I(?: think| believe|'m (?:[a-z]+ )?(?:sure|confident)| am (?:[a-z]+ )?` +
	`(?:sure|confident))[.!]*$`)

// reduceMarked is reduce for a text that a phrase or a tag marks as the answer. A value with a condition stays as it
// is: only a gold answer with the same condition equals it.
func reduceMarked(s string) string {
	if strings.Contains(s, " I") {
		s = opined.ReplaceAllString(s, "$1")
	}
	if t := Statement(s); isRestricted(t) {
		return t
	}
	return reduce(s)
}

// restricted matches a value and the condition on a variable that limits it: 42 for n = 1, $42$ for even $n$.
var restricted = lazy(`^(?:[a-zA-Z] = )?(\$[^$]+\$|\\\(.*?\\\)|[-−$€£]*[0-9][0-9.,/]*%?)(?: [a-z]+)?,? (?:\(|only )?` +
	`(?:(?:for|when|whenever|if|provided(?: that)?|as long as) ` +
	`(?:\$|\\\()?([a-zA-Z])(?:\$|\\\))? ?(?:=|<|>|≤|≥|≠|\\[lg]eq?\b|\\neq?\b|is (?:even|odd|prime|positive|negative|[0-9]))|` +
	`(?:for|when|whenever|if) (?:even|odd|prime|positive|negative|nonzero|large|small) (?:\$|\\\()?([a-zA-Z])\b)`)

// otherwise matches a value and the word for the other cases.
var otherwise = lazy(`(?i)^(?:\$[^$]+\$|[-−$€£]*[0-9][0-9.,/]*%?)[^.;]*\b(?:otherwise|or else)\b`)

// commands matches the names of commands, whose letters are not variables.
var commands = lazy(`\\[a-zA-Z]+`)

// isRestricted reports whether a marked answer holds only under a condition. A condition on a variable of the value
// says where a formula is defined, and restricts nothing: $1/x$ for $x > 0$.
func isRestricted(s string) bool {
	if m := restricted.FindStringSubmatch(s); m != nil {
		return !strings.Contains(commands.ReplaceAllString(m[1], ""), m[2]+m[3])
	}
	return otherwise.MatchString(s)
}
