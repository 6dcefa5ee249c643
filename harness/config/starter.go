package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"exp/train/rl"
)

// Starter says which recipe NewRecipe writes.
type Starter struct {
	Task, Algo string
	Model      string // a folder or hub:ORG/NAME@REVISION; the tasks of StartersFromFiles need it
	Data       string // problems to train on; the same tasks need it
	Test       string // problems for the final scores; empty: Data
	// MaxPositions is how many tokens the model reads, prompt and answer together; 0: not known.
	MaxPositions int
}

// StarterTasks lists the tasks that recipes can be written for.
func StarterTasks() []string { return allTasks() }

// StarterAlgos lists the algorithms that recipes for a task can be written for; "": for any task.
func StarterAlgos(task string) []string {
	var names []string
	for _, a := range algorithms() {
		if task != "outcomes" || !a.Advantage.Components && !a.Advantage.Steps && !shows(a) { // see NewRecipe
			names = append(names, a.Name)
		}
	}
	return names
}

// shows reports whether an algorithm learns from demonstrations.
func shows(a rl.Algorithm) bool { return a.Sets["algo.demonstrations.weight"] != nil }

// StartersFromFiles lists the tasks that need a model and problems of the user.
func StartersFromFiles() []string { return fromFiles() }

// NewRecipe writes a short commented recipe, ready to run: a small model from nothing on
// generated problems, in minutes on a CPU, or the user's model with adapters on the user's
// problems. Task and Algo must be listed.
func NewRecipe(s Starter) (string, error) {
	algo := slices.IndexFunc(algorithms(), func(a rl.Algorithm) bool { return a.Name == s.Algo })
	if algo < 0 || !slices.Contains(StarterTasks(), s.Task) {
		panic(fmt.Sprintf("config: no recipe for %s on %s", s.Algo, s.Task))
	}
	kind := (&Task{Kind: s.Task}).kind()
	files := kind.files
	if files && (s.Model == "" || s.Data == "") {
		return "", errors.New("the task " + s.Task + " needs a model and problems")
	}
	a := algorithms()[algo]
	if !slices.Contains(StarterAlgos(s.Task), s.Algo) {
		if shows(a) {
			return "", errors.New(s.Algo + " learns targets of problems, and outcomes has none")
		}
		if a.Advantage.Steps {
			return "", errors.New(s.Algo + " rewards steps of answers, and an outcome has none")
		}
		return "", errors.New(s.Algo + " weighs several rewards, and outcomes has only one")
	}
	if s.Test == "" {
		s.Test = s.Data
	}
	facts := struct {
		Starter
		Name, Title, Source string
		Sets                []string // lines
		Files, Critic, Flow bool
		Judged              bool // by a reward of the user's
		TaskBlock           string
		Single              bool // one completion per problem
		Agent               bool // which plays episodes
		Steps               bool // which a process reward model scores
		Prompt, New         int  // tokens
		Positions           int
	}{Starter: s, Name: strings.ReplaceAll(s.Task+"-"+s.Algo, "_", "-"), Title: a.Title, Source: a.Source,
		Sets: wrapped(settings(a), 90), Files: files, Critic: a.Advantage.Values, Flow: a.Loss.Name == "flowrl",
		Judged: s.Task == PromptsTask, Single: a.Advantage.Tracks,
		Agent: a.Advantage.Turns, Steps: a.Advantage.Steps,
		TaskBlock: strings.Trim(kind.starter, "\n"), Prompt: kind.prompt, New: kind.answer,
		Positions: kind.prompt + kind.answer}
	if most := s.MaxPositions; most > 0 && facts.Prompt+facts.New > most {
		facts.Prompt = min(facts.Prompt, most/2)
		facts.New = most - facts.Prompt
	}
	var b strings.Builder
	if err := starterText.Execute(&b, facts); err != nil {
		panic("config: " + err.Error()) // the template is fixed
	}
	return b.String(), nil
}

// wrapped joins words with commas in lines of at most width characters.
func wrapped(words []string, width int) []string {
	var lines []string
	for i, w := range words {
		if i < len(words)-1 {
			w += ","
		}
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(w) <= width {
			lines[n-1] += " " + w
			continue
		}
		lines = append(lines, w)
	}
	return lines
}

