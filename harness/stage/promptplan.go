package stage

import "exp/harness/config"

// PromptPlan says how a run turns problems into prompts, and which tokens end a completion.
type PromptPlan struct {
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
	OwnTools  int      `json:"own_tools,omitempty"`
	LostTools int      `json:"own_tools_ignored,omitempty"`
	Before    string   `json:"before,omitempty"` // token that the tokenizer puts before a text
	Truncate  string   `json:"truncate"`         // what happens to prompts that are too long
	Limit     int      `json:"limit"`            // tokens of a prompt
	Escape    bool     `json:"escape,omitempty"` // text that spells a token stays text
	Filter    bool     `json:"filter,omitempty"` // problems with prompts that are too long are left out
	Stops     []StopID `json:"stop_ids"`
}

// Plan describes the prompter.
func (p *Prompter) Plan() PromptPlan {
	plan := PromptPlan{Tokens: p.Tokenizer.VocabSize(), Truncate: p.data.Truncate, Limit: p.data.MaxPromptTokens,
		Escape: p.escaper != nil, Filter: p.data.FilterOverlong, Stops: p.Stops}
	if plan.Stops == nil {
		plan.Stops = []StopID{}
	}
	plan.Tools, plan.NoTools = p.toolsPlan()
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
