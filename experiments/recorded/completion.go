package recorded

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"exp/experiments/blob"
	"exp/experiments/quantity"
	"exp/experiments/store"
)

// TrainSuite is the suite name of the completions of training.
const TrainSuite = "train"

// Completion is one stored completion with its text and its verdict.
type Completion struct {
	ID         int64
	Suite      string
	Step       int64
	Item       string
	K          int
	Correct    *bool // nil: not graded, or no verdict
	Reward     float64
	Answer     string
	Gold       string // right answer, or one of many; empty: not known, or not asked for (AddGolds)
	Reason     string
	ModelScore *float64 // by the reward model of the evaluation; nil: none, or not asked for (AddScores)
	OutTokens  int64
	LogProbSum float64
	Finish     string
	Prompt     string
	Text       string
	Kept       bool // the texts are there
	TokenIDs   []int32
	LogProbs   []float32
	Components map[string]float64 // named parts of the reward; nil if it has none
	Inserted   []Span             // parts that tools wrote, in order
	Agent      bool               // an agent asked the policy, and wrote those parts
	Later      []Conversation     // of its episode, after the first, in order
	Images     []Image            // that it brought, in the order in which the conversations show them
	Acts       []Act              // the policy's turns, where an agent or the algorithm tells them apart
	Steps      []Step             // of the answer, where each earned a reward

	stage int64 // that sampled it
	scope string
}

// Step is a step of an answer, up to TokenIDs[End], with the probability that it is right.
type Step struct {
	End    int     `json:"end"`
	Right  float64 `json:"right"`
	Reward float64 `json:"reward"`
}

// Act is a turn of the policy in an agent's episode: TokenIDs[Start:End], or none if the turn is not learned from. The
// states of two turns are equal if these digests are.
type Act struct {
	Start        int     `json:"start"`
	End          int     `json:"end"`
	Reward       float64 `json:"reward"`
	State        string  `json:"state"`
	Conversation string  `json:"conversation,omitempty"` // its name
}

// Image is an image that an agent brought. The tokens First to First+Tokens-1 are its, and negative: -Tokens to -1 for
// the first one.
type Image struct {
	Digest string `json:"digest"`
	Format string `json:"format"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	First  int32  `json:"first"`
	Tokens int    `json:"tokens"`
}

// Conversation begins at a place of a completion: TokenIDs[Start] and Text[TextStart]. Tokens and Text are its prompt.
type Conversation struct {
	Start     int     `json:"start"`
	TextStart int     `json:"text_start"`
	Tokens    []int32 `json:"tokens"`
	Text      string  `json:"text"`
}

// Span is a part of a completion: TokenIDs[Start:End] and Text[TextStart:TextEnd].
type Span struct {
	Start     int `json:"start"`
	End       int `json:"end"`
	TextStart int `json:"text_start"`
	TextEnd   int `json:"text_end"`
}

// Part is a piece of a completion's text.
type Part struct {
	Text   string
	Tool   bool // a tool wrote it, and what stands around its answer, or an agent
	Prompt bool // of a further conversation
}

// Parts cuts the text where the policy and tools take turns, and puts prompts before further conversations.
func (c *Completion) Parts() []Part {
	var list []Part
	at, later := 0, c.Later
	add := func(end int, tool bool) {
		for ; !tool && len(later) > 0 && later[0].TextStart <= min(end, len(c.Text)); later = later[1:] {
			if x := later[0].TextStart; x > at {
				list, at = append(list, Part{Text: c.Text[at:x]}), x
			}
			list = append(list, Part{Text: later[0].Text, Prompt: true})
		}
		if end > at && end <= len(c.Text) {
			list = append(list, Part{Text: c.Text[at:end], Tool: tool})
			at = end
		}
	}
	for _, s := range c.Inserted {
		add(s.TextStart, false)
		add(s.TextEnd, true)
	}
	add(len(c.Text), false)
	return list
}

// Earned lists what the policy's turns earned, and the first digits of the states: "0.10 in 3fa9c2d1, 0.00 in …".
func (c *Completion) Earned() string {
	var list []string
	for _, a := range c.Acts {
		list = append(list, quantity.Fixed(a.Reward, 2)+" in "+a.State[:min(8, len(a.State))])
	}
	return strings.Join(list, ", ")
}

// StepScores lists how probable it is that the steps are right, and what each earned: "0.98 earned 0.96, 0.10 earned
// -0.80".
func (c *Completion) StepScores() string {
	var list []string
	for _, s := range c.Steps {
		list = append(list, quantity.Fixed(s.Right, 2)+" earned "+quantity.Fixed(s.Reward, 2))
	}
	return strings.Join(list, ", ")
}

// Verdict says how the completion was graded.
func (c *Completion) Verdict() string {
	switch {
	case c.Correct == nil:
		return "not graded"
	case *c.Correct:
		return "right"
	}
	return "wrong"
}

// keptText is the part of a packed record that is read (harness/run writes it).
type keptText struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`

	Tokens   []int32   `json:"tokens"`
	LogProbs []float32 `json:"logprobs"`

	Components map[string]float64 `json:"components"`

	Inserted []Span         `json:"inserted"`
	Asked    []int32        `json:"asked"`
	Later    []Conversation `json:"later"`
	Images   []Image        `json:"images"`
	Acts     []Act          `json:"acts"`
	Steps    []Step         `json:"steps"`
}

