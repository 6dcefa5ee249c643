package config

import (
	"strings"
	"testing"
)

// TestConflicts sets each pair of keys once at the edge where they still go
// together and once just beyond.
func TestConflicts(t *testing.T) {
	math := "task.kind=math data.train.source=a.jsonl eval.final.suites=[math500]"
	cases := []struct {
		name, good, bad string // --set expressions, separated by spaces
		want            string // part of the one error
	}{
		{"update divides step", "train.prompts_per_update=4", "train.prompts_per_update=3", "prompts_per_update (3) does not divide train.prompts_per_step (8)"},
		{"update above step", "train.prompts_per_update=8", "train.prompts_per_update=16", "prompts_per_update (16) does not divide"},
		{"step within data", "data.train.size=8", "data.train.size=7", "train.prompts_per_step (8) is above data.train.size (7)"},
		{"numbers", "task.countdown.min_numbers=4", "task.countdown.min_numbers=5", "min_numbers (5) is above task.countdown.max_numbers (4)"},
		{"operators", "task.countdown.operators=-+", "task.countdown.operators=++", `operators has '+' twice`},
		{"heads", "model.arch.kv_heads=1", "model.arch.heads=3 model.arch.kv_heads=2", "kv_heads (2) does not divide model.arch.heads (3)"},
		{"numerics of bf16", "model.dtype=bf16 compute.numerics=matrix/16x25", "compute.numerics=matrix/16x25", "compute.numerics is matrix/16x25, but model.dtype is f32"},
		{"numerics of f32", "compute.numerics=cpu/fma", "model.dtype=bf16 compute.numerics=cpu/fma", "compute.numerics is cpu/fma, but model.dtype is bf16"},
		{"head size", "model.arch.head_size=6", "model.arch.head_size=7", "head_size (7) is odd"},
		{"positions", "model.arch.max_positions=2072", "model.arch.max_positions=2071", "data.max_prompt_tokens (2048) + max_new_tokens (24) = 2072"},
		{"positions of the evaluation", "eval.final.max_new_tokens=2048", "eval.final.max_new_tokens=2049", "= 4097"},
		{"micro-batch", "compute.micro_batch_tokens=2072", "compute.micro_batch_tokens=2071", "rollout.max_new_tokens (24) = 2072"},
		{"pages", "rollout.page_tokens=32", "rollout.page_tokens=24", "rollout.page_tokens (24) is not a multiple of 16"},
		{"penalty of parts", "algo={kind: gdpo,overlong: {buffer: 0.2},filter_groups: {metric: seq_reward}}", "algo={kind: gdpo,overlong: {buffer: 0.2}}", "algo.overlong.buffer changes the reward, but gdpo reads its parts alone"},
		{"penalties of DAPO", "algo={kind: dapo,advantage: gdpo,overlong: {buffer: 0}} reward.components=[format]", "algo={kind: dapo,advantage: gdpo} reward.components=[format]", "algo.overlong.buffer changes the reward"},
		{"penalty that nothing reads", "algo={kind: distill,reference: t,overlong: {buffer: 0.2},filter_groups: {metric: seq_reward}}", "algo={kind: distill,reference: t,overlong: {buffer: 0.2}}", "algo.overlong.buffer changes the reward, but algo.advantage none reads no reward"},
		{"a teacher that is the start", "algo={kind: distill,reference: t}", "algo={kind: distill}", "the policy would learn from the weights that it starts from"},
		{"nothing to learn from", "algo={kind: grpo,advantage: none,reference: t,kl: {loss_coef: 1}}", "algo={kind: grpo,advantage: none}", "algo.advantage none learns nothing from rewards, and nothing else teaches"},
		{"KL of parts", "algo={kind: gdpo,kl: {reward_coef: 0.1},filter_groups: {metric: seq_final_reward}}", "algo={kind: gdpo,kl: {reward_coef: 0.1},filter_groups: {metric: seq_reward}}", "algo.kl.reward_coef changes the reward, but gdpo reads its parts alone"},
		{"random with tokenizer", "tokenizer.kind=char", "tokenizer.kind=model", "a random model comes with no tokenizer"},
		{"pretrained with char", "model={init: pretrained,base: x} tokenizer.kind=model", "model={init: pretrained,base: x} tokenizer.kind=char", "knows only its own tokens"},
		{"reward", "reward.wrong=0.5", "reward.wrong=1", "reward.wrong (1) is not below reward.correct (1)"},
		{"warm-up", "train.optim.warmup_steps=9", "train.optim.warmup_steps=10", "warmup_steps (10) does not end before train.steps (10)"},
		{"no steps need no warm-up", "train.steps=0 train.optim.warmup_steps=5", "sft={steps: 3,optim: {lr: 1e-3,warmup_steps: 3}}", "sft.optim.warmup_steps (3) does not end before sft.steps (3)"},
		{"critic warm-up", "algo={kind: ppo,critic: {warmup_steps: 9}}", "algo={kind: ppo,critic: {warmup_steps: 10}}", "critic.warmup_steps (10)"},
		{"critic's own warm-up", "algo={kind: ppo,critic: {optim: {warmup_steps: 9}}}", "algo={kind: ppo,critic: {optim: {warmup_steps: 10}}}", "critic.optim.warmup_steps (10)"},
		{"warm-up after the critic's", "algo={kind: ppo,critic: {warmup_steps: 5}} train.optim.warmup_steps=4", "algo={kind: ppo,critic: {warmup_steps: 5}} train.optim.warmup_steps=5", "warmup_steps (5) does not end before train.steps (10): it begins after algo.critic.warmup_steps (5)"},
		{"muon's matrices", "train.optim.kind=muon",
			"train.optim.kind=muon compute.tensor_parallel=2", "train.optim.kind: muon needs whole matrices, but compute.tensor_parallel (2) cuts them"},
		{"muon's matrices of a critic", "algo={kind: ppo,critic: {optim: {kind: muon}}}",
			"algo={kind: ppo,critic: {optim: {kind: muon}}} compute.tensor_parallel=2", "algo.critic.optim.kind: muon needs whole matrices"},
		{"group of flowrl", "rollout.n=1 algo.flowrl.reward=raw", "rollout.n=1", "algo.flowrl.reward advantage compares the completions"},
		{"group of grpo", "rollout.n=2 algo.kind=grpo", "rollout.n=1 algo.kind=grpo", "grpo compares the completions"},
		{"FlowRL's own advantages", "algo={kind: dapo,loss: flowrl}", "algo={kind: rloo,loss: flowrl}", "algo.kind rloo stands for the advantage rloo, but the loss flowrl brings its own"},
		{"filter of one", "rollout.n=2 algo.kind=dapo", "rollout.n=1 algo={kind: ppo,filter_groups: {metric: acc}}", "algo.filter_groups compares"},
		{"bounds of a filter", "algo={kind: grpo,filter_groups: {metric: acc,low: 0.2,high: 0.2}}", "algo={kind: grpo,filter_groups: {metric: acc,low: 0.3,high: 0.2}}", "algo.filter_groups.low (0.3) is above algo.filter_groups.high (0.2)"},
		{"updates of the process reward model", "algo={kind: prime,prime: {prompts_per_update: 4}}", "algo={kind: prime,prime: {prompts_per_update: 3}}", "algo.prime.prompts_per_update (3) does not divide train.prompts_per_step (8)"},
		{"its warm-up", "algo={kind: prime,prime: {optim: {warmup_steps: 9}}}", "algo={kind: prime,prime: {optim: {warmup_steps: 10}}}", "algo.prime.optim.warmup_steps (10)"},
		{"its weights", "algo={kind: prime,prime: {model: x}}", "algo={kind: prime,prime: {model: x}} train.lora.rank=2", "algo.prime.model cannot be another model"},
		{"its reference", "algo={kind: prime,reference: x}", "algo={kind: prime,teachers: [x],teacher_sources: [y]}", "log-ratios to one reference, but algo.teachers names others"},
		{"its verdicts", "algo={kind: prime,filter_groups: {metric: score}}", "algo={kind: prime,filter_groups: {metric: score}} reward.kind=confidence", "learns from verdicts, which reward.kind confidence does without"},
		{"covariance bounds", "algo={kind: clip_cov}", "algo={kind: clip_cov,cov: {low: 5}}", "algo.cov.low (5) is not below"},
		{"rollout weights", "algo.rollout_correction={weights: token,weight_low: 0.5}", "algo.rollout_correction={weights: token,weight_low: 3}", "weight_low (3) is above"},
		{"rejection bounds", "algo.rollout_correction={reject: [seq_max_k2],reject_bounds: ['0.1']}", "algo.rollout_correction={reject: [seq_max_k2],reject_bounds: ['0.1_0.2']}", "must not have a lower bound"},
		{"teachers and sources", "algo={kind: distill,teachers: [a],teacher_sources: [x]}",
			"algo={kind: distill,teachers: [a],teacher_sources: [x,y]}", "algo.teachers has 1 models, algo.teacher_sources 2"},
		{"a key that problems lack", "algo={kind: distill,teachers: [a],teacher_sources: [x]}",
			"algo={kind: distill,teachers: [a],teacher_sources: [x],teacher_key: extra_info.task}", "problems do not keep the column extra_info"},
		{"a source twice", "algo={kind: distill,teachers: [a,b],teacher_sources: [x,y]}", "algo={kind: distill,teachers: [a,b],teacher_sources: [x,x]}", `algo.teacher_sources has "x" twice`},
		{"bypass loss", "algo={kind: gpg,rollout_correction: {preset: bypass_pg_is}}", "algo={kind: grpo,rollout_correction: {preset: bypass_pg_is}}", "is for the loss reinforce, not for ppo"},
		{"bypass mode", "algo={kind: grpo,rollout_correction: {mode: bypass}}", "algo={kind: gspo,rollout_correction: {mode: bypass}}", "the loss gspo does not support it"},
		{"ppo has no group", "rollout.n=1 algo.kind=ppo", "rollout.n=1 algo.flowrl.reward=adv_no_std", "adv_no_std compares"},
		{"weight", "algo.flowrl.weight={low: 1,high: 1}", "algo.flowrl.weight={low: 1.1,high: 1}", "weight.low (1.1) is above algo.flowrl.weight.high (1)"},
		{"weight without limit", "algo.flowrl.weight={low: 99,high: null}", "algo.flowrl.weight.low=11", "weight.low (11) is above algo.flowrl.weight.high (10)"},
		{"online needs data", "eval.online.every_steps=5", "eval.online.every_steps=5 data.val.source=none", "data.val.source is none"},
		{"online problems", "eval.online={every_steps: 5,problems: 128}", "eval.online={every_steps: 5,problems: 129}", "eval.online.problems (129) is above data.val.size (128)"},
		{"greedy online", "eval.online={every_steps: 5,n: 1,temperature: 0}", "eval.online={every_steps: 5,n: 2,temperature: 0}", "all 2 completions of a problem are the same"},
		{"greedy final", "eval.final={n: 1,temperature: 0}", "eval.final={temperature: 0}", "all 16 completions of a problem are the same"},
		{"pass@k", "eval.final={n: 3,pass_k: [3]}", "eval.final={n: 3,pass_k: [4]}", "pass_k has 4, above eval.final.n (3)"},
		{"problem once", `eval.final.prompt="{problem}\\boxed{}"`, `eval.final.prompt="{problem}{problem}"`, "eval.final.prompt has {problem} 2 times"},
		{"rising k", "eval.final.pass_k=[1,2,16]", "eval.final.pass_k=[1,2,2]", "pass_k is not rising at 2"},
		{"suite test", "eval.final.suites=[aime24] data.test.source=none", "eval.final.suites=[test] data.test.source=none", "eval.final.suites has test, but data.test.source is none"},
		{"suite val", "eval.final.suites=[val]", "eval.final.suites=[val] data.val.source=none", "eval.final.suites has val, but data.val.source is none"},
		{"suite twice", "eval.final.suites+=val", "eval.final.suites+=test", "eval.final.suites has test twice"},
		{"vary", "compare.vary=[train.optim.*]", "compare.vary=[trian]", `"trian", which matches no key`},
		{"vary a block", "compare.vary=[algo.kl]", "compare.vary=[algo.kl.nothing]", `"algo.kl.nothing", which matches no key`},
		{"nothing to train on", "data.train.size=9", "data.train.source=none", "data.train.source is none"},
		{"math is not generated", math, math + " data.val.source=generated", "the task math cannot generate problems"},
		{"generated data are counted", "data.val.size=1", "data.val.size=0", "data.val.size is 0"},
		{"a size of nothing", "data.val={source: none,size: 0}", "data.val={source: none,size: 1}", "data.val.size is 1, but data.val.source is none"},
		{"more sft data than there are", "data.train.size=9 sft={steps: 3,data_size: 9,problems_per_step: 4,optim: {lr: 1e-3}}", "data.train.size=9 sft={steps: 3,data_size: 10,problems_per_step: 4,optim: {lr: 1e-3}}", "sft.data_size (10) is above data.train.size (9)"},
		{"conversations, and nothing to train on", "sft={steps: 3,source: a.jsonl,optim: {lr: 1e-3}}", "sft={steps: 3,source: a.jsonl,optim: {lr: 1e-3}} data.train.source=none", "nothing to train on after sft"},
		{"a mask of one text", "sft={steps: 3,mask: [a,b],optim: {lr: 1e-3}}", "sft={steps: 3,mask: [a],optim: {lr: 1e-3}}", "sft.mask needs two texts"},
		{"sft step above its data", "sft={steps: 3,data_size: 9,problems_per_step: 9,optim: {lr: 1e-3}}", "sft={steps: 3,data_size: 9,problems_per_step: 10,optim: {lr: 1e-3}}", "sft.problems_per_step (10) is above sft.data_size (9)"},
		{"renewed reference", "algo={kind: grpo,kl: {loss_coef: 0.1},reference_every: 2} train.steps=3", "algo={kind: grpo,kl: {loss_coef: 0.1},reference_every: 3} train.steps=3", "algo.reference_every (3) does not end before train.steps (3)"},
		{"renewed base", "algo={kind: grpo,kl: {loss_coef: 0.1}} train.lora.rank=2", "algo={kind: grpo,kl: {loss_coef: 0.1},reference_every: 2} train.lora.rank=2", "the reference of adapters is the weights under them"},
		{"renewed reference of process rewards", "algo={kind: prime}", "algo={kind: prime,reference_every: 2}", "process rewards are ratios to the reference"},
		{"renewed teachers", "algo={kind: grpo,kl: {loss_coef: 0.1},teachers: [m],teacher_sources: [s]}", "algo={kind: grpo,kl: {loss_coef: 0.1},reference_every: 2,teachers: [m],teacher_sources: [s]}", "algo.teachers are other models"},
		{"demonstrations alone", "algo={kind: luffy,advantage: reinforce_plus_plus} rollout.n=2",
			"algo={kind: luffy,advantage: reinforce_plus_plus} rollout.n=1",
			"rollout.n is 1, and a demonstration would leave"},
		{"demonstrations and a critic", "algo={kind: ppo,advantage: rloo,demonstrations: {weight: 1}}",
			"algo={kind: ppo,demonstrations: {weight: 1}}", "algo.advantage needs completions of the policy itself"},
		{"demonstrations and process rewards", "algo={kind: prime,advantage: rloo,demonstrations: {weight: 1}}",
			"algo={kind: prime,demonstrations: {weight: 1}}", "algo.advantage needs completions of the policy itself"},
		{"demonstrations in a whole loss", "algo={kind: megatron_grpo,demonstrations: {weight: 0}}",
			"algo={kind: megatron_grpo,demonstrations: {weight: 1}}", "algo.loss cannot leave the tokens"},
		{"demonstrations by a loss of rows", "algo.kind=luffy", "algo={kind: luffy,loss: gspo}", "algo.loss cannot leave the tokens"},
		{"demonstrations' own rewards", "algo.kind=luffy", "algo.kind=luffy reward.kind=confidence",
			"reward.kind takes rewards from what the policy samples"},
		{"demonstrations' KL", "algo={kind: luffy,kl: {loss_coef: 0.1}}", "algo={kind: luffy,kl: {reward_coef: 0.1}}",
			"algo.kl.reward_coef charges what the policy samples"},
		{"demonstrations, bypass", "algo={kind: luffy,rollout_correction: {mode: decoupled}}",
			"algo={kind: luffy,rollout_correction: {mode: bypass}}", "mode is bypass, but algo.demonstrations.weight"},
		{"stale demonstrations", "algo.kind=luffy rollout.staleness=0", "algo.kind=luffy rollout.staleness=1", "rollout.staleness is above 0"},
		{"demonstrations of tools", "algo.kind=luffy", "algo.kind=luffy rollout.tools.kind=python", "a target has no calls of rollout.tools"},
		{"recorded demonstrations", "algo.kind=luffy",
			"algo.kind=luffy rollout.source=recorded rollout.recorded=a.jsonl",
			"rollout.source is recorded, but algo.demonstrations.weight"},
		{"demonstrations of outcomes", "algo.kind=luffy",
			"algo.kind=luffy task={\"kind\":\"outcomes\",\"outcomes\":{\"modes\":[{\"center\":1,\"width\":1,\"height\":1}]}}",
			"problems of task.kind outcomes have no target"},
		{"a form's expression", "rollout.form={kind: regex,regex: a+}", "rollout.form={kind: regex,regex: '(?=a)'}", "rollout.form.regex: invalid or unsupported Perl syntax"},
		{"a form's schema", `rollout.form={kind: json_schema,schema: '{"type": "integer"}'}`, `rollout.form={kind: json_schema,schema: '{"not": {}}'}`,
			`rollout.form.schema: the schema has "not", which is not supported`},
		{"a form's texts", "rollout.form={kind: choice,choice: [a]}", "rollout.form={kind: choice,choice: []}", "rollout.form.choice: must have at least one text"},
		{"a form next to tools", "rollout.form.kind=json_object", "rollout.form.kind=json_object rollout.tools.kind=python", "rollout.form.kind is json_object, and completions with rollout.tools"},
		{"turns of no agent", "algo.kind=gigpo rollout.tools={kind: agent,command: [a]}", "algo.kind=gigpo",
			"gigpo compares the turns of an agent's episodes, but rollout.tools.kind is none"},
		{"turns of tools", "algo.kind=gigpo rollout.tools={kind: agent,command: [a]}", "algo.kind=gigpo rollout.tools.kind=python",
			"gigpo compares the turns of an agent's episodes, but rollout.tools.kind is python"},
		{"recorded turns", "algo.kind=gigpo rollout.tools={kind: agent,command: [a]}",
			"algo.kind=gigpo rollout.source=recorded rollout.recorded=a.jsonl",
			"gigpo compares the turns of an agent's episodes, which recorded rollouts do not tell apart"},
		{"turns of one episode", "algo.kind=gigpo rollout.tools={kind: agent,command: [a]}",
			"algo.kind=gigpo rollout.tools={kind: agent,command: [a]} rollout.n=1", "rollout.n is 1, but gigpo compares"},
		{"single stream", "algo.kind=spo rollout.n=1", "algo.kind=spo rollout.n=2", "rollout.n is 2, but spo compares the one completion"},
		{"single stream in order", "algo.kind=spo rollout.n=1", "algo.kind=spo rollout.n=1 data.order=sequential", "data.order sequential has no effect"},
		{"single stream's rewards", "algo.kind=spo rollout.n=1", "algo.kind=spo rollout.n=1 reward.wrong=-1", "spo tracks rewards from 0 to 1"},
		{"single stream, recorded", "algo.kind=spo rollout.n=1", "algo.kind=spo rollout.n=1 rollout.source=recorded rollout.recorded=a.jsonl", "rollout.source is recorded, but spo chooses"},
		{"modes", "task={kind: outcomes,outcomes: {count: 4,modes: [{center: 3,width: 1,height: 1}]}}", "task={kind: outcomes,outcomes: {count: 3,modes: [{center: 3,width: 1,height: 1}]}}", "modes[0].center (3) is not below task.outcomes.count (3)"},
		{"no modes", "rollout.n=3", "task={kind: outcomes,outcomes: {modes: []}}", "task.outcomes.modes is empty"},
	}
	// Within a flow value a space follows a colon only; others separate expressions.
	split := func(s string) []string {
		return strings.Split(strings.NewReplacer(": ", ":\x00", " ", "\n", "\x00", " ").Replace(strings.ReplaceAll(s, ": ", ":\x00")), "\n")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			load(t, Input{File: "testdata/plain.yaml", Sets: split(c.good)})
			errs := failure(t, Input{File: "testdata/plain.yaml", Sets: split(c.bad)})
			if len(errs) != 1 || errs[0].Code != CodeConflict || !strings.Contains(errs[0].Message, c.want) {
				t.Errorf("%s: got\n%s\nwant one %s with %q", c.bad, errs, CodeConflict, c.want)
			}
		})
	}
}
