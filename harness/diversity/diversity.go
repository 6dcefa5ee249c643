// Package diversity measures with a language model in how many ways a policy solves a problem: the judged
// diversity of FlowRL (arXiv:2509.15207, figure 4 and its appendix on the judge). The judge reads the completions of
// one problem together and gives a score from 1, nearly all alike, to 5.
//
// The published code shows the judge 300 characters of each completion and counts a failed request as 3. Here
// it reads whole completions unless a limit is set, their order is drawn for each pass so that it favours
// nobody, failures are left out and counted, and two passes show how far the judge agrees with itself.
package diversity

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"exp/train/reward"
	"exp/train/rollout"
)

// Template is the default message to the judge. {prompt} stands for the problem, {responses} for its completions,
// {n} for their number, and {rubric} for the scores.
//
//go:embed judge.txt
var Template string

// MinResponses is the smallest number of completions that the five scores can tell apart.
const MinResponses = 5

// Problem is a problem with the completions to compare.
type Problem struct {
	ID, Prompt string
	Responses  []string
}

// Judge says which server judges.
type Judge = reward.JudgeOptions

// Options say how the judge is asked.
type Options struct {
	Judge    Judge  // Rate sets its Template, Pattern, Low and High
	Template string // of the message, such as Template
	Passes   int    // how often each problem is judged
	Excerpt  int    // characters of a completion that the judge reads; 0: all
	Seed     uint64 // of the order of completions
}

// Pass is one judgement of a problem.
type Pass struct {
	Score  float64 // 1 to 5; 0 if it failed
	Reason string  // why it failed
}

// CheckTemplate returns an error unless a template asks about the completions.
func CheckTemplate(t string) error {
	if !strings.Contains(t, "{responses}") {
		return fmt.Errorf("the template has no {responses}, where the completions go; {prompt}, {n} and {rubric} " +
			"are filled in, too")
	}
	return nil
}

// Digest names a template in results.
func Digest(template string) string {
	d := sha256.Sum256([]byte(template))
	return hex.EncodeToString(d[:8])
}

// score finds the last number of an answer, if it is a digit from 1 to 5: "4", "Score: 4." or "4/5".
var score = regexp.MustCompile(`(?s)(?:^|[^0-9.])([1-5])(?:\.0+)?(?:\s*(?:/|out of)\s*5)?[^0-9]*$`)

// Rate judges problems. It returns the passes of each. judged is called with the number of judgements so far.
// It returns an error if the judge cannot be asked at all.
func Rate(ctx context.Context, problems []Problem, o Options, judged func(n int)) ([][]Pass, error) {
	out := make([][]Pass, len(problems))
	done := 0
	byN := map[int][]int{} // problems with so many completions, whose rubric is the same
	for i, p := range problems {
		byN[len(p.Responses)] = append(byN[len(p.Responses)], i)
	}
	for _, n := range slices.Sorted(maps.Keys(byN)) {
		j, members := o.judge(n), byN[n]
		for pass := range o.Passes {
			for at := 0; at < len(members); at += batch {
				part := members[at:min(at+batch, len(members))]
				items := make([]rollout.Item, len(part))
				for k, i := range part {
					items[k] = o.item(problems[i], pass)
				}
				scores, err := j.Score(ctx, items)
				if err != nil {
					return nil, err
				}
				for k, i := range part {
					out[i] = append(out[i], Pass{scores[k].Value, scores[k].Reason})
				}
				done += len(part)
				judged(done)
			}
		}
	}
	return out, nil
}

// batch is how many problems are handed to the judge together, so that progress can be told.
const batch = 16

// judge asks about n completions of a problem.
func (o Options) judge(n int) *reward.Judge {
	c, low, high := o.Judge, least, most
	c.Pattern, c.Wanted, c.Low, c.High = score, "score from 1 to 5 at the end", &low, &high
	c.Template = o.message(n)
	return reward.NewJudge(c)
}

// message is the judge's template for n completions.
func (o Options) message(n int) string {
	return strings.NewReplacer("{n}", strconv.Itoa(n), "{rubric}", rubric(n), "{responses}",
		"{response}").Replace(o.Template)
}

// item has the completions of a problem in an order of this pass as its response.
func (o Options) item(p Problem, pass int) rollout.Item {
	seed := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", o.Seed, pass, p.ID))
	order := rand.New(rand.NewChaCha8(seed)).Perm(len(p.Responses))
	var b strings.Builder
	for i, at := range order {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "[Response %d]\n%s", i+1, excerpt(p.Responses[at], o.Excerpt))
	}
	return rollout.Item{Problem: &rollout.Problem{ID: p.ID, Prompt: p.Prompt},
		Completion: &rollout.Completion{Text: b.String()}}
}

// Message returns what the judge is asked about a problem in the first pass.
func (o Options) Message(p Problem) string {
	return strings.NewReplacer("{prompt}", p.Prompt, "{response}", o.item(p, 0).Completion.Text).Replace(
		o.message(len(p.Responses)))
}

// FirstFailure says why the first failed judgement failed; empty if none did.
func FirstFailure(rated [][][]Pass) string {
	for _, run := range rated {
		for _, problem := range run {
			for _, pass := range problem {
				if pass.Score == 0 {
					return pass.Reason
				}
			}
		}
	}
	return ""
}

// excerpt returns the first characters of a text, and says so if it is longer.
func excerpt(s string, limit int) string {
	r := []rune(s)
	if limit == 0 || len(r) <= limit {
		return s
	}
	return string(r[:limit]) + " […]"
}

// rubric describes the scores of n completions. It scales the bounds of the paper, which has 16.
func rubric(n int) string {
	at := func(of16 int) int { return (of16*n + 15) / 16 }
	from := []int{at(14), at(11), at(7), at(4), 0}
	others := []string{"", ", with one or two other approaches", ", with two or three others",
		", with three or four others", ", with four or more others"}
	names := []string{"hardly any diversity", "little diversity", "moderate diversity", "much diversity",
		"great diversity"}
	var b strings.Builder
	most := n
	for i, lo := range from {
		count := fmt.Sprintf("%d to %d", lo, most)
		switch {
		case lo == most:
			count = strconv.Itoa(lo)
		case i == 0:
			count = fmt.Sprintf("at least %d", lo)
		case lo == 0:
			count = fmt.Sprintf("at most %d", most)
		}
		fmt.Fprintf(&b, "%d: %s. %s of the %d share the main approach%s.\n", i+1, names[i], count, n, others[i])
		most = lo - 1
	}
	return strings.TrimSpace(b.String())
}
