package instruct

import "testing"

// NLTK 3.10.4 counts so.
func TestSentences(t *testing.T) {
	for text, want := range map[string]int{
		"":                                  0,
		"  ":                                0,
		"Hello":                             1,
		"Hello. ":                           1,
		"It is. It was.":                    2,
		"Dr. Smith came. He left.":          2,
		"He paid $3.50 to Mr. J. Doe.":      1,
		"Stop! Who? Me.":                    3,
		"Wait... what?":                     1,
		"Wait. . . . what? Yes.":            6,
		"She said \"No.\" He said \"Yes.\"": 2,
		"(It rains.) It pours.":             2,
		"*It rains.*\n*It pours.*":          3, // the last asterisk stands alone
		"“It rains.” It pours.":             2,
		"e.g. this, i.e. that":              3, // no abbreviations of the model
		"no. 5 is here. no. 6 is not.":      4,
		"It was in the U.S. The end.":       2,
		"What?! No!":                        2,
		"Route 66. International fame.":     1, // a collocation of a number
		"Route 66. Pacific fame.":           2,
		"It was Mr. The. He went.":          3, // "the." is known as "the"
		"B. Smith came.":                    1,
		"the post-Dr. Jones came":           1, // the part after the hyphen is abbreviated
		"a.b.c. D":                          2,
	} {
		if got := english().count(text); got != want {
			t.Errorf("%q: %d sentences, want %d", text, got, want)
		}
	}
}