// Completions reads a run's completions with their texts.
type Completions struct {
	DB    *store.DB
	Run   store.Run
	Suite string
	Query store.SampleQuery
	Match *regexp.Regexp // only texts that match; nil: all
}

// completionPage is how many rows are read at first, often enough for a person. Then all others are: a page sorts
// everything after it.
const completionPage = 1000

// Read returns the first most matching completions, 0 for all, and whether there are more.
func (c Completions) Read(ctx context.Context, most int) (list []Completion, more bool, err error) {
	packs := c.DB.Blobs.NewPackReader()
	defer packs.Close()
	q := c.Query
	for q.Limit = completionPage; ; q.Limit = 0 {
		rows, err := c.DB.Samples(ctx, c.Run.ID, q)
		if err != nil {
			return nil, false, err
		}
		for _, row := range rows {
			shown, err := c.read(packs, row)
			if err != nil {
				return nil, false, err
			}
			if c.Match != nil && !c.Match.MatchString(shown.Text) {
				continue
			}
			if most > 0 && len(list) == most {
				return list, true, nil
			}
			list = append(list, shown)
		}
		if q.Limit == 0 || len(rows) < q.Limit {
			return list, false, nil
		}
		q.After = rows[len(rows)-1].ID
	}
}

func (c Completions) read(packs *blob.PackReader, row store.Sample) (Completion, error) {
	out := Completion{ID: row.ID, Suite: c.Suite, Step: row.Step, Item: row.Item, K: row.K, Reward: row.Reward,
		OutTokens: row.OutTokens, LogProbSum: row.LogProbSum, Finish: row.Finish, stage: row.Stage, scope: row.Scope}
	if v := row.Verdict; v != nil {
		out.Answer, out.Reason = v.Answer, v.Reason
		if v.Graded {
			out.Correct, out.Reward = &v.Correct, v.Reward
		}
	}
	if row.Ref.Pack.IsZero() {
		return out, nil
	}
	var kept keptText
	if err := packs.Read(row.Ref, &kept); err != nil {
		return out, fmt.Errorf("sample %d of problem %s: %w", row.K, row.Item, err)
	}
	out.Prompt, out.Text, out.Kept = kept.Prompt, kept.Text, true
	out.TokenIDs, out.LogProbs, out.Inserted = kept.Tokens, kept.LogProbs, kept.Inserted
	out.Components, out.Later, out.Agent = kept.Components, kept.Later, kept.Asked != nil
	out.Images, out.Acts, out.Steps = kept.Images, kept.Acts, kept.Steps
	return out, nil
}

// Suites lists the suites of a run's evaluations.
func Suites(ctx context.Context, db *store.DB, run store.Run) ([]string, error) {
	stages, err := db.Stages(ctx, run.ID)
	var labels []string
	for _, st := range stages {
		if st.Label != "" && !slices.Contains(labels, st.Label) {
			labels = append(labels, st.Label)
		}
	}
	return labels, err
}

// FirstTrained is the first of a run's suites that the trained weights were evaluated on.
func FirstTrained(suites []string) string {
	for _, l := range suites {
		if !strings.Contains(l, "@") {
			return l
		}
	}
	return suites[0]
}

// OfSuite narrows a query to the completions of a suite, or of training. A suite may
// have been sampled several times, by stages of kind generation; only the newest counts,
// unless the query names another.
func OfSuite(
	ctx context.Context, db *store.DB, run store.Run, generation, suite string, q store.SampleQuery,
) (store.SampleQuery, error) {
	if suite == TrainSuite {
		q.Scope = "train"
		return q, nil
	}
	q.Scope, q.Label = "eval", suite
	if q.Stage != 0 {
		return q, nil
	}
	newest, err := db.NewestStage(ctx, run.ID, generation, suite)
	if err == nil {
		q.Stage = newest.Home
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return q, err
}
