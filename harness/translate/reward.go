package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// adapter runs a compute_score of verl's as a program of reward.command: a line of JSON in, one out. Its
// arguments are the file, the function's name and more keyword arguments as JSON. A function of the batch
// manager gets lists of one.
const adapter = `import asyncio, importlib.util, inspect, json, sys
spec = importlib.util.spec_from_file_location("custom", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
score = getattr(module, sys.argv[2])
more = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
lists = "solution_strs" in inspect.signature(score).parameters
out, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    row = json.loads(line)
    columns = (row.get("extra") or {}).get("columns") or {}
    info = columns.get("extra_info") or {}
    info = {**info, "num_turns": 2 * row.get("turns", 1), "rollout_reward_scores": {}}
    args = {"data_source": row["data_source"], "solution_str": row["response"],
            "ground_truth": (columns.get("reward_model") or {}).get("ground_truth", row["gold"]), "extra_info": info}
    if lists:
        args = {name + "s": [value] for name, value in args.items()}
    got = score(**{**args, **more})
    if inspect.isawaitable(got):
        async def wait(result):
            return await result
        got = asyncio.run(wait(got))
    if lists:
        got = got[0]
    said = {}
    if isinstance(got, dict):
        if got.get("acc") is not None:
            said["correct"] = bool(got["acc"])
        if got.get("pred") is not None:
            said["answer"] = str(got["pred"])
        got = got["score"]
    elif isinstance(got, (list, tuple)):
        got = got[0]
    print(json.dumps({"id": row["id"], "score": float(got), **said}), file=out, flush=True)
`

// custom are the blocks of a reward function of the user's.
func custom() []string {
	return []string{"custom_reward_function.", "reward.custom_reward_function."}
}

// rewardFunction returns the file and the name of the user's reward function; the file is empty without one.
func (t *verl) rewardFunction() (path, name string) {
	name = "compute_score"
	for _, at := range custom() {
		path, name = t.text(at+"path", path), t.text(at+"name", name)
	}
	return path, name
}

// rewardModel reports whether a reward model scores completions. PRIME's settings of one are its process reward's.
func (t *verl) rewardModel() bool {
	return !t.prime && t.on("reward_model.enable", t.on("reward.reward_model.enable", false))
}

// gradedByDefault reports whether verl's default_compute_score gives the rewards, by the data source of each row.
func (t *verl) gradedByDefault() bool {
	path, _ := t.rewardFunction()
	return path == "" && !t.rewardModel() && t.manager() != "prob"
}

func (t *verl) rewards() {
	path, name := t.rewardFunction()
	more := t.arguments()
	model := t.rewardModel()
	switch {
	case path != "":
		t.put("reward.kind", "command")
		argv := fmt.Sprintf("python3, -c, %q, %q, %q", adapter, t.places.found(path), name)
		if more != "" {
			argv += fmt.Sprintf(", %q", more)
		}
		t.out["reward.command"] = "[" + argv + "]"
		t.judged()
		for _, column := range rewardColumns(t.places.found(path), name) {
			t.keep(column)
		}
	case t.manager() == "prob" && !model:
		t.likelihood()
	case t.out["task.math.grader"] != "" && !model:
		t.wrong()
	}
	if model {
		t.judged()
		t.put("reward.kind", "model")
		from := t.text("reward_model.model.path", t.text("reward.reward_model.model_path", ""))
		t.putText("reward.weights", weights(from))
	}
	for _, fusion := range []string{"reward_model.sandbox_fusion.", "reward.sandbox_fusion.", "sandbox_fusion."} {
		if url := t.text(fusion+"url", ""); url != "" {
			t.note("%surl: programs run in the sandbox here", fusion)
		}
		t.used[fusion+"max_concurrent"], t.used[fusion+"memory_limit_mb"] = true, true
	}
	if key := t.text("data.reward_fn_key", "data_source"); key != "data_source" {
		t.note("data.reward_fn_key %s: the grader of a row follows its data_source here", key)
	}
	known := []string{"naive", "dapo", "prime", "prob", "batch", "remote"}
	if manager := t.manager(); !slices.Contains(known, manager) {
		t.note("the reward manager %s: see reward.kind", manager)
	}
}

