package config

import (
	"fmt"
	"strings"
)

// check is a condition on several keys. fails returns a message if their values
// conflict; it is called only if all keys have an effect and a value.
type check struct {
	keys  []string // the one to point at first, if they were set in the same layer
	fails func(r *Run) (message, help string)
}

// conflicts runs the checks and puts each error at the key that was set last.
func (r *resolver) conflicts(run *Run) {
	if r.l.partial {
		return
	}
	for _, c := range checks() {
		ready := true
		for _, path := range c.keys {
			cell := r.cell(path)
			ready = ready && cell.active == yes && cell.ok
		}
		if !ready {
			continue
		}
		if message, help := c.fails(run); message != "" {
			r.errs = append(r.errs, r.latest(c.keys).fault(CodeConflict, message, help))
		}
	}
}

// latest returns the place where the highest layer set one of the keys.
func (r *resolver) latest(keys []string) pos {
	var best *setting
	for _, path := range keys {
		if s := r.l.set[path]; s != nil && (best == nil || s.at.src.order > best.at.src.order) {
			best = s
		}
	}
	switch {
	case best != nil:
		return best.at
	case r.l.main != nil:
		return pos{src: r.l.main, line: 1, col: 1, width: 1}
	}
	return pos{src: &source{name: "configuration"}}
}

func checks() []check {
	var all []check
	all = append(all, taskChecks()...)
	all = append(all, rewardChecks()...)
	all = append(all, toolsChecks()...)
	all = append(all, formChecks()...)
	all = append(all, sftChecks()...)
	all = append(all, rewardModelChecks()...)
	all = append(all, scorerChecks()...)
	all = append(all, preferChecks()...)
	all = append(all, dataChecks()...)
	all = append(all, passRateChecks()...)
	all = append(all, modelChecks()...)
	all = append(all, remoteChecks()...)
	all = append(all, trainChecks()...)
	all = append(all, settingChecks()...)
	all = append(all, stopChecks()...)
	return append(all, evalChecks()...)
}

func taskChecks() []check {
	var list []check
	for _, k := range taskKinds() {
		if k.checks != nil {
			list = append(list, k.checks()...)
		}
	}
	return append(list, []check{
		{[]string{"reward.wrong", "reward.correct"}, func(r *Run) (string, string) {
			if r.Reward.Wrong >= r.Reward.Correct {
				return fmt.Sprintf("reward.wrong (%v) is not below reward.correct (%v)", r.Reward.Wrong,
					r.Reward.Correct), "training maximises the reward"
			}
			return "", ""
		}},
	}...)
}

func countdownChecks() []check {
	return []check{
		{[]string{"task.countdown.min_numbers", "task.countdown.max_numbers"}, func(r *Run) (string, string) {
			if c := r.Task.Countdown; c.MinNumbers > c.MaxNumbers {
				return fmt.Sprintf("task.countdown.min_numbers (%d) is above task.countdown.max_numbers (%d)",
					c.MinNumbers, c.MaxNumbers), ""
			}
			return "", ""
		}},
		{[]string{"task.countdown.operators"}, func(r *Run) (string, string) {
			for i, op := range r.Task.Countdown.Operators {
				if strings.ContainsRune(r.Task.Countdown.Operators[:i], op) {
					return fmt.Sprintf("task.countdown.operators has %q twice", op), "name each operator once"
				}
			}
			return "", ""
		}},
	}
}

func outcomesChecks() []check {
	return []check{
		{[]string{"task.outcomes.modes", "task.outcomes.count"}, func(r *Run) (string, string) {
			if len(r.Task.Outcomes.Modes) == 0 {
				return "task.outcomes.modes is empty: every outcome has the same reward",
					"give at least one {center, width, height}"
			}
			for i, m := range r.Task.Outcomes.Modes {
				if m.Center >= r.Task.Outcomes.Count {
					return fmt.Sprintf("task.outcomes.modes[%d].center (%d) is not below task.outcomes.count (%d)", i,
							m.Center, r.Task.Outcomes.Count),
						"outcomes are counted from 0"
				}
			}
			return "", ""
		}},
	}
}

func dataChecks() []check {
	list := []check{
		{[]string{"data.train.source", "train.steps", "sft.steps", "prefer.steps"}, func(r *Run) (string, string) {
			switch {
			case r.Data.Train.Source != None:
			case r.Train.Steps > 0 && r.Prefer.Steps > 0:
				return "data.train.source is none: nothing to train on after prefer",
					"give a file, or set train.steps: 0"
			case r.Train.Steps > 0 && r.SFT.OnConversations():
				return "data.train.source is none: nothing to train on after sft", "give a file, or set train.steps: 0"
			case r.Train.Steps > 0, r.SFT.Steps > 0 && !r.SFT.OnConversations():
				return "data.train.source is none: nothing to train on", "give a file, or generated"
			}
			return "", ""
		}},
	}
	list = append(list, check{[]string{"data.image_min_pixels", "data.image_max_pixels"},
		func(r *Run) (string, string) {
			if least, most := r.Data.ImageMinPixels, r.Data.ImageMaxPixels; most > 0 && least > most {
				return fmt.Sprintf("data.image_min_pixels (%d) is above data.image_max_pixels (%d)", least, most),
					"lower the first, or raise the second"
			}
			return "", ""
		}})
	list = append(list, trainSizeChecks("data.train.size")...)
	list = append(list, trainSizeChecks("task.mixed.generate.train")...)
	for _, s := range []struct {
		name string
		of   func(r *Run) Split
	}{
		{"data.train", func(r *Run) Split { return r.Data.Train }},
		{"data.val", func(r *Run) Split { return r.Data.Val }},
		{"data.test", func(r *Run) Split { return r.Data.Test }},
	} {
		list = append(list, check{[]string{s.name + ".source", s.name + ".size", "task.kind"},
			func(r *Run) (string, string) {
				switch split := s.of(r); {
				case split.Source == Generated && r.Task.kind().files:
					return fmt.Sprintf("%s.source is generated, but the task %s cannot generate problems", s.name,
						r.Task.Kind), "give a file (.jsonl, .parquet)"
				case split.Source == Generated && split.Size == 0:
					return s.name + ".size is 0, but generated data needs a size", "say how many"
				case split.Source == None && split.Size > 0:
					return fmt.Sprintf("%s.size is %d, but %s.source is none", s.name, split.Size, s.name),
						"remove the size, or give a source"
				}
				return "", ""
			}})
	}
	return list
}

