package task

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"exp/train/rollout"
)

func newTestStories(t *testing.T, low, high, largest int) *stories {
	t.Helper()
	s, err := newStories(Stories{MinSteps: low, MaxSteps: high, LargestNumber: largest}, testReward)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var equation = regexp.MustCompile(`([0-9]+[-+*/][0-9]+)=([0-9]+)`)

// Every line of a solution has one equation, which is right; the last result is the
// answer; numbers lie between 2 and the largest; no word is left open.
func TestStoriesGenerate(t *testing.T) {
	for _, tt := range []struct{ low, high, largest int }{{1, 1, 20}, {2, 4, 100}, {5, 6, 999}} {
		t.Run(strconv.Itoa(tt.largest), func(t *testing.T) {
			task := newTestStories(t, tt.low, tt.high, tt.largest)
			problems, err := task.Generate(Train, 600, 3)
			if err != nil {
				t.Fatal(err)
			}
			bySteps := map[int]int{}
			for _, p := range problems {
				if v := gradeText(t, task, p, p.Target); !v.Correct || v.Answer != p.Answer {
					t.Fatalf("%s: target %q gets %+v", p.ID, p.Target, v)
				}
				checkAlphabet(t, task, p)
				bySteps[checkSolution(t, p, tt.largest)]++
				if strings.ContainsAny(p.Prompt+p.Target, "{}") || !strings.HasSuffix(p.Prompt, "?") {
					t.Fatalf("%s: prompt %q, target %q", p.ID, p.Prompt, p.Target)
				}
			}
			for n := tt.low; n <= tt.high; n++ {
				if got, want := bySteps[n], len(problems)/(tt.high-tt.low+1); got < want*2/3 || got > want*4/3 {
					t.Errorf("%d of %d problems have %d steps, want about %d", got, len(problems), n, want)
				}
			}
		})
	}
}

// checkSolution checks the equations of a target and returns how many there are.
func checkSolution(t *testing.T, p rollout.Problem, largest int) int {
	t.Helper()
	lines := strings.Split(p.Target, "\n")
	steps, value := lines[:len(lines)-1], ""
	for _, line := range steps {
		found := equation.FindAllStringSubmatch(line, -1)
		if len(found) != 1 {
			t.Fatalf("%s: %q has %d equations, want 1", p.ID, line, len(found))
		}
		e, err := parse(found[0][1])
		if err != nil {
			t.Fatalf("%s: %q: %v", p.ID, line, err)
		}
		n, ok := e.evaluate().integer()
		if value = found[0][2]; !ok || itoa(n) != value {
			t.Fatalf("%s: the step %q is wrong", p.ID, line)
		}
		for _, number := range append(e.numbers(nil), n) {
			if number < 2 || number > int64(largest) {
				t.Fatalf("%s: %d in %q is not from 2 to %d", p.ID, number, line, largest)
			}
		}
	}
	if value != p.Answer {
		t.Fatalf("%s: the steps end in %s, the answer is %s", p.ID, value, p.Answer)
	}
	return len(steps)
}

// Each act of each plot, told by itself: its equations are over the letters that its
// sentences have, so that a reader can solve it.
func TestStoryActsTellTheirNumbers(t *testing.T) {
	letters := regexp.MustCompile(`[abckmnpq]`)
	for _, p := range plots {
		for _, a := range slices.Concat(p.openings, p.moves, p.endings) {
			for _, l := range a.lines {
				for _, letter := range letters.FindAllString(l.equation, -1) {
					if letter == "q" {
						letter = "p" // q is 100/p
					}
					for _, tell := range a.tell {
						if !strings.Contains(tell, "{"+letter+"}") {
							t.Errorf("%s: %q does not say %s of %s", p.name, tell, letter, l.equation)
						}
					}
				}
				if strings.Count(l.finds, "{=}") != 1 {
					t.Errorf("%s: %q has no place for %s", p.name, l.finds, l.equation)
				}
			}
		}
		if len(p.endings) == 0 || len(p.questions) == 0 {
			t.Errorf("%s never asks", p.name)
		}
	}
}

// x is the result before, v the value before the act.
func TestActResults(t *testing.T) {
	a := act{lines: []line{{"v/k", "{=}"}, {"v-x", "{=}"}, {"x*12", "{=}"}}}
	// 10/5 = 2, 10-2 = 8, 8*12 = 96
	if got, ok := a.results(&numbers{'v': 10, 'k': 5}, 100); !ok || !slices.Equal(got, []int{2, 8, 96}) {
		t.Errorf("got %v, %v", got, ok)
	}
	for name, n := range map[string]numbers{
		"a remainder":     {'v': 10, 'k': 3},
		"nothing is left": {'v': 2, 'k': 1},
		"too large":       {'v': 20, 'k': 5},
	} {
		if got, ok := a.results(&n, 100); ok {
			t.Errorf("%s: got %v, want a refusal", name, got)
		}
	}
}

// A person is compared with the one before, never with one whose number was told.
func TestStoryGoesOnWithTheFriend(t *testing.T) {
	s := newStory(rand.New(rand.NewPCG(1, 0)), 100)
	first, second, third := s.cast[0].name, s.cast[1].name, s.cast[2].name
	s.plot = plotNamed("things")
	a := act{on: true, tell: []string{"{friend} has {k} more than {name}."}, lines: []line{{"v+k", "{friend} has {=}."}}}
	s.value = 3
	n := &numbers{'v': 3, 'k': 2}
	r, _ := a.results(n, 100)
	s.tell(a, n, r)
	s.say("{friend}, {name}", &numbers{})
	want := []string{second + " has 2 more than " + first + ".", third + ", " + second}
	if !slices.Equal(s.sentences, want) || s.solution[0] != second+" has 3+2=5." || s.value != 5 {
		t.Errorf("got %q, %q, %d; want %q", s.sentences, s.solution, s.value, want)
	}
}

// The sentences as they read; a change here changes every data set.
func TestStoriesGolden(t *testing.T) {
	problems, err := newTestStories(t, 2, 5, 100).Generate(Test, 16, 1)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "stories", problems)
}

func TestStoriesConfig(t *testing.T) {
	for _, cfg := range []Stories{{0, 3, 100}, {3, 2, 100}, {2, 7, 100}, {2, 4, 19}, {2, 4, 10000}} {
		if _, err := newStories(cfg, testReward); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}
