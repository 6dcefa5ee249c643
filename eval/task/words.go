package task

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"exp/train/rollout"
)

// Words is the task of short arithmetic word problems made from templates. All numbers are integers ≥ 0.
//
//	prompt  Tom has 5 pens. He buys 3. He puts them in 2 equal bags and keeps one. How many pens?
//	target  5+3=8
//	        8/2=4
//	        #### 4
//
// The prompt ends with a newline. The answer is the integer after the last "####" that starts a line. The
// arithmetic alone decides the split: no sequence of numbers and operations in a test problem occurs in
// training, whatever the names.
type Words struct {
	LargestNumber int // bound on the first number and on the numbers added or subtracted
	Steps         int // operations per problem, 1 to 4
}

// largestWordsValue bounds every value in a problem to three digits, which a small model can still compute.
const largestWordsValue = 999

type words struct {
	cfg    Words
	reward Reward
}

func newWords(cfg Words, reward Reward) (*words, error) {
	switch {
	case cfg.Steps < 1 || cfg.Steps > 4:
		return nil, &ConfigError{"task.words.steps", fmt.Sprintf("%d is not between 1 and 4", cfg.Steps)}
	case cfg.LargestNumber < 5 || cfg.LargestNumber > largestWordsValue:
		return nil, &ConfigError{"task.words.largest_number", fmt.Sprintf("%d is not between 5 and %d",
			cfg.LargestNumber, largestWordsValue)}
	}
	return &words{cfg, reward}, nil
}

// Alphabet has the characters of templates, names and things.
func (t *words) Alphabet() string {
	var b strings.Builder
	b.WriteString("0123456789+-*/=#\n")
	for _, p := range people {
		b.WriteString(p.name + p.pronoun)
	}
	for _, s := range slices.Concat(things, openings, questions) {
		b.WriteString(s)
	}
	for _, op := range wordsOps {
		for _, s := range op.sentences {
			b.WriteString(s)
		}
	}
	runes := []rune(strings.NewReplacer("{", "", "}", "").Replace(b.String()))
	slices.Sort(runes)
	return string(slices.Compact(runes))
}

// Generate draws a chain of operations, then words for it.
func (t *words) Generate(split Split, n int, seed uint64) ([]rollout.Problem, error) {
	if err := split.check(n); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	scarce := ScarceError{Kind: "words", Split: split, Want: n,
		Hint: "raise task.words.largest_number or steps, or ask for fewer"}
	return drawn(scarce, func(map[string]bool) (rollout.Problem, bool) {
		c := drawChain(rng, t.cfg)
		p := c.problem(rng)
		return p, splitOf("words", c.key()) == split
	})
}

// chain is the arithmetic of a problem: start, then its operations in order.
type chain struct {
	start int
	links []link
}

type link struct {
	op       byte // + - * /
	operand  int
	from, to int // value before and after
}

// drawChain draws operations, each equally likely among the ones that keep the value an integer from 0 to
// largestWordsValue.
func drawChain(rng *rand.Rand, cfg Words) chain {
	c := chain{start: 2 + rng.IntN(cfg.LargestNumber-1)}
	value := c.start
	for range cfg.Steps {
		var choices []link
		for _, op := range []byte("+-*/") {
			if l, ok := drawLink(rng, op, value, cfg.LargestNumber); ok {
				choices = append(choices, l)
			}
		}
		l := choices[rng.IntN(len(choices))]
		c.links = append(c.links, l)
		value = l.to
	}
	return c
}

// drawLink draws an operand; ok is false if the operation is impossible.
func drawLink(rng *rand.Rand, op byte, value, largest int) (l link, ok bool) {
	l = link{op: op, from: value}
	switch op {
	case '+':
		l.operand = 1 + rng.IntN(largest)
		l.to = value + l.operand
	case '-':
		l.operand = 1 + rng.IntN(largest)
		l.to = value - l.operand
	case '*':
		l.operand = 2 + rng.IntN(4)
		if value == 0 {
			return l, false
		}
		l.to = value * l.operand
	case '/':
		l.operand = 2 + rng.IntN(4)
		if value == 0 || value%l.operand != 0 {
			return l, false
		}
		l.to = value / l.operand
	}
	return l, 0 <= l.to && l.to <= largestWordsValue
}

// key writes the chain, as in 5+3/2.
func (c chain) key() string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(c.start))
	for _, l := range c.links {
		b.WriteByte(l.op)
		b.WriteString(strconv.Itoa(l.operand))
	}
	return b.String()
}

// problem puts the chain into words.
func (c chain) problem(rng *rand.Rand) rollout.Problem {
	who, thing := pick(rng, people), pick(rng, things)
	fill := func(sentence string, n int) string {
		return strings.NewReplacer(
			"{name}", who.name,
			"{They}", who.pronoun,
			"{things}", thing,
			"{n}", strconv.Itoa(n),
		).Replace(sentence)
	}
	sentences := []string{fill(pick(rng, openings), c.start)}
	var target strings.Builder
	for _, l := range c.links {
		sentences = append(sentences, fill(pick(rng, wordsOps[opIndex(l.op)].sentences), l.operand))
		fmt.Fprintf(&target, "%d%c%d=%d\n", l.from, l.op, l.operand, l.to)
	}
	sentences = append(sentences, fill(pick(rng, questions), 0))
	answer := strconv.Itoa(c.links[len(c.links)-1].to)
	prompt := strings.Join(sentences, " ") + "\n"

	sum := sha256.Sum256([]byte(prompt))
	return rollout.Problem{
		ID:     c.key() + "#" + hex.EncodeToString(sum[:6]),
		Prompt: prompt,
		Answer: answer,
		Target: target.String() + "#### " + answer,
	}
}

func opIndex(op byte) int {
	return slices.IndexFunc(wordsOps, func(o wordsOp) bool { return o.op == op })
}

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

func (t *words) check(p *rollout.Problem) error { return checkInteger(p) }

// checkInteger rejects an answer that is not an integer in canonical form.
func checkInteger(p *rollout.Problem) error {
	if want, ok := canonicalInteger(p.Answer); !ok || want != p.Answer {
		return fmt.Errorf("the answer %q is not an integer", clip(p.Answer))
	}
	return nil
}

// Grade compares the problem's answer with the integer after the last "####" that starts a line. Nothing
// else may follow on that line.
func (t *words) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	return t.reward.markedInteger(p.Answer, c.Text), nil
}

// markedInteger judges a text by the integer after the last "####" that starts a line.
func (r Reward) markedInteger(want, text string) rollout.Verdict {
	at := strings.LastIndex("\n"+text, "\n####")
	if at < 0 {
		return r.verdict(false, "", "no line with ####")
	}
	line, _, _ := strings.Cut(text[at+len("####"):], "\n")
	answer, ok := canonicalInteger(strings.TrimSpace(line))
	switch {
	case !ok:
		return r.verdict(false, "", "no integer after ####")
	case answer != want:
		return r.verdict(false, answer, fmt.Sprintf("%s, not %s", clip(answer), clip(want)))
	}
	return r.verdict(true, answer, "correct")
}

// canonicalInteger returns s, an optional minus and up to 18 digits, without leading zeros.
func canonicalInteger(s string) (string, bool) {
	const digits = 18 // always fits an int64
	if len(s) > 1+digits || strings.HasPrefix(s, "+") {
		return "", false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return "", false
	}
	return itoa(n), true
}
