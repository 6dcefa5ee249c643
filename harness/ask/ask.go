// Package ask writes the prompts of benchmarks: a problem within a text, with or without its options, after a
// description and solved problems as examples (few-shot). It knows no tokens and no models.
package ask

import (
	"fmt"
	"slices"
	"strings"

	"exp/eval"
	"exp/eval/suite"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train/rollout"
)

// Render returns problems with the prompts that a model sees. examples may be nil. An error names the problem that
// cannot be asked so.
func Render(problems []rollout.Problem, a suite.Asking, examples *Examples) ([]rollout.Problem, error) {
	if err := checkOptions(problems, a.Likelihood); err != nil {
		return nil, err
	}
	r := renderer{a, examples}
	out := make([]rollout.Problem, len(problems))
	for i := range problems {
		var err error
		if out[i], err = r.render(&problems[i]); err != nil {
			return nil, fmt.Errorf("problem %s: %w", problems[i].ID, err)
		}
	}
	return out, nil
}

// checkOptions returns an error unless likelihoods of the problems' options can be compared as asked.
func checkOptions(problems []rollout.Problem, likelihood string) error {
	if likelihood == "" {
		return nil
	}
	for i := range problems {
		p := &problems[i]
		switch {
		case p.Choice == nil:
			return fmt.Errorf("problem %s has no options whose likelihoods could be compared; leave the suite out or "+
				"sample its answers (eval.final.likelihood: off). If its file has options, add it again: exp suite "+
				"add NAME FILE reads them, which earlier versions did not keep", p.ID)
		case likelihood == eval.ByOption:
			if k := imageAmong(p); k >= 0 {
				return fmt.Errorf("option %s of problem %s is an image, and eval.final.likelihood: option compares "+
					"texts; letter compares the letters of options", rollout.Letter(k), p.ID)
			}
		case likelihood == eval.ByBlank:
			if err := checkBlank(p); err != nil {
				return fmt.Errorf("problem %s %w, and eval.final.likelihood: blank puts the options there; option "+
					"and letter compare options of other questions", p.ID, err)
			}
		}
	}
	return nil
}

// imageAmong returns the first option of a problem that shows an image; -1 if none does.
func imageAmong(p *rollout.Problem) int {
	if len(p.Images) == 0 {
		return -1
	}
	marks := rollout.Marks(p.Images)
	return slices.IndexFunc(p.Choice.Options, func(s string) bool {
		return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(s, m) })
	})
}

// renderer writes the prompts of a suite.
type renderer struct {
	asking suite.Asking
	shots  *Examples // nil: none
}

// around returns a text within the asking's prompt.
func (r *renderer) around(text string) string {
	return strings.Replace(r.asking.Prompt, config.ProblemMark, text, 1)
}

// shown returns a problem as it is shown, without its options if their texts are compared, and up to its blank if what
// follows is compared. Its last images may be theirs.
func (r *renderer) shown(p *rollout.Problem) (rollout.Problem, error) {
	q := *p
	switch r.asking.Likelihood {
	case eval.ByBlank:
		q.Prompt, _ = cutBlank(p.Choice.Question)
		return q, nil
	case eval.ByOption:
	default:
		return q, nil
	}
	q.Prompt = p.Choice.Question
	if len(p.Images) == 0 {
		return q, nil
	}
	marks := rollout.Marks(p.Images)
	parts, found := rollout.MarkedParts(q.Prompt, marks...)
	n, own := len(found), lastShown(p.Messages)
	if n > len(p.Images) || own < 0 {
		return q, fmt.Errorf("its question has %d %s, and the problem %d images", n, strings.Join(marks, " or "),
			len(p.Images))
	}
	q.Messages, q.Images = slices.Clone(p.Messages), p.Images[:n]
	q.Messages[own].Content, q.Messages[own].Parts = "", rollout.PartList(parts)
	return q, nil
}

// lastShown returns the number of the last message that shows images; -1 if none does.
func lastShown(messages []rollout.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Images() > 0 {
			return i
		}
	}
	return -1
}

// render returns a problem with its prompt: the description, the examples and the problem, with empty lines between.
// In messages the examples are turns, and the description begins the first of the user.
func (r *renderer) render(p *rollout.Problem) (rollout.Problem, error) {
	out, err := r.shown(p)
	if err != nil {
		return out, err
	}
	description, err := r.description(p)
	if err != nil {
		return out, err
	}
	var examples []rollout.Problem
	if r.shots != nil {
		if examples, err = r.shots.of(p); err != nil {
			return out, err
		}
	}
	before, after, _ := strings.Cut(r.asking.Prompt, config.ProblemMark)
	var plain strings.Builder
	var turns []rollout.Message
	var images []rollout.Picture
	plain.WriteString(description)
	for i := range examples {
		x, err := r.shown(&examples[i])
		if err != nil {
			return out, fmt.Errorf("its example %s: %w", x.ID, err)
		}
		if r.asking.Likelihood == eval.ByBlank {
			x.Prompt += x.Choice.Options[x.Choice.Right]
		}
		question, answer := r.around(x.Prompt), r.answer(&x)
		plain.WriteString(question + prompt.Between(question) + answer + "\n\n")
		turn := rollout.Message{Role: "user", Content: question}
		if len(x.Images) > 0 {
			turn, images = x.Messages[0].Between(before, after), append(images, x.Images...)
		}
		turns = append(turns, turn, rollout.Message{Role: "assistant", Content: answer})
	}
	if len(turns) > 0 {
		if turns[0].Parts != nil {
			turns[0] = turns[0].Between(description, "")
		} else {
			turns[0].Content = description + turns[0].Content
		}
		if len(out.Messages) == 0 {
			out.Messages = []rollout.Message{{Role: "user", Content: out.Prompt}}
		}
	} else {
		before = description + before
	}
	if out.Messages = around(out.Messages, before, after); len(turns) > 0 {
		own := slices.IndexFunc(out.Messages, func(m rollout.Message) bool {
			return m.Role != "system" && m.Role != "developer"
		})
		out.Messages = slices.Insert(slices.Clone(out.Messages), max(0, own), turns...)
	}
	out.Prompt, out.Images = plain.String()+r.around(out.Prompt), slices.Concat(images, out.Images)
	return out, nil
}

