package grade

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// tally counts verdicts of one kind of pairs.
type tally struct{ pairs, right, negatives, accepted int }

func (n *tally) add(correct, want bool) {
	n.pairs++
	if correct == want {
		n.right++
	}
	if !want {
		n.negatives++
		if correct {
			n.accepted++
		}
	}
}

func logTallies(t *testing.T, kinds map[string]*tally) (all tally) {
	t.Helper()
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		n := kinds[k]
		t.Logf("%-36s %4d of %4d right, %3d of %3d negatives accepted", k, n.right, n.pairs, n.accepted, n.negatives)
		all.pairs += n.pairs
		all.right += n.right
		all.negatives += n.negatives
		all.accepted += n.accepted
	}
	t.Logf("%d of %d right, %d of %d negatives accepted", all.right, all.pairs, all.accepted, all.negatives)
	return all
}

// TestAdversarialPairs: nearly all core pairs of the shared file get their label, and no wrong answer is accepted.
// Conventions are only logged.
func TestAdversarialPairs(t *testing.T) {
	kinds := map[string]*tally{}
	s := bufio.NewScanner(dataFile(t, "math_grading_adversarial.jsonl"))
	for s.Scan() {
		var r labelled
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		v := r.grade()
		if !slices.Contains(r.Tags, "core") {
			if v.Correct != r.Expected {
				t.Logf("%s: by convention %v: gold %q, %q: %+v", r.Tags[2], r.Expected, r.Gold, r.Prediction, v)
			}
			continue
		}
		if v.Correct != r.Expected {
			t.Logf("%s: want %v: gold %q, %q: %+v", r.Tags[1], r.Expected, r.Gold, r.Prediction, v)
		}
		kind := r.Tags[1]
		if kinds[kind] == nil {
			kinds[kind] = &tally{}
		}
		kinds[kind].add(v.Correct, r.Expected)
	}
	if all := logTallies(t, kinds); all.accepted > 0 || (all.pairs-all.right)*100 > all.pairs {
		t.Errorf("%d of %d negatives accepted, %d of %d right", all.accepted, all.negatives, all.right, all.pairs)
	}
}

// TestAdversarialCases: our own pairs and responses all get their label.
func TestAdversarialCases(t *testing.T) {
	for _, file := range []struct {
		name  string
		judge func(gold, answer string) Verdict
	}{{"adversarial.txt", Answer}, {"adversarialresponses.txt", Response},
		{"responses.txt", Response}} {
		data, err := os.ReadFile("testdata/" + file.name)
		if err != nil {
			t.Fatal(err)
		}
		kinds, kind := map[string]*tally{}, ""
		for i, line := range strings.Split(string(data), "\n") {
			if name, ok := strings.CutPrefix(line, "## "); ok {
				kind, kinds[name] = name, &tally{}
				continue
			}
			if line == "" || strings.HasPrefix(line, "# ") {
				continue
			}
			gold, answer, want := strings.Cut(line, " ~~ ")
			if !want {
				var marked bool
				if gold, answer, marked = strings.Cut(line, " !~ "); !marked {
					t.Fatalf("%s:%d: neither ~~ nor !~: %q", file.name, i+1, line)
				}
			}
			v := file.judge(gold, strings.ReplaceAll(answer, "⏎", "\n"))
			if v.Correct != want {
				t.Errorf("%s:%d: want %v: gold %q, %q: %+v", file.name, i+1, want, gold, answer, v)
			}
			kinds[kind].add(v.Correct, want)
		}
		logTallies(t, kinds)
	}
}
