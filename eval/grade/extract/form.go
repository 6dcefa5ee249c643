package extract

import "strings"

// Form is how a response writes its final answer. Graders read different forms, so a score mixes what a
// model knows with how it writes.
type Form string

// The forms, in histogram order.
const (
	FormPlain     Form = "plain"     // Answer: 7, or another answer phrase
	FormDollar    Form = "dollar"    // Answer: $7$, or another delimiter of formulas
	FormBox       Form = "box"       // \boxed{7}
	FormBoth      Form = "both"      // a box, and an answer phrase with more before or after it
	FormTag       Form = "tag"       // <answer>7</answer>
	FormHash      Form = "hash"      // #### 7
	FormNone      Form = "none"      // none of these
	FormTruncated Form = "truncated" // none of these, and the text breaks off
)

// Forms lists all forms.
func Forms() []Form {
	return []Form{FormPlain, FormDollar, FormBox, FormBoth, FormTag, FormHash, FormNone, FormTruncated}
}

// FormOf returns the form of a response's answer. truncated says that the response hit a limit; an unclosed
// thought or box shows that too. Time is linear in the length.
func FormOf(response string, truncated bool) Form {
	s, ended := AfterThought(response)
	if !ended {
		return FormTruncated
	}
	if k := lastIndex(s, "</answer>"); k >= 0 && strings.Contains(s[:k], "<answer>") {
		return FormTag
	}
	_, box := LastBox(s)
	phrase, rest := formPhrase(s)
	switch {
	case box && (phrase == "" || strings.Contains(rest, "\\boxed")):
		return FormBox
	case box:
		return FormBoth
	case phrase == "####":
		return FormHash
	case phrase != "":
		for _, open := range []string{"$", "\\(", "\\["} {
			if strings.HasPrefix(rest, open) {
				return FormDollar
			}
		}
		return FormPlain
	case truncated, strings.Contains(s, "\\boxed{"):
		return FormTruncated
	}
	return FormNone
}

// formPhrase returns the last answer phrase with text after it, and the rest of its line.
func formPhrase(s string) (phrase, rest string) {
	for end := len(s); ; {
		start, after := lastPhrase(s[:end])
		if start < 0 {
			return "", ""
		}
		rest = strings.TrimLeft(s[after:], " \t\r\n*:：_")
		if k := strings.IndexByte(rest, '\n'); k >= 0 {
			rest = rest[:k]
		}
		if rest != "" {
			return s[start:after], rest
		}
		end = start
	}
}
