package reward

import (
	"fmt"
	"math"
	"strings"

	"exp/train/rollout"
	"exp/train/tokenizer"
)

// Steps says how a process reward model reads an answer: step by step, with a separator behind each. A step's score at
// the separator's last token is the logit that it is right.
type Steps struct {
	Score     string // of rollout.StepScores: the answer's score is this of σ(score of step)
	Split     string // separates the steps in an answer
	Separator string // what the model reads behind each
	Marks     bool   // in one text, with Split behind it: the score is at each token that is the separator's last
	// Piece returns the bytes of a token of the completions. With it, Score.Steps says where steps end; nil: nothing
	// does.
	Piece func(id int32) []byte
}

// of cuts an answer into its steps, and says where each ends, behind its separator. Steps of white space alone are
// left out; an answer without others is one step.
func (s *Steps) of(answer string) (list []string, ends []int) {
	end := 0
	for step := range strings.SplitAfterSeq(answer, s.Split) {
		end += len(step)
		if step = strings.TrimSuffix(step, s.Split); strings.TrimSpace(step) != "" {
			list, ends = append(list, step), append(ends, end)
		}
	}
	if list == nil {
		return []string{answer}, []int{len(answer)}
	}
	return list, ends
}

// places returns where the steps of a completion end in its tokens, given where they end in its text: behind the token
// with their last byte. The last step takes all that is left.
func (s *Steps) places(c *rollout.Completion, ends []int) []int {
	list := make([]int, len(ends))
	at, token := 0, 0
	for k, end := range ends {
		for ; token < len(c.Tokens) && at < end; token++ {
			at += len(s.Piece(c.Tokens[token]))
		}
		list[k] = token
	}
	list[len(list)-1] = len(c.Tokens)
	return list
}

// scored returns the score of a completion in steps, given the scores of its steps.
func (s *Steps) scored(c *rollout.Completion, scores []float32) Score {
	right := make([]float64, len(scores))
	for k, z := range scores {
		right[k] = 1 / (1 + math.Exp(-float64(z)))
	}
	x := Score{Graded: true, Value: s.score(right)}
	if s.Piece == nil {
		return x
	}
	_, ends := s.of(c.Text)
	for k, end := range s.places(c, ends) {
		x.Steps = append(x.Steps, rollout.Step{End: end, Right: right[k]})
	}
	return x
}

// score returns the score of an answer whose steps are right with these probabilities, at least one.
func (s *Steps) score(right []float64) float64 {
	least, product, sum, last := 1.0, 1.0, 0.0, 0.0
	for _, last = range right {
		least, product, sum = min(least, last), product*last, sum+last
	}
	switch s.Score {
	case rollout.StepsMin:
		return least
	case rollout.StepsProduct:
		return product
	case rollout.StepsLast:
		return last
	case rollout.StepsMean:
		return sum / float64(len(right))
	}
	panic("reward: unknown score of steps " + s.Score)
}

// text is what a reward model reads of an answer: its tokens, and the places of those whose states are scored, rising.
type text struct {
	ids  []int32
	ends []int
}

// encodeSteps returns what the model reads of an answer in steps.
func (r *Model) encodeSteps(it rollout.Item) (x text, err error) {
	s := r.opt.Steps
	steps, _ := s.of(it.Completion.Text)
	if r.opt.ReadSteps != nil {
		x.ids, x.ends, err = r.opt.ReadSteps(it.Problem, steps)
		return x, err
	}
	before, _, _ := strings.Cut(r.opt.Text, "{response}")
	before = strings.ReplaceAll(before, "{prompt}", Concatenation(it.Problem))
	if s.Marks {
		return r.encodeMarked(before, steps)
	}
	asked, err := r.encodeText(before)
	if err == nil {
		x.ids, x.ends, err = tokenizer.Steps(r.tok, asked, steps, s.Separator)
	}
	return x, err
}

// encodeMarked returns the ids of a text in which the separator follows every step, and Split every separator but the
// last, and the places of the separators' last tokens, as Math-Shepherd's code has it (arXiv:2312.08935).
func (r *Model) encodeMarked(before string, steps []string) (x text, err error) {
	s := r.opt.Steps
	mark, err := r.tok.Encode(s.Separator, tokenizer.Options{})
	if err != nil {
		return x, err
	}
	if x.ids, err = r.encodeText(before + strings.Join(steps, s.Separator+s.Split) + s.Separator); err != nil {
		return x, err
	}
	for i, id := range x.ids {
		if len(mark) > 0 && id == mark[len(mark)-1] {
			x.ends = append(x.ends, i)
		}
	}
	if len(x.ends) != len(steps) {
		return x, fmt.Errorf("its text has the separator's last token %d times, not once for each of %d steps",
			len(x.ends), len(steps))
	}
	return x, nil
}
