package extract

// Answers that say yes or no.

// truthAndReason matches a yes or no with its reason: no, because it is not possible.
var truthAndReason = lazy(`(?i)^\**(yes|no|true|false)\**(?:,? (?:because|since|as) .*|[.,;:] [^0-9$\\]*)$`)

// opposite matches words that add the other: yes; or no.
var opposite = lazy(`(?i)\b(?:or|maybe|perhaps|possibly)(?: maybe| perhaps)? (?:yes|no|not|true|false)\b`)

// affirmation matches a yes or no and the short sentence that repeats it: Yes, it is.
var affirmation = lazy(`(?i)^\**(?:(yes)\**, ` + whoever + ` ` + auxiliary +
	`(?: (?:always |indeed )?(?:possible|true|correct|right))?|` +
	`(no)\**, ` + whoever + ` (?:` + auxiliary + `(?: not|n't)|cannot|can't)` +
	`(?: (?:always |indeed )?(?:possible|true|correct|necessary))?)[.!]?$`)

const (
	whoever   = `(?:it|he|she|they|this|that|there|we|you|i)`
	auxiliary = `(?:is|are|does|do|can|will|was|were|has|have|did)`
)

// affirmedBriefly returns the yes or no of such a text; empty if it is another.
func affirmedBriefly(s string) string {
	m := affirmation.FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

// affirmed matches a sentence that says yes or no.
var affirmed = lazy(`(?i)^(?:(?:so|thus|hence|therefore),? +)?\**(yes|no)(?:[,.:;—-]|\**$)`)
