package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"exp/train/rollout"
)

// Stories is the task of word problems in the style of GSM8K: short stories about things, money, prices,
// distances and books, with rates, comparisons, fractions, percentages and sharing. Every number except
// percentages is an integer from 2 to LargestNumber.
//
//	prompt  Nora has 3 boxes with 14 beads in each. She gives half of them to Omar.
//	        How many beads does Nora have now?
//	target  Nora has 3*14=42 beads.
//	        Nora gives away 42/2=21 beads.
//	        That leaves 42-21=21 beads.
//	        #### 21
//
// Prompts have the form of published problems, without a final newline, so that a model trained here can be
// asked those. The answer is read as in Words. The arithmetic alone decides the split: no sequence of
// equations that solves a test problem solves a training problem, whatever the story.
type Stories struct {
	MinSteps, MaxSteps int // equations in a solution
	LargestNumber      int // of every value in a problem
}

// largestStoriesValue bounds LargestNumber to four digits.
const largestStoriesValue = 9999

type stories struct {
	cfg    Stories
	reward Reward
}

func newStories(cfg Stories, reward Reward) (*stories, error) {
	switch {
	case cfg.MinSteps < 1 || cfg.MinSteps > 6:
		return nil, &ConfigError{"task.stories.min_steps", fmt.Sprintf("%d is not between 1 and 6", cfg.MinSteps)}
	case cfg.MaxSteps < cfg.MinSteps || cfg.MaxSteps > 6:
		return nil, &ConfigError{"task.stories.max_steps",
			fmt.Sprintf("%d is not from task.stories.min_steps, %d, to 6", cfg.MaxSteps, cfg.MinSteps)}
	case cfg.LargestNumber < 20 || cfg.LargestNumber > largestStoriesValue:
		return nil, &ConfigError{"task.stories.largest_number", fmt.Sprintf("%d is not between 20 and %d",
			cfg.LargestNumber, largestStoriesValue)}
	}
	return &stories{cfg, reward}, nil
}

// Generate draws stories; every number of steps is equally likely.
func (t *stories) Generate(split Split, n int, seed uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	scarce := ScarceError{Kind: "stories", Split: split, Want: n,
		Hint: "raise task.stories.largest_number or max_steps, or ask for fewer"}
	steps := t.cfg.MinSteps
	return drawn(scarce, func(map[string]bool) (rollout.Problem, bool) {
		s := newStory(rng, t.cfg.LargestNumber)
		if !s.draw(steps) || splitOf("stories", s.key()) != split {
			return rollout.Problem{}, false
		}
		steps = t.cfg.MinSteps + rng.IntN(t.cfg.MaxSteps-t.cfg.MinSteps+1)
		return s.problem(), true
	})
}

// story is a problem under construction.
type story struct {
	rng     *rand.Rand
	largest int
	words   map[string]string // words of this story: {things}, {box} …
	cast    []person          // people yet to appear, after the main character

	plot      *plot
	last      *act     // the last move, which is not repeated immediately
	value     int      // current value of the plot's quantity
	sentences []string // of the prompt
	equations []string // 3*14=42
	solution  []string // sentences with the equations
}

// castSize is more than a six-step story needs.
const castSize = 8

func newStory(rng *rand.Rand, largest int) *story {
	s := &story{rng: rng, largest: largest, words: map[string]string{}}
	for _, i := range rng.Perm(len(storyPeople))[:castSize] {
		s.cast = append(s.cast, storyPeople[i])
	}
	s.words["things"] = pick(rng, storyThings)
	box := pick(rng, storyBoxes)
	s.words["box"], s.words["boxes"] = box.one, box.many
	goods := rng.Perm(len(storyGoods))
	for i, role := range []string{"good", "item"} {
		s.words[role], s.words[role+"s"] = storyGoods[goods[i]].one, storyGoods[goods[i]].many
	}
	colors := rng.Perm(len(storyColors))
	s.words["color"], s.words["tint"] = storyColors[colors[0]], storyColors[colors[1]]
	return s
}

// actTries is how often an act and its numbers are redrawn before a story is given up.
const actTries = 20

// draw tells a story with this many steps; false at a dead end.
func (s *story) draw(steps int) bool {
	for range actTries {
		s.plot = &plots[s.rng.IntN(len(plots))]
		if act := pick(s.rng, s.plot.openings); len(act.lines) <= steps && s.perform(act) {
			break
		}
	}
	if len(s.sentences) == 0 {
		return false
	}
	for tries := 0; len(s.equations) < steps; tries++ {
		if tries == actTries {
			return false
		}
		left := steps - len(s.equations)
		if act := pick(s.rng, s.plot.endings); len(act.lines) == left && s.rng.IntN(2) == 0 && s.perform(act) {
			return true
		}
		at := s.rng.IntN(len(s.plot.moves))
		if act := &s.plot.moves[at]; act != s.last && len(act.lines) <= left && s.perform(*act) {
			s.last = act
		}
	}
	s.say(pick(s.rng, s.plot.questions), &numbers{})
	return true
}

