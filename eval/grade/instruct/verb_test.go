package instruct

import (
	"os"
	"strings"
	"testing"
)

// starts.txt has beginnings of prose and of models' answers, with whether NLTK's tagger takes the first word for a
// verb. Most are of the hard kind, with a word that it takes for a verb elsewhere.
func TestStartsWithVerb(t *testing.T) {
	text, err := os.ReadFile("testdata/starts.txt")
	if err != nil {
		t.Fatal(err)
	}
	n, agree := 0, map[bool]int{}
	for line := range strings.Lines(string(text)) {
		verdict, start, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n++; startsWithVerb(start) == (verdict == "1") {
			agree[verdict == "1"]++
		}
	}
	if n != 310 || agree[true] < 120 || agree[false] < 174 {
		t.Errorf("agrees on %v of %d", agree, n)
	}
}

func TestVerbs(t *testing.T) {
	for text, want := range map[string]bool{
		"Write it down now.":         true,
		"Run!":                       false, // as the tagger has it
		"write it down":              true,
		"Consider this.":             true,
		"Let's go.":                  true,
		"To be.":                     false,
		"The cat.":                   false,
		"Zorbifying the cat is fun.": true, // by its end
		"Spring the trap":            true,
		"":                           false,
		"*":                          false,
	} {
		if got := startsWithVerb(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