// judged makes the task the one that leaves every verdict to the reward, as verl does in training and validation.
func (t *verl) judged() {
	delete(t.out, "task.math.grader")
	t.put("task.kind", "prompts")
}

// manager returns the name of the reward manager.
func (t *verl) manager() string {
	name := "naive"
	for _, key := range []string{"reward.reward_manager.name", "reward_manager.name", "reward_model.reward_manager"} {
		name = t.text(key, name)
	}
	return name
}

// arguments returns reward_kwargs of the user's function as JSON, or an empty text.
func (t *verl) arguments() string {
	tree := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(t.in)) {
		for _, at := range custom() {
			path, ok := strings.CutPrefix(key, at+"reward_kwargs.")
			if !ok {
				continue
			}
			t.used[key] = true
			var value any
			if err := yaml.Unmarshal([]byte(lowered(t.in[key])), &value); err != nil || t.in[key] == "None" {
				value = nil
			}
			parts := strings.Split(path, ".")
			block := tree
			for _, name := range parts[:len(parts)-1] {
				inner, ok := block[name].(map[string]any)
				if !ok {
					inner = map[string]any{}
					block[name] = inner
				}
				block = inner
			}
			block[parts[len(parts)-1]] = value
		}
	}
	if len(tree) == 0 {
		return ""
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.note("reward_kwargs: %v", err)
		return ""
	}
	return string(text)
}

// wrong puts what a wrong answer scores: -1 by the grader that verl has for DAPO's data and AIME, else 0; and what the
// form scores by the one for Geometry3K.
// The data sources of the training files tell, or the names that verl's preparation gives the files.
func (t *verl) wrong() {
	const dapo, geometry = "math_dapo", "geo3k"
	switch graders := t.graders(); {
	case graders[geometry] && len(graders) > 1:
		t.note("the form <think>…</think> … \\boxed{…} scores nothing; in verl 0.1 where data_source is " +
			"hiyouga/geometry3k")
	case graders[geometry]:
		t.put("reward.format", "0.1")
	case graders[""]:
		t.note("a wrong answer scores reward.wrong, 0; in verl -1 where data_source is math_dapo, math or aime…")
	case graders[dapo] && len(graders) > 1:
		t.note("a wrong answer scores reward.wrong, 0, on all problems; in verl -1 where data_source is math_dapo, " +
			"math or aime…")
	case graders[dapo]:
		t.put("reward.wrong", "-1")
	}
}

// guessed returns the grader of a file that is not here, by its name; "" if that says nothing.
func guessed(path string) string {
	path = strings.ToLower(path)
	for _, known := range [][2]string{{"dapo-math", "math_dapo"}, {"dapo_math", "math_dapo"}, {"aime", "math_dapo"},
		{"geo3k", "geo3k"}, {"geometry3k", "geo3k"}, {"gsm8k", "gsm8k"}, {"/math/", "math_reward"}} {
		if strings.Contains(path, known[0]) {
			return known[1]
		}
	}
	return ""
}

// dapoBuffer is the block of the DAPO recipe.
const dapoBuffer = "reward_model.overlong_buffer."

// overlong translates DAPO's shaping, which only its reward manager applies.
func (t *verl) overlong() {
	limit := t.number("data.max_response_length", 512)
	for _, at := range []string{dapoBuffer, "reward_model.reward_kwargs.overlong_buffer_cfg.",
		"reward.reward_kwargs.overlong_buffer_cfg."} {
		absent := 1.0
		if at == dapoBuffer {
			absent = 0 // of the recipe's file; the others have none
		}
		on, length := t.on(at+"enable", false), t.number(at+"len", 0)
		penalty := t.number(at+"penalty_factor", absent)
		t.used[at+"log"] = true
		switch {
		case !on || limit <= 0 || penalty == 0:
		case t.manager() != "dapo":
			t.note("%senable has no effect in verl: the reward manager is %s, not dapo", at, t.manager())
		default:
			t.putNumber("algo.overlong.buffer", length/limit)
			t.putNumber("algo.overlong.penalty", penalty)
		}
	}
	for _, key := range []string{"reward_model.reward_kwargs.max_resp_len", "reward.reward_kwargs.max_resp_len"} {
		if most := t.number(key, limit); most != limit {
			t.note("%s %g: overlong shaping is about rollout.max_new_tokens here, %g", key, most, limit)
		}
	}
}
