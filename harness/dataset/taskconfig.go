package dataset

import (
	"fmt"

	"exp/eval/grade/code"
	"exp/eval/grade/instruct"
	"exp/eval/task"
	"exp/harness/config"
)

// TaskConfig returns the settings of the configured task. It holds no defaults.
func TaskConfig(c *config.Run) task.Config {
	t := task.Config{
		Kind: c.Task.Kind,
		Countdown: task.Countdown{
			MinNumbers: c.Task.Countdown.MinNumbers, MaxNumbers: c.Task.Countdown.MaxNumbers,
			LargestNumber: c.Task.Countdown.LargestNumber, LargestTarget: c.Task.Countdown.LargestTarget,
			Operators: c.Task.Countdown.Operators, Use: c.Task.Countdown.Use,
			MinSolutions: c.Task.Countdown.MinSolutions,
		},
		Words: task.Words{LargestNumber: c.Task.Words.LargestNumber, Steps: c.Task.Words.Steps},
		Stories: task.Stories{
			MinSteps: c.Task.Stories.MinSteps, MaxSteps: c.Task.Stories.MaxSteps,
			LargestNumber: c.Task.Stories.LargestNumber,
		},
		Outcomes: task.Outcomes{Count: c.Task.Outcomes.Count},
		Functions: task.Functions{
			Arguments: c.Task.Functions.Arguments, LargestNumber: c.Task.Functions.LargestNumber,
			HiddenTests: c.Task.Functions.HiddenTests,
		},
		Math: task.Math{Grader: c.Task.Math.Grader},
		Code: task.Code{
			CPUMS: c.Task.Code.CPULimit.Milliseconds(), MemoryMB: c.Task.Code.MemLimit >> 20,
			Rules: code.Rules(c.Task.Code.Rules), Partial: c.Task.Code.Partial,
		},
		Instructions: task.Instructions{Rules: instruct.Rules(c.Task.Instructions.Rules),
			Partial: c.Task.Instructions.Partial},
		Reward: task.Reward{Correct: c.Reward.Correct, Wrong: c.Reward.Wrong, Format: c.Reward.Format},
	}
	mixed := c.Task.Kind == config.MixedTask
	if k := c.Reward.Kind; k != "task" && k != "" && !(mixed && c.JudgesAlone()) {
		t.Reward = task.Reward{Correct: 1} // the reward of the verdict alone, which evaluations show
	}
	if mixed {
		t.Mixed = task.Mixed{Kinds: map[string]string{}, Column: c.Task.Mixed.Column,
			Generate: map[task.Split]map[string]int{}}
		for _, split := range []task.Split{task.Train, task.Val, task.Test} {
			t.Mixed.Generate[split] = c.Task.Mixed.Generate.Counts(string(split))
		}
		for name, kind := range c.Task.Mixed.Kinds {
			t.Mixed.Kinds[name] = fmt.Sprint(kind)
		}
	}
	for _, m := range c.Task.Outcomes.Modes {
		t.Outcomes.Modes = append(t.Outcomes.Modes, task.Mode{Center: m.Center, Width: m.Width, Height: m.Height})
	}
	return t
}