// trainSizeChecks compares the number of training problems, where it is known, with what a step takes. key is one that
// sets it.
func trainSizeChecks(key string) []check {
	return []check{
		{[]string{"train.prompts_per_step", "data.train.source", key}, func(r *Run) (string, string) {
			if n, name := r.trainSize(key); n > 0 && r.Train.PromptsPerStep > n {
				return fmt.Sprintf("train.prompts_per_step (%d) is above %s (%d): a step would see a problem twice",
						r.Train.PromptsPerStep, name, n),
					"sample fewer problems in a step, or use more data"
			}
			return "", ""
		}},
		{[]string{"sft.problems_per_step", "sft.data_size", "data.train.source", key}, func(r *Run) (string, string) {
			n, name := r.trainSize(key)
			if r.SFT.DataSize > 0 && (n == 0 || r.SFT.DataSize < n) {
				n, name = r.SFT.DataSize, "sft.data_size"
			}
			if n > 0 && r.SFT.ProblemsPerStep > n && !r.SFT.OnConversations() {
				return fmt.Sprintf("sft.problems_per_step (%d) is above %s (%d): a step would see a problem twice",
						r.SFT.ProblemsPerStep, name, n),
					"fit fewer problems in a step, or use more data"
			}
			return "", ""
		}},
		{[]string{"sft.data_size", key}, func(r *Run) (string, string) {
			if n, name := r.trainSize(key); n > 0 && r.SFT.DataSize > n {
				return fmt.Sprintf("sft.data_size (%d) is above %s (%d)", r.SFT.DataSize, name, n),
					"sft learns targets of training problems; 0 takes all"
			}
			return "", ""
		}},
	}
}

// trainSize returns the number of training problems with the keys that set it; 0 if it depends on a file, or if key is
// only one of several.
func (r *Run) trainSize(key string) (n int, name string) {
	const size, made = "data.train.size", "task.mixed.generate.train"
	switch {
	case r.Task.Kind == MixedTask && r.GeneratedProblems("train") > 0 && key == size:
		return 0, ""
	case key == made && r.GeneratedProblems("train") == 0:
		return 0, ""
	case key == made && r.Data.Train.Source != Generated:
		key = size + " and " + made
	}
	return r.Problems("train"), key
}

func modelChecks() []check {
	return []check{
		{[]string{"compute.numerics", "model.dtype"}, func(r *Run) (string, string) {
			class := r.Compute.Numerics
			if class == OwnNumerics || (class == "cpu/fma") == (r.Model.DType == "f32") {
				return "", ""
			}
			return fmt.Sprintf("compute.numerics is %s, but model.dtype is %s", class, r.Model.DType),
				"cpu/fma is float32, the other classes are bf16"
		}},
		{[]string{"model.arch.kv_heads", "model.arch.heads"}, func(r *Run) (string, string) {
			if a := r.Model.Arch; a.Heads%a.KVHeads != 0 {
				return fmt.Sprintf("model.arch.kv_heads (%d) does not divide model.arch.heads (%d)", a.KVHeads,
					a.Heads), "each key/value head serves the same number of query heads"
			}
			return "", ""
		}},
		{[]string{"model.arch.head_size"}, func(r *Run) (string, string) {
			if r.Model.Arch.HeadSize%2 != 0 {
				return fmt.Sprintf("model.arch.head_size (%d) is odd", r.Model.Arch.HeadSize),
					"rotary positions turn pairs of channels"
			}
			return "", ""
		}},
		{[]string{"tokenizer.kind", "model.init"}, func(r *Run) (string, string) {
			switch {
			case r.Tokenizer.Kind == "model" && r.Model.Init == "random":
				return "tokenizer.kind is model, but a random model comes with no tokenizer",
					"tokenizer.kind: char, byte, or file with tokenizer.path"
			case (r.Tokenizer.Kind == "char" || r.Tokenizer.Kind == "byte") && r.Model.Init == "pretrained":
				return fmt.Sprintf("tokenizer.kind is %s, but a pretrained model knows only its own tokens",
					r.Tokenizer.Kind), "tokenizer.kind: model"
			}
			return "", ""
		}},
		{[]string{"model.arch.max_positions", "data.max_prompt_tokens", "rollout.max_new_tokens",
			"eval.final.max_new_tokens"}, func(r *Run) (string, string) {
			longest := max(r.Rollout.MaxNewTokens, r.Eval.Final.MaxNewTokens)
			if need := r.Data.MaxPromptTokens + longest; need > r.Model.Arch.MaxPositions {
				return fmt.Sprintf("model.arch.max_positions (%d) is below the longest sequence: "+
					"data.max_prompt_tokens (%d) + max_new_tokens (%d) = %d",
					r.Model.Arch.MaxPositions, r.Data.MaxPromptTokens, longest, need), ""
			}
			return "", ""
		}},
	}
}