// perform draws numbers for an act and tells it; false if none fit.
func (s *story) perform(a act) bool {
	for range actTries {
		var n numbers
		s.drawNumbers(&n)
		results, ok := a.results(&n, s.largest)
		if !ok {
			continue
		}
		s.tell(a, &n, results)
		return true
	}
	return false
}

// numbers are the numbers of an act, by their letters in sentences and equations; 0: not used.
type numbers ['z' + 1]int

// drawNumbers draws one number per letter of n, which has none yet: a, b, c up to the largest number; k and m
// of one digit; n a bank note; p a percentage, taken by dividing by q.
func (s *story) drawNumbers(n *numbers) {
	n['v'] = s.value
	for _, letter := range []byte("abc") {
		n[letter] = 2 + s.rng.IntN(s.largest-1)
	}
	n['k'], n['m'] = 2+s.rng.IntN(8), 2+s.rng.IntN(8)
	n['n'] = pick(s.rng, []int{10, 20, 50, 100})
	n['p'] = pick(s.rng, []int{10, 20, 25, 50})
	n['q'] = 100 / n['p']
}

// results computes the equations of an act in turn; each result is x in the next. It returns false if a
// number is out of range or a division has a remainder.
func (a act) results(n *numbers, largest int) ([]int, bool) {
	if len(a.lines) == 0 {
		return nil, true
	}
	var all []int
	for _, l := range a.lines {
		left, op, right := l.operands(n)
		r := 0
		switch op {
		case '+':
			r = left + right
		case '-':
			r = left - right
		case '*':
			r = left * right
		case '/':
			if left%right != 0 {
				return nil, false
			}
			r = left / right
		}
		if r < 2 || max(r, left, right) > largest {
			return nil, false
		}
		all = append(all, r)
		n['x'] = r
	}
	return all, true
}

// operands returns the numbers of an equation such as v-a or k*12.
func (l line) operands(n *numbers) (left int, op byte, right int) {
	at := strings.IndexAny(l.equation, "+-*/")
	number := func(s string) int {
		if s[0] >= 'a' {
			return n[s[0]]
		}
		v, _ := strconv.Atoi(s)
		return v
	}
	return number(l.equation[:at]), l.equation[at], number(l.equation[at+1:])
}

// tell writes an act and its solution.
func (s *story) tell(a act, n *numbers, results []int) {
	s.say(pick(s.rng, a.tell), n)
	if len(a.lines) == 0 {
		s.value = n['a']
	}
	for i, l := range a.lines {
		if i > 0 {
			n['x'] = results[i-1]
		}
		left, op, right := l.operands(n)
		equation := fmt.Sprintf("%d%c%d=%d", left, op, right, results[i])
		s.equations = append(s.equations, equation)
		s.solution = append(s.solution, strings.ReplaceAll(s.fill(l.finds, n), "{=}", equation))
		s.value = results[i]
	}
	if a.on {
		s.cast = s.cast[1:]
	}
	if a.to != "" {
		s.plot = plotNamed(a.to)
	}
}

func (s *story) say(sentence string, n *numbers) {
	s.sentences = append(s.sentences, s.fill(sentence, n))
}

// fill inserts names, things and numbers into a sentence.
func (s *story) fill(sentence string, n *numbers) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(sentence, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		word, after, _ := strings.Cut(rest, "}")
		b.WriteString(s.word(word, n))
		sentence = after
	}
}

// word expands the word in braces; {=} stays, for the equation.
func (s *story) word(word string, n *numbers) string {
	switch word {
	case "name":
		return s.cast[0].name
	case "They":
		return s.cast[0].pronoun
	case "they":
		return strings.ToLower(s.cast[0].pronoun)
	case "friend":
		return s.cast[1].name
	}
	if v, ok := s.words[word]; ok {
		return v
	}
	if len(word) == 1 && word[0] <= 'z' && n[word[0]] != 0 {
		return strconv.Itoa(n[word[0]])
	}
	return "{" + word + "}"
}

// key is the arithmetic, as in 3*14,42/2.
func (s *story) key() string {
	left := make([]string, len(s.equations))
	for i, e := range s.equations {
		left[i], _, _ = strings.Cut(e, "=")
	}
	return strings.Join(left, ",")
}

func (s *story) problem() rollout.Problem {
	answer := strconv.Itoa(s.value)
	prompt := strings.Join(s.sentences, " ")
	sum := sha256.Sum256([]byte(prompt))
	return rollout.Problem{
		ID:     s.key() + "#" + hex.EncodeToString(sum[:6]),
		Prompt: prompt,
		Answer: answer,
		Target: strings.Join(s.solution, "\n") + "\n#### " + answer,
	}
}

func (t *stories) check(p *rollout.Problem) error { return checkInteger(p) }

// Grade grades as Words does: by the integer after the last "####" that starts a line.
func (t *stories) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return t.reward.markedInteger(p.Answer, c.Text), nil
}
