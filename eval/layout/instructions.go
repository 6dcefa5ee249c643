package layout

import (
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"exp/eval/grade/instruct"
	"exp/eval/rows"
	"exp/train/rollout"
)

// Columns with the instructions of a row.
const (
	idsField    = "instruction_id_list" // IFEval: ids, and their arguments in argsField
	argsField   = "kwargs"
	storedField = "data.instructions" // as package task writes them

	functionField = "func_name" // within truthFields, Tulu 3
)

// truthFields may hold the instructions as open-instruct's training sets have them: a list with one object,
// instruction_id and kwargs, or its text in Python's spelling; or, in Tulu 3's, an object with func_name and its
// arguments.
func truthFields() []string { return []string{"ground_truth", "reward_model.ground_truth"} }

// OfInstructions reports whether a row has verifiable instructions.
func OfInstructions(r rows.Row) bool {
	if r.Has(idsField, argsField) || r.Has(storedField) {
		return true
	}
	return slices.ContainsFunc(truthFields(), func(f string) bool {
		text, err := r.Text(f)
		return r.Has(f) && (err != nil || strings.Contains(text, "instruction_id") ||
			strings.Contains(text, functionField))
	})
}

// InstructionsAt reads prompts with verifiable instructions, in the layouts of IFEval, of open-instruct's
// training sets, and of package task. For the columns see ProblemsAt.
func InstructionsAt(all iter.Seq2[rows.Row, error], c Columns) ([]rollout.Problem, Copies, error) {
	return readKeeping(all, c, func(r rows.Row) (Layout, error) {
		l, err := DetectPrompt(r, c.Prompt)
		l.Answer, l.Verifiable = "", true
		if r.Has("key") {
			l.ID = "key"
		}
		return l, err
	})
}

// instructions reads the instructions of a row.
func instructions(r rows.Row) (list []instruct.Instruction, err error) {
	field := ""
	switch {
	case r.Has(storedField):
		field = storedField
		list, err = storedInstructions(r)
	case r.Has(idsField, argsField):
		field = idsField
		list, err = listedInstructions(r)
	default:
		for _, f := range truthFields() {
			if r.Has(f) {
				field = f
				list, err = toldInstructions(r, f)
				break
			}
		}
	}
	switch {
	case err != nil:
		return nil, err
	case field == "":
		return nil, r.Errorf("", "no instructions; looked for the fields %s with %s, and %s", idsField, argsField,
			strings.Join(truthFields(), ", "))
	case len(list) == 0:
		return nil, r.Errorf(field, "no instructions")
	}
	for _, i := range list {
		if _, err := i.Check(); err != nil {
			return nil, r.Errorf(field, "%w", err)
		}
	}
	return list, nil
}

func storedInstructions(r rows.Row) (list []instruct.Instruction, err error) {
	raw, err := r.Raw(storedField)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, r.Errorf(storedField, "not a list of {id, args}: %w", err)
	}
	return list, nil
}

// listedInstructions reads the columns of IFEval. The arguments may be a text with JSON.
func listedInstructions(r rows.Row) ([]instruct.Instruction, error) {
	ids, err := r.Texts(idsField)
	if err != nil {
		return nil, err
	}
	v, _ := r.Value(argsField)
	if text, ok := v.(string); ok {
		if v, err = parseLiteral(text); err != nil {
			return nil, r.Errorf(argsField, "%w", err)
		}
	}
	list, err := pairUp(ids, v)
	if err != nil {
		return nil, r.Errorf(argsField, "%w", err)
	}
	return list, nil
}

// toldInstructions reads the field of open-instruct's rows.
func toldInstructions(r rows.Row, field string) ([]instruct.Instruction, error) {
	v, _ := r.Value(field)
	for {
		switch x := v.(type) {
		case string:
			var err error
			if v, err = parseLiteral(x); err != nil {
				return nil, r.Errorf(field, "%w", err)
			}
			continue
		case []any:
			if len(x) == 1 {
				v = x[0]
				continue
			}
		case map[string]any:
			if name, ok := x[functionField].(string); ok {
				own := withoutNull(x)
				delete(own, functionField)
				return []instruct.Instruction{{ID: strings.TrimSpace(name), Args: own}}, nil
			}
			var ids []string
			named, _ := x["instruction_id"].([]any)
			for _, id := range named {
				text, _ := id.(string)
				ids = append(ids, text)
			}
			list, err := pairUp(ids, x[argsField])
			if err != nil {
				return nil, r.Errorf(field, "%w", err)
			}
			return list, nil
		}
		return nil, r.Errorf(field, "neither a list with one object that has instruction_id and kwargs, "+
			"nor an object with %s", functionField)
	}
}

// pairUp joins ids with their arguments, an object or null for each. Arguments that are null do not count: parquet
// files have every argument of every instruction.
func pairUp(ids []string, args any) ([]instruct.Instruction, error) {
	objects, ok := args.([]any)
	if !ok || len(objects) != len(ids) {
		return nil, errors.New("not a list with an object of arguments, or null, for each instruction")
	}
	var list []instruct.Instruction
	for i, id := range ids {
		own, ok := objects[i].(map[string]any)
		if !ok && objects[i] != nil {
			return nil, errors.New("the arguments of " + id + " are not an object")
		}
		list = append(list, instruct.Instruction{ID: strings.TrimSpace(id), Args: withoutNull(own)})
	}
	return list, nil
}

func withoutNull(args map[string]any) map[string]any {
	own := maps.Clone(args)
	maps.DeleteFunc(own, func(_ string, v any) bool { return v == nil })
	return own
}
