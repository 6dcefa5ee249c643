package config

import (
	"fmt"
	"time"
)

func commandReward() rewardKind {
	return rewardKind{name: "command",
		about: "a program of yours: reward.command", judges: true, program: true,
		parts: true, retries: usualRetries, keys: commandKeys, checks: commandChecks,
		help: map[string]string{"reward.command": aboutCommand}}
}

func commandKeys() []Key {
	return []Key{
		{Path: "reward.command", Kind: String, List: true,
			Help: "program and arguments that score completions, one JSON line in and one out for each"},
		{Path: "reward.files", Kind: String, List: true, Default: is([]string{}), Role: External,
			Help: "files and folders that the program reads in addition to those on its command line"},
		{Path: "reward.workers", Kind: Int, Default: is(1), Range: between(1, 256), Unit: "processes",
			Role: Nonsemantic,
			Help: "copies of the program that run at once"},
		{Path: "reward.batch", Kind: Int, Default: is(16), Range: between(1, 65536), Unit: "completions",
			Role: Nonsemantic,
			Help: "completions that a copy holds unanswered; it must answer them without waiting for more"},
		{Path: "reward.row_limit", Kind: Duration, Default: is(time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "longest silence of the program while completions wait; then it is restarted"},
		{Path: "reward.batch_limit", Kind: Duration, Default: is(10 * time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "time limit for all completions of a batch"},
		{Path: "reward.restarts", Kind: Int, Default: is(20), Range: atLeast(0), Role: Nonsemantic,
			Help: "how often copies may die or fall silent in one step before the run ends (exit 8)"},
	}
}

// commandChecks checks the settings of a program.
func commandChecks() []check {
	return []check{
		{[]string{"reward.command"}, func(r *Run) (string, string) {
			if len(r.Reward.Command) == 0 || r.Reward.Command[0] == "" {
				return "reward.command names no program",
					"list the program and its arguments: [./my-reward, --strict]"
			}
			return "", ""
		}},
		{[]string{"reward.row_limit", "reward.batch_limit"}, func(r *Run) (string, string) {
			if r.Reward.RowLimit > r.Reward.BatchLimit {
				return fmt.Sprintf("reward.row_limit (%v) is above reward.batch_limit (%v)", r.Reward.RowLimit,
					r.Reward.BatchLimit), "a batch has at least one row"
			}
			return "", ""
		}},
	}
}

// aboutCommand is the help of reward.command.
const aboutCommand = `
  The program is started once for each of reward.workers, in the current directory,
  with your rights and environment and without a sandbox. For every completion it reads a
  line like

    {"id": "7", "problem": "cd-12", "prompt": "…", "response": "…", "turns": 1, "gold": "…",
     "data_source": "countdown", "extra": {…}}

  and writes a line, in any order, flushed before it waits for more input:

    {"id": "7", "score": 0.5}
    {"id": "8", "score": 1, "components": {"style": 0.2, "length": 0.8}}
    {"id": "9", "error": "no unit in the question"}
    {"id": "10", "score": 0.9, "correct": true, "answer": "Oslo"}    (of task prompts)

  turns counts the policy's turns (rollout.tools). data_source is the row's, or else its task.
  extra is the problem's data; extra.columns has the columns of the data files that data.keep
  names. Of task prompts, gold is empty where the data has none. correct says whether the
  completion is right; by default task.prompts.pass decides. answer is its final answer, by
  which votes and different answers are counted; by default the whole text.

  The score may depend on this line only: reward.batch and reward.workers must not change
  it. Standard error goes to the log. A line that is not an answer, an unknown id or a second
  answer ends the run (exit 8). If the program ends or is silent for reward.row_limit, it is
  restarted and asked row by row for the missing answers, reward.retries times; rows that it
  still does not answer are not graded.

  Program and arguments are part of the experiment, and so are the contents of the
  program and of each argument that is a file or folder; list other files that it reads
  in reward.files. In Python, which prints nothing else on standard output:

    import json, sys
    for line in sys.stdin:
        row = json.loads(line)
        score = float(row["gold"] in row["response"])
        print(json.dumps({"id": row["id"], "score": score}), flush=True)

    reward: {kind: command, command: [python3, reward.py]}
    reward: {kind: command, command: [go, run, ./configs/rewards/distance]}
`
