package config

import (
	"slices"
	"strings"
)

// Stage is a kind of stage of a run.
type Stage string

// The stage kinds. Stages lists them in order, with inputs and outputs.
const (
	Prepare     Stage = "prepare"
	Init        Stage = "init"
	SFT         Stage = "sft"
	RewardModel Stage = "reward_model"
	Prefer      Stage = "prefer"
	PassRate    Stage = "pass_rate"
	Select      Stage = "select"
	Train       Stage = "train"
	Merge       Stage = "merge"
	EvalGen     Stage = "eval.gen"
	EvalScore   Stage = "eval.score"
)

// Kind is the type of a key's value.
type Kind uint8

// The kinds, with the Go type of a plain value (Resolved.Value) and of the field in
// Run.
const (
	Int      Kind = 1 + iota // int64; int or int64
	Float                    // float64
	Bool                     // bool
	String                   // string
	Enum                     // string, one of Key.Words
	Duration                 // int64 nanoseconds; time.Duration. Written 90s, 2h, 1h30m
	Size                     // int64 bytes. Written 4GiB, 512MiB
	Share                    // float64 in [0,1]. Written all, none or sampled(p)
	Objects                  // []any of map[string]any; a slice of structs. Lists only
	Values                   // map[string]any of nil, bool, int64, float64 and string. Written {name: value}
)

// Role says how a key's value enters the identity of a run.
type Role uint8

const (
	// Semantic keys can change results and are hashed.
	Semantic Role = iota
	// Nonsemantic keys change no result: names, devices, how often to save. A user's
	// own configuration may set only these.
	Nonsemantic
	// Replicate is the run's seed, which distinguishes the runs of an experiment.
	Replicate
	// Expanded keys only set defaults of other keys. Those are hashed, so a preset and
	// its settings written out are the same experiment.
	Expanded
	// External keys name something outside the configuration; its digest enters the
	// identity instead of the path.
	External
)

func (r Role) String() string {
	return [...]string{"semantic", "nonsemantic", "replicate", "expanded", "external"}[r]
}

// Key is a row of the table. Keys are immutable.
type Key struct {
	Path    string // dotted, lower-case: train.optim.lr
	Kind    Kind
	List    bool // a list of Kind
	Null    bool // null is allowed
	Default Default
	Range   Range    // of Int, Float, Duration (ns) and Size (bytes)
	Words   []string // the words of an Enum
	Pattern *Pattern // of a String; nil allows any
	JSON    bool     // of a String: a list is allowed too, kept as JSON text
	Fields  []Key    // of Objects, with Path relative to the element
	Unit    string   // what a number counts; "fraction" also allows 10%
	Role    Role
	Stages  []Stage  // kinds that read it
	Judges  bool     // EvalScore reads it too if the reward judges alone (Run.JudgesAlone); part of the protocol then
	When    []Clause // it has an effect only if all hold
	// Late: the key came when runs had ids, which its default must not change.
	Late bool
	Help string // one line
}

// Name is the last component of the path.
func (k *Key) Name() string { return k.Path[strings.LastIndexByte(k.Path, '.')+1:] }

// Reads reports whether a stage of one of the kinds reads the key.
func (k *Key) Reads(stages ...Stage) bool {
	for _, s := range stages {
		for _, t := range k.Stages {
			if s == t {
				return true
			}
		}
	}
	return false
}

// Type describes the type for people: "int >= 1", "list of one of a, b".
func (k *Key) Type() string {
	s := [...]string{
		Int: "int", Float: "float", Bool: "true or false", String: "text", Enum: "one of " +
			strings.Join(k.Words, ", "),
		Duration: "duration (90s, 2h)", Size: "size (512MiB, 4GiB)", Share: "all, none or sampled(p)",
		Objects: "blocks", Values: "names with values",
	}[k.Kind]
	if k.Pattern != nil {
		s = k.Pattern.Text
	}
	if k.Kind == Objects {
		fields := make([]string, len(k.Fields))
		for i := range k.Fields {
			fields[i] = k.Fields[i].Path + ": " + k.Fields[i].Type()
		}
		s = "{" + strings.Join(fields, ", ") + "}"
	}
	if r := k.Range.format(k); r != "" {
		s += " " + r
	}
	if k.Unit == "fraction" {
		s += " (or a percentage)"
	}
	if k.List {
		of := "list of "
		if k.Pattern != nil { // which says what one is: "a line of text"
			of = "list, each "
		}
		s = of + s
	}
	if k.Null {
		s += ", or null"
	}
	return s
}

// Clause is a condition on other keys: at least one term must hold.
type Clause []Term

// Term is a condition on one key. A key without effect satisfies no term.
type Term struct {
	Path  string
	Words []string // the value is one of these, or the list or the block of names has one of these
	Not   bool     // the value is none of Words
	Names bool     // instead: a name in the block is one of Words, not a value
	Above bool     // instead: the value is a number greater than 0, or true, or a list or block that is not empty
}

func (t Term) String() string {
	switch {
	case t.Above && lookup(t.Path).Kind == Bool:
		return t.Path + " is true"
	case t.Above && (lookup(t.Path).List || lookup(t.Path).Kind == Values):
		return t.Path + " is not empty"
	case t.Above:
		return t.Path + " > 0"
	case t.Names: // every key of the block has such a term, and one text stands for all
		block, _ := cutLast(t.Path)
		return block + " has " + strings.Join(t.Words, " or ")
	case lookup(t.Path).Kind == Values:
		return t.Path + " has " + strings.Join(t.Words, " or ")
	case t.Not:
		return t.Path + " is not " + strings.Join(t.Words, " or ")
	default:
		return t.Path + " is " + strings.Join(t.Words, " or ")
	}
}

func (c Clause) String() string {
	var terms []string
	for _, t := range c {
		if text := t.String(); !slices.Contains(terms, text) {
			terms = append(terms, text)
		}
	}
	return strings.Join(terms, " or ")
}

// only requires that the key at path has one of the values.
func only(path string, words ...string) Clause { return Clause{{Path: path, Words: words}} }

// except requires that the key at path has none of the values.
func except(path string, words ...string) Clause {
	return Clause{{Path: path, Words: words, Not: true}}
}

// named requires that the block at path has one of the names.
func named(path string, words ...string) Clause {
	return Clause{{Path: path, Words: words, Names: true}}
}

// positive requires that the number at path is above 0, the switch is on, or the list or block
// is not empty.
func positive(path string) Clause { return Clause{{Path: path, Above: true}} }

// block adds conditions to keys, and stages to keys without any.
func block(when []Clause, stages []Stage, keys []Key) []Key {
	for i := range keys {
		keys[i].When = append(append([]Clause(nil), when...), keys[i].When...)
		if keys[i].Stages == nil {
			keys[i].Stages = stages
		}
	}
	return keys
}

// at lists stage kinds.
func at(stages ...Stage) []Stage { return stages }
