// Package rollout defines the types of reinforcement learning on language models that the
// packages train and eval share: problems, completions, verdicts, the interfaces of
// samplers and graders, and the packing of sequences into micro-batches.
//
// It imports none of our packages and does no work on a device. Tasks (eval/task) make
// Problems and Graders, the engine (train/generate) is a Sampler, and the training loop
// (train) uses only these types.
package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Problem is one item of a task. Problems are immutable once made.
type Problem struct {
	// ID is unique within its data set and stable across runs; random streams
	// are labelled with it.
	ID string `json:"id"`
	// Prompt is the text of the problem: a model without a chat template continues it; with
	// a template it is the user's message.
	Prompt string `json:"prompt"`
	// Messages are the chat that asks the problem, for a chat template; empty means one
	// user message, the Prompt.
	Messages []Message `json:"messages,omitempty"`
	// Tools are the tool definitions that the chat offers, a JSON list of objects; a
	// problem without any uses the run's.
	Tools json.RawMessage `json:"tools,omitempty"`
	// Images are what the ImageParts of Messages stand for, in order. Prompt has an ImageMark for each.
	Images []Picture `json:"images,omitempty"`
	// Answer is the gold answer; empty if a grader accepts many answers.
	Answer string `json:"answer,omitempty"`
	// Target is one right completion without the end token, for supervised fine-tuning;
	// empty if none is known.
	Target string `json:"target,omitempty"`
	// Cluster names a group of dependent problems (a contest, a template); empty means the
	// problem alone. Standard errors are clustered by it.
	Cluster string `json:"cluster,omitempty"`
	// Data is further input of the task's grader, in the form the task wrote.
	Data json.RawMessage `json:"data,omitempty"`
	// Choice has the parts of a multiple-choice question; nil for other problems and chats.
	Choice *Choice `json:"multiple_choice,omitempty"`
	// Kind is the kind of task that the problem is of, in a run of several; empty in others.
	Kind string `json:"task_kind,omitempty"`
}

// Field returns the text, number or truth at a path such as extra_info.task within the columns of its data file that
// its Data keeps, as text, or "". A column whose name has dots is found too.
func (p *Problem) Field(path string) string {
	var d struct {
		Columns map[string]any `json:"columns"`
	}
	decoder := json.NewDecoder(bytes.NewReader(p.Data))
	decoder.UseNumber()
	if decoder.Decode(&d) != nil {
		return ""
	}
	in := d.Columns
	for {
		v, found := in[path]
		first, rest, nested := strings.Cut(path, ".")
		if found || !nested {
			switch v := v.(type) {
			case string:
				return v
			case bool, json.Number:
				return fmt.Sprint(v)
			}
			return ""
		}
		in, _ = in[first].(map[string]any)
		path = rest
	}
}

// DataSource names the data set that the problem comes from, as its Data says in data_source or
// source, or else returns otherwise.
func (p *Problem) DataSource(otherwise string) string {
	var d struct {
		DataSource any `json:"data_source"`
		Source     any `json:"source"`
	}
	if len(p.Data) == 0 || json.Unmarshal(p.Data, &d) != nil {
		return otherwise
	}
	for _, v := range []any{d.DataSource, d.Source} {
		if name, ok := v.(string); ok && name != "" {
			return name
		}
	}
	return otherwise
}
