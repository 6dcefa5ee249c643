package translate

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// environment is an entry of the file that --langrl-env-config names.
type environment struct {
	Type string         `yaml:"agent_type"`
	Args map[string]any `yaml:"agent_args"`
	// Weight is the share of the rollouts.
	Weight   float64 `yaml:"weight"`
	EvalOnly bool    `yaml:"evaluation_only"`
}

// dataset is what we know of an agent of Megatron's examples.
type dataset struct {
	kind, train, val string
	rows             int // of the training file, from its start; 0 is all
}

// agents are Megatron's example agents by the names of their classes. Their data are on the hub.
func agents() map[string]dataset {
	const shard = "data/train-00000-of-00001.parquet@main"
	return map[string]dataset{
		"CountdownAgent": {kind: "countdown", train: "hub:Jiayi-Pan/Countdown-Tasks-3to4/" + shard, rows: 327680,
			val: "generated"},
		"GSM8KAgent": {kind: "math", train: "hub:openai/gsm8k/main/train-00000-of-00001.parquet@main",
			val: "hub:openai/gsm8k/main/test-00000-of-00001.parquet@main"},
		"DAPOAgent": {kind: "math", train: "hub:BytedTsinghua-SIA/DAPO-Math-17k/data/dapo-math-17k.parquet@main"},
		"AIMEAgent": {kind: "math", val: "hub:Maxwell-Jia/AIME_2024/aime_2024_problems.parquet@main"},
		"OpenMathInstructAgent": {kind: "math", rows: 327680,
			train: "hub:nvidia/OpenMathInstruct-2/data/train-*.parquet@main"},
		"BigMathAgent": {kind: "math", train: "hub:SynthLabsAI/Big-Math-RL-Verified/" + shard},
	}
}

// environments translates the file of environments: one task, its data and its rewards.
func (m *megatron) environments() {
	list, err := m.environmentFile()
	if err != nil {
		m.note("%v: --config-path FOLDER says where it is; without it the task is not known", err)
	}
	var kind string
	var train, val []string
	rows := 0
	for _, e := range list {
		name := e.Type[strings.LastIndexByte(e.Type, '.')+1:]
		d, ok := agents()[name]
		trains := !e.EvalOnly && e.Weight > 0
		switch {
		case !ok:
			m.note("the agent %s is none of Megatron's examples: write its rewards as a reward.command", e.Type)
			continue
		case kind != "" && d.kind != kind:
			m.note("%s: a run has one task, %s; train on the others in runs of their own", name, kind)
			continue
		}
		kind = d.kind
		if trains && d.train != "" {
			train = append(train, d.train)
			rows += d.rows
			m.rewards(name, d.kind, e.Args)
		}
		if d.val != "" {
			val = append(val, d.val)
		}
	}
	m.task(kind, train, val, rows, err == nil)
}

// environmentFile reads the file of environments.
func (m *megatron) environmentFile() (list []environment, err error) {
	name := m.text("langrl-env-config", "")
	if name == "" {
		return nil, fmt.Errorf("--langrl-env-config names no file of environments")
	}
	file, ok := m.places.find(name)
	if !ok {
		return nil, fmt.Errorf("the environments' file %s is not here", name)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the environments' file %s: %w", file, err)
	}
	m.note("read %s, which --langrl-env-config names", file)
	return list, nil
}

// answerBoxed asks for the answer as Megatron's agents do, in words of ours: they add such a sentence to each
// problem.
const answerBoxed = `Think step by step. Put the final answer into \boxed{}.`

// task puts the task and its data.
func (m *megatron) task(kind string, train, val []string, rows int, read bool) {
	if kind == "" {
		kind = "math"
	}
	m.put("task.kind", kind)
	switch {
	case kind == "countdown":
		m.put("task.countdown.use", "all")
		m.put("task.countdown.largest_number", "99")
		m.put("task.countdown.largest_target", "99")
		m.note("a problem is asked as 3,5,7=22: and answered on the last line: Megatron's agent asks in words and " +
			"reads the answer between <answer> tags")
		m.note("data.val: Megatron evaluates on the rows after training's; generated problems of the " +
			"same size stand for them")
	default:
		m.put("task.math.grader", "exp")
		m.putText("data.system", answerBoxed)
		m.note("data.system asks for a boxed answer: Megatron's agents add such a sentence to each problem instead")
	}
	m.sources("train", train)
	m.sources("val", val)
	if len(train) > 1 {
		m.note("several environments: their weights are the shares of rollouts in Megatron; here each has the share " +
			"of its rows")
	}
	if rows > 0 && len(train) == 1 {
		m.put("data.train.max_samples", strconv.Itoa(rows))
		m.put("data.select", "first")
	}
	if slices.ContainsFunc(train, func(s string) bool { return strings.Contains(s, "DAPO") }) {
		m.note("DAPO's file asks for the answer in a line of its own; Megatron's agent cuts that request and keeps " +
			"the last 1024 problems out of training")
	}
	if len(train) == 0 && read {
		m.note("no environment that trains is known here: set data.train.source")
	}
	if len(val) == 0 {
		m.put("data.val.source", "none")
		m.putList("eval.final.suites")
		return
	}
	m.putList("eval.final.suites", "val")
	m.put("eval.final.n", "1")
	m.put("eval.final.temperature", m.text("rl-default-temperature", "1"))
}

// sources puts the files of a split.
func (m *megatron) sources(split string, files []string) {
	if len(files) == 0 {
		return
	}
	m.putText("data."+split+".source", files[0])
	if len(files) > 1 {
		m.putTexts("data."+split+".more", files[1:])
	}
}

// rewards translates an agent's own rewards. Countdown's are fixed.
func (m *megatron) rewards(agent, kind string, args map[string]any) {
	format, wrong := 0.0, 0.0
	if kind == "countdown" {
		format = 0.1
	}
	for _, x := range []struct {
		name string
		to   *float64
	}{{"format_reward", &format}, {"negative_reward", &wrong}} {
		if v, ok := args[x.name]; ok {
			*x.to = float(v)
		}
	}
	m.putNumber("reward.wrong", wrong)
	m.putNumber("reward.format", format)
	if part := float(args["partial_end_reward"]); part != 0 {
		m.note("%s: partial_end_reward %g, for a right answer with text after it, is not offered: it scores "+
			"reward.correct", agent, part)
	}
}

// float returns a number of a YAML file; 0 for other values.
func float(x any) float64 {
	v, err := strconv.ParseFloat(fmt.Sprint(x), 64)
	if err != nil {
		return 0
	}
	return v
}
