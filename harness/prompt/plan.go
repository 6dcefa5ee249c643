package prompt

import (
	"fmt"
	"strings"

	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/train/toolcall"
)

// Plan says how a run turns problems into prompts, and which tokens end a completion.
type Plan struct {
	Tokens   int    `json:"tokens"`           // of the vocabulary
	Template string `json:"template"`         // the chat template's file; empty: plain text
	Digest   string `json:"digest,omitempty"` // SHA-256 of the template
	Date     string `json:"date,omitempty"`   // that it takes for today
	System   string `json:"system,omitempty"` // message before chats that have none
	Plain    string `json:"plain,omitempty"`  // why the run has no template
	Tools    int    `json:"tools,omitempty"`  // definitions of data.tools
	// NoTools says that the template ignores them.
	NoTools bool `json:"tools_ignored,omitempty"`
	// OwnTools counts the problems of files that bring their own tools; LostTools counts the
	// ones whose prompts do not show them.
	OwnTools  int               `json:"own_tools,omitempty"`
	LostTools int               `json:"own_tools_ignored,omitempty"`
	Before    string            `json:"before,omitempty"`  // token that the tokenizer puts before a text
	Truncate  string            `json:"truncate"`          // what happens to prompts that are too long
	Suites    string            `json:"suites,omitempty"`  // as Truncate for suites' prompts; empty: the run has none
	Limit     int               `json:"limit"`             // tokens of a prompt
	Longest   int               `json:"longest,omitempty"` // of some generated training prompts, in tokens; 0: not known
	Escape    bool              `json:"escape,omitempty"`  // text that spells a token stays text
	Filter    bool              `json:"filter,omitempty"`  // problems with prompts that are too long are left out
	Images    *ImagePlan        `json:"images,omitempty"`  // in the files' prompts; nil: none
	Stops     []StopID          `json:"stop_ids"`
	StopNote  string            `json:"stop_ids_note,omitempty"` // of those that end nothing
	Calls     []string          `json:"calls,omitempty"`         // what answers the policy's calls, and how
	SFT       *ConversationPlan `json:"sft,omitempty"`           // conversations of sft.source
	Prefer    *PairPlan         `json:"prefer,omitempty"`
	Answers   *AnswerPlan       `json:"prefer_answers,omitempty"` // in place of Prefer
	Rated     *RatedPlan        `json:"reward_model,omitempty"`
	HeldOut   *RatedPlan        `json:"held_out,omitempty"` // pairs of reward_model.val
	// Stepped and SteppedVal are in place of Rated and HeldOut where a reward model learns from steps.
	Stepped    *SteppedPlan `json:"reward_model_steps,omitempty"`
	SteppedVal *SteppedPlan `json:"held_out_steps,omitempty"`
}

// Plan describes the prompter.
func (p *Prompter) Plan() Plan {
	plan := Plan{Tokens: p.Tokenizer.VocabSize(), Truncate: p.data.Truncate, Limit: p.data.MaxPromptTokens,
		Escape: p.escaper != nil, Filter: p.data.FilterOverlong, Stops: p.Stops, StopNote: p.IdleStopsNote()}
	if plan.Stops == nil {
		plan.Stops = []StopID{}
	}
	plan.Calls, plan.SFT, plan.Prefer = callsPlan(p.tools), p.learns, p.prefers
	plan.Answers, plan.Images = p.judged, p.shown
	plan.Rated, plan.HeldOut = p.ratings, p.heldOut
	plan.Stepped, plan.SteppedVal = p.stepped, p.steppedVal
	plan.Tools, plan.NoTools = p.ToolsPlan()
	plan.OwnTools, plan.LostTools = p.ownTools, p.lostTools
	for _, id := range p.before {
		plan.Before += p.Tokenizer.Token(id)
	}
	switch {
	case p.template != nil:
		plan.Template, plan.Digest, plan.Date, plan.System = p.template.from, p.template.Digest(),
			p.data.TemplateDate, p.data.System
	case p.data.Chat == config.None:
		plan.Plain = "data.chat is none"
	case p.own:
		plan.Plain = "its tokenizer is made by exp"
	default:
		plan.Plain = "the tokenizer's folder has no chat template"
	}
	return plan
}

// callsPlan describes rollout.tools; nothing for none.
func callsPlan(t config.Tools) []string {
	if !t.Used() {
		return nil
	}
	several := ""
	if n := t.Most(); n > 1 {
		several = fmt.Sprintf(" in up to %d conversations", n)
	}
	who := fmt.Sprintf("Python in the sandbox, %v of processor time and %s for a program", t.CPULimit,
		quantity.Bytes(t.MemLimit))
	switch t.Kind {
	case "command":
		who = "the program " + strings.Join(t.Command, " ")
	case "agent":
		return []string{fmt.Sprintf("the agent %s asks the policy, %s at once", strings.Join(t.Command, " "),
			quantity.Plural(t.AtOnce(), "episode")), fmt.Sprintf("at most %s each%s, within rollout.max_new_tokens",
			quantity.Plural(t.MaxTurns, "turn"), several)}
	}
	how := map[string]string{toolcall.Hermes: "JSON in <tool_call> tags; the chat template writes the answers",
		toolcall.Fence: "fenced blocks of Python; answers are fenced blocks of output",
		toolcall.User:  "every turn is one; the chat template writes the answers as the user's"}[t.Format]
	if t.Format == toolcall.Tags {
		how = fmt.Sprintf("text between %q and %q", t.Call[0], t.Call[1])
		if t.Call[0] == "" {
			how = fmt.Sprintf("a line up to %q", t.Call[1])
		}
		if t.Answer[0]+t.Answer[1] != "" {
			how += fmt.Sprintf("; answers stand between %q and %q", t.Answer[0], t.Answer[1])
		}
	}
	return []string{who, "calls: " + how, fmt.Sprintf("at most %s, answers of at most %s, within "+
		"rollout.max_new_tokens", quantity.Plural(t.MaxTurns, "turn"), quantity.Plural(t.MaxOutput, "character"))}
}
