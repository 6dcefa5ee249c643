// Package rollout is the vocabulary of reinforcement learning on language
// models that the packages train and eval share: problems, completions,
// verdicts, the interfaces of what samples and what grades, and the packing of
// sequences into micro-batches.
//
// It imports nothing of ours and does no work on a device. Tasks (eval/task)
// make Problems and Graders, the engine (train/generate) is a Sampler, and the
// training loop (train) knows only these words.
package rollout

import "encoding/json"

// Problem is one item of a task. Problems are immutable once made.
type Problem struct {
	// ID is unique within its data set and stable across runs; random streams
	// are labelled with it.
	ID string `json:"id"`
	// Prompt is the text of the problem: what a model continues that has no chat
	// template, and else what the user says.
	Prompt string `json:"prompt"`
	// Messages are the chat that asks the problem, for a chat template; none stands for
	// one message of the user, the Prompt.
	Messages []Message `json:"messages,omitempty"`
	// Tools are the definitions of tools that the chat offers, a JSON list of objects;
	// a problem without any has the run's.
	Tools json.RawMessage `json:"tools,omitempty"`
	// Answer is the gold answer; empty where a grader accepts many answers.
	Answer string `json:"answer,omitempty"`
	// Target is one right completion without the end token, for supervised
	// fine-tuning; empty where none is known.
	Target string `json:"target,omitempty"`
	// Cluster names what this problem must not be counted independently of (a
	// contest, a template); empty means itself. Standard errors are clustered by
	// it.
	Cluster string `json:"cluster,omitempty"`
	// Data is what the task's grader needs to know beyond Answer, as the task
	// wrote it.
	Data json.RawMessage `json:"data,omitempty"`
}