// description returns the text before the examples, with an empty line.
func (r *renderer) description(p *rollout.Problem) (string, error) {
	text := r.asking.Description
	if text == "" {
		return "", nil
	}
	if strings.Contains(text, config.SourceMark) {
		source := p.DataSource("")
		if source == "" {
			return "", fmt.Errorf("eval.final.description has %s, and the problem names no source; its file needs a "+
				"column for it (exp suite add --help: layout.source)", config.SourceMark)
		}
		text = strings.ReplaceAll(text, config.SourceMark, strings.ReplaceAll(source, "_", " "))
	}
	return text + "\n\n", nil
}

// answer returns the answer of an example in the form that the problem's has: the letter or the text of the right
// option, or else the worked solution, or without one the gold answer.
func (r *renderer) answer(p *rollout.Problem) string {
	switch {
	case r.asking.Likelihood == eval.ByLetter:
		return rollout.Letter(p.Choice.Right)
	case r.asking.Likelihood == eval.ByOption:
		return p.Choice.Options[p.Choice.Right]
	case r.asking.Likelihood == eval.ByBlank:
		_, after := cutBlank(p.Choice.Question)
		return after
	case p.Target != "":
		return strings.TrimSpace(p.Target)
	}
	return p.Answer
}

// Examples chooses the examples of problems among the problems of a suite.
type Examples struct {
	name     string // of their suite
	n        int    // for each problem
	all      []rollout.Problem
	bySource map[string][]rollout.Problem
}

// NewExamples takes examples from the problems of a suite with that name. It returns an error if an example cannot be
// shown as asked.
func NewExamples(name string, list []rollout.Problem, a suite.Asking) (*Examples, error) {
	s := &Examples{name: name, n: a.Shots, all: list, bySource: map[string][]rollout.Problem{}}
	bad := func(p *rollout.Problem, what string) error {
		return fmt.Errorf("eval.final.shots_suite: problem %s of %s %s, so it cannot be an example; choose another "+
			"suite", p.ID, name, what)
	}
	for i := range list {
		switch p := &list[i]; {
		case a.Likelihood != "" && (p.Choice == nil || p.Choice.Right < 0):
			return nil, bad(p, "has no options, or no right one")
		case a.Likelihood == eval.ByOption && imageAmong(p) >= 0:
			return nil, bad(p, "has an image as an option")
		case a.Likelihood == eval.ByBlank && checkBlank(p) != nil:
			return nil, bad(p, checkBlank(p).Error())
		case len(p.Messages) > 1 || (len(p.Messages) > 0) != (len(p.Images) > 0):
			return nil, bad(p, "is a chat of several messages")
		case p.Answer == "" && p.Target == "":
			return nil, bad(p, "has no answer")
		default:
			if source := p.DataSource(""); source != "" {
				s.bySource[source] = append(s.bySource[source], *p)
			}
		}
	}
	return s, nil
}

// of returns the examples of a problem: the first ones of its source, or of all if it or all of them name none. It
// leaves out the problem itself, even if the suite has its options in another order.
func (s *Examples) of(p *rollout.Problem) ([]rollout.Problem, error) {
	list, which := s.all, ""
	if source := p.DataSource(""); source != "" && len(s.bySource) > 0 {
		list, which = s.bySource[source], fmt.Sprintf(" of source %q", source)
	}
	var found []rollout.Problem
	for i := range list {
		if len(found) == s.n {
			break
		}
		if !same(&list[i], p) {
			found = append(found, list[i])
		}
	}
	if len(found) < s.n {
		return nil, fmt.Errorf("the suite %s has only %s%s besides the problem itself, and eval.final.shots is %d: "+
			"lower it, or name a larger suite (eval.final.shots_suite)", s.name,
			quantity.Plural(len(found), "example"), which, s.n)
	}
	return found, nil
}

// same reports whether two problems show the same images and ask the same, or have the same options in another order.
func same(a, b *rollout.Problem) bool {
	images := slices.EqualFunc(a.Images, b.Images, func(x, y rollout.Picture) bool { return x.Digest == y.Digest })
	return images && (a.Prompt == b.Prompt || a.Choice.Same(b.Choice))
}

// Options returns the texts whose likelihoods are compared behind the prompt of a rendered problem, or, for
// eval.ByBlank, behind the prompts of Filled.
func Options(p *rollout.Problem, a suite.Asking) []string {
	if a.Likelihood == eval.ByOption {
		return p.Choice.Options
	}
	texts := make([]string, len(p.Choice.Options))
	for i := range texts {
		if texts[i] = rollout.Letter(i); a.Likelihood == eval.ByBlank {
			_, texts[i] = cutBlank(p.Choice.Question)
		}
	}
	return texts
}

// around puts texts before and after the last message of the user.
func around(messages []rollout.Message, before, after string) []rollout.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role != "user" || m.Parts != nil && m.Images() == 0 {
			continue
		}
		out := slices.Clone(messages)
		if out[i].Content = before + m.Content + after; m.Parts != nil {
			out[i] = m.Between(before, after)
		}
		return out
	}
	return messages
}