var starterText = template.Must(template.New("recipe").Parse(`# {{.Algo}} on {{.Task}}: {{.Title}}.
# {{.Source}}
#
#   exp run THIS_FILE --seeds 0-2
#
# What is not written here has its default: exp config schema lists every key, exp config
# explain KEY says what it means, exp config show THIS_FILE prints what is in force.

version: 1
name: {{.Name}}

task:
  kind: {{.Task}}
{{.TaskBlock}}
{{if .Files}}
data:
  train: {source: {{printf "%q" .Data}}}
  val: {source: none}       # a file here, and eval.online.every_steps, draw a curve during training
  test: {source: {{printf "%q" .Test}}}{{if eq .Data .Test}}   # the training problems: bring others for an honest score{{end}}
  max_prompt_tokens: {{.Prompt}}
  filter_overlong: true     # leave longer prompts out

model:
  init: pretrained
  base: {{printf "%q" .Model}}
{{else}}
data:                       # generated; the same problems for every seed
  train: {size: {{if eq .Task "outcomes"}}16{{else if .Single}}512{{else}}4096{{end}}}
  val: {{if eq .Task "outcomes"}}{source: none}{{else}}{size: 64}{{end}}
  test: {size: {{if eq .Task "outcomes"}}16{{else}}128{{end}}}
  max_prompt_tokens: {{.Prompt}}

model:                      # from nothing, a token per character
  arch: {{if eq .Task "outcomes"}}{layers: 1, width: 32, heads: 2, kv_heads: 1, head_size: 16, ffn: 64,
{{- else}}{layers: 4, width: 128, heads: 4, kv_heads: 2, head_size: 32, ffn: 384,{{end}} max_positions: {{.Positions}}, init_std: 0.05}
{{if ne .Task "outcomes"}}
sft:                        # learn to write well-formed answers first; all algorithms share this stage
  steps: 300
  problems_per_step: 64
  optim: {lr: 3e-3, warmup_steps: 20, schedule: cosine, min_lr_ratio: 10%}
{{end}}{{end}}
algo:
  kind: {{.Algo}}
{{- range $i, $line := .Sets}}
  {{if eq $i 0}}# sets: {{else}}#       {{end}}{{$line}}
{{- end}}
  # (defaults of keys in this block: a line of your own changes one)
{{- if .Flow}}
  flowrl:
    beta: {{if eq .Task "outcomes"}}8{{else}}15{{end}}                # scale of the reward
{{- if eq .Task "outcomes"}}
    reward: raw             # group normalisation would change the target
{{- end}}
{{- else if eq .Algo "distill"}}
  reference: models/teacher   # a folder, or hub:ORG/NAME@REVISION: a model with the same tokens that knows more
  # distill: {top_k: 16}      # learn its likeliest tokens at each place, not only the sampled one
{{- else if eq .Algo "dpo"}}
  dpo: {beta: 0.1}          # stay near the start: larger values hold the policy closer
{{- else if eq .Algo "megatron_grpo"}}
  kl: {loss_coef: 0.001}    # stay near the start; 0 drops the reference policy
{{- else}}
  kl: {loss_coef: 0.001, loss_estimator: k3}   # stay near the start; 0 drops the reference policy
{{- end}}
{{- if eq .Algo "dro"}}
  dro: {beta: 0.1}          # twice the weight of the quadratic penalty; the paper fixes no value
{{- end}}
{{- if .Critic}}
  critic:
    warmup_steps: 2         # the value head starts from nothing
    optim: {lr: {{if .Files}}1e-5{{else}}1e-3{{end}}}
{{- end}}
{{- if eq .Algo "prime"}}
  prime:                    # a reward model that learns from verdicts, as large as the policy
    optim: {lr: {{if .Files}}1e-5{{else}}1e-4{{end}}}
{{- end}}
{{- if eq .Algo "gdpo"}}
  gdpo: {weights: [1, 0.5]} # of reward.components
{{- end}}
{{- if or (eq .Algo "gdpo") .Judged .Steps}}

reward:
{{- end}}
{{- if .Steps}}
  kind: model
  weights: models/steps     # yours, a process reward model: exp config explain reward.weights
  steps: min
  credit: {{if eq .Algo "pure"}}min{{else}}sum{{end}}               # each step earns a reward: exp config explain reward.credit
  {{- if not .Judged}}
  outcome_weight: 1         # of the verdict on the answer; 0: steps alone
  {{- end}}
{{- else if .Judged}}
  kind: command             # or judge, or model: exp config explain reward.kind
  command: [python3, reward.py]   # a JSON line in, a score out: exp config explain reward.command
{{- end}}
{{- if eq .Algo "gdpo"}}
  components: [correct, format]
{{- end}}

rollout:
  n: {{if .Single}}1                      # completion per problem, judged by the problem's tracked value{{else}}8                      # completions per problem: the group{{end}}
  max_new_tokens: {{.New}}
{{- if .Agent}}
  tools: {kind: agent, command: [python3, agent.py]}   # yours: exp config explain rollout.tools.conversations
{{- end}}

train:
  steps: {{if .Files}}100{{else}}40{{end}}
  prompts_per_step: {{if .Files}}{{if .Single}}64{{else}}8{{end}}{{else if eq .Task "outcomes"}}16{{else if .Single}}256{{else}}64{{end}}      # problems; times rollout.n completions
  prompts_per_update: {{if and .Single (ne .Task "outcomes")}}64{{else if .Files}}8{{else}}16{{end}}    # problems per optimizer update
{{- if .Files}}
  lora: {rank: 16, alpha: 32, targets: [all]}   # adapters; rank 0 trains all weights
  optim: {lr: 1e-4}
{{- else}}
  optim: {lr: 1e-4}
{{- end}}

checkpoint: {every_steps: 10}

eval:
{{- if and (not .Files) (ne .Task "outcomes")}}
  online: {every_steps: 10, problems: 32, n: 2}   # the curve val/pass@1
{{- end}}
  final: {suites: [test], n: {{if .Files}}4, pass_k: [1, 4]{{else}}8, pass_k: [1, 2, 4, 8]{{end}}}

# run: {stop_if: ["actor/entropy < 0.02"]}    # save and stop early
# notify: {command: [./tell-me.sh]}           # when the run ends
`))
