package translate

import (
	"math"
	"strconv"
	"strings"

	"exp/eval/rows"
)

// batch puts the problems of a step. verl's first trainer draws data.gen_batch_size of them and trains on all,
// unless it filters groups: then it draws until data.train_batch_size have passed. The second one trains on
// data.train_batch_size.
func (t *verl) batch() {
	train := t.number("data.train_batch_size", 1024)
	drawn := t.number("data.gen_batch_size", train)
	switch {
	case t.async:
		train = t.streamed()
	case t.v1:
		t.ahead()
	case t.spo:
		t.note("data.gen_batch_size %g: verl's SPO draws the %g problems of a step among the next so many of the "+
			"data, here among all", drawn, train)
	case drawn != train && !t.filters():
		t.note("data.gen_batch_size %g: without group filtering verl's trainer trains on all problems that it draws, "+
			"not on data.train_batch_size (%g)", drawn, train)
		train = drawn
	}
	if t.oneStep { // it samples a step while it trains on the one before
		t.putNumber("rollout.staleness", 1)
		t.bypass = true
	}
	t.putNumber("train.prompts_per_step", train)
	// verl's policy learns in the step that has this number, counted from 1.
	t.putNumber("algo.critic.warmup_steps", max(t.number("trainer.critic_warmup", 0)-1, 0))
}

// streamed returns the problems of a step of the fully asynchronous trainer, between two copies of its
// weights to the sampler. Their ages are mixed there; here all have one.
func (t *verl) streamed() float64 {
	const at = "async_training."
	problems := t.number(actor+"ppo_mini_batch_size", 256) * t.number(at+"require_batches", 1) *
		t.number(at+"trigger_parameter_sync_step", 4)
	age := math.Ceil(t.number(at+"staleness_threshold", 0.1))
	own, anew := t.on(at+"use_rollout_log_probs", true), t.on(at+"compute_prox_log_prob", false)
	for _, key := range []string{at + "partial_rollout", "rollout.total_epochs", "rollout.n",
		actor + "use_rollout_log_probs"} {
		t.used[key] = true
	}
	t.putNumber("rollout.staleness", age)
	t.bypass = age > 0 && own && !anew
	t.note("async_training: a step is what verl trains on between two copies of the weights, %g problems, and the "+
		"age of all is rollout.staleness, %g; verl mixes ages", problems, age)
	return problems
}

// ahead translates the modes in which verl's second trainer samples ahead of training.
func (t *verl) ahead() {
	const at = "trainer.v1."
	mode := t.text(at+"trainer_mode", "sync")
	for key := range t.in { // of the other modes, and what bounds ages
		t.used[key] = t.used[key] || strings.HasPrefix(key, at) && !strings.HasPrefix(key, at+"sampler.custom")
	}
	if mode == "sync" {
		return
	}
	age := t.number(at+mode+".num_warmup_batches", 1)
	t.putNumber("rollout.staleness", age)
	t.note("%strainer_mode %s: the age of all completions of a step is rollout.staleness, %g; verl mixes ages", at,
		mode, age)
}

// filters reports whether groups are filtered. FlowRL's trainers never do.
func (t *verl) filters() bool { return t.on("algorithm.filter_groups.enable", false) && !t.flow }

// endless is the number of batches that stands for no limit in group filtering.
const endless = 1000

// filter translates group filtering. verl counts batches of data.gen_batch_size, we of
// data.train_batch_size.
func (t *verl) filter() {
	metric, batches := t.text("algorithm.filter_groups.metric", "acc"),
		t.number("algorithm.filter_groups.max_num_gen_batches", 0)
	t.used["algorithm.filter_groups.max_inflight_gen_batches"] = true
	if t.prime {
		t.filterAccuracy()
		return
	}
	if !t.filters() {
		if t.on("algorithm.filter_groups.enable", false) {
			t.note("algorithm.filter_groups has no effect in FlowRL's trainer")
		}
		return
	}
	t.put("algo.filter_groups.metric", metric)
	train := t.number("data.train_batch_size", 1024)
	if t.v1 || batches <= 0 || math.IsInf(batches, 1) { // the second trainer has no limit
		batches = endless
	} else {
		batches = math.Ceil(batches * t.number("data.gen_batch_size", train) / train)
	}
	t.putNumber("algo.filter_groups.max_batches", batches)
	if t.plainTrainer && !t.v1 {
		t.note("algorithm.filter_groups: main_ppo filters only since it has trainer.use_v1; before, only the DAPO " +
			"recipe does")
	}
}

// steps puts the number of steps: given, or passes over the training files, if they are here.
func (t *verl) steps() {
	if t.on("trainer.val_only", false) {
		t.put("train.steps", "0")
		return
	}
	n, ok := t.length()
	passes, counted := t.passes()
	switch {
	case !ok:
		t.note("train.steps: set it to trainer.total_epochs (%s) times the problems, divided by %d",
			t.text("trainer.total_epochs", "30"), t.drawn())
		return
	case counted && passes < n:
		t.note("trainer.total_training_steps %d: verl ends after trainer.total_epochs, %d steps", n, passes)
		n = passes
	case counted && passes == n && t.on("data.filter_overlong_prompts", false):
		t.note("train.steps counts overlong prompts, too: without them verl's passes are shorter")
	}
	t.put("train.steps", strconv.Itoa(n))
}

// length returns the number of steps over which verl's schedules run; ok is false if it depends on files
// that are not here.
func (t *verl) length() (n int, ok bool) {
	if all := t.number("rollout.total_rollout_steps", -1); t.async && all > 0 {
		t.used["trainer.total_epochs"] = true
		return max(1, int(all)/t.problems()), true
	}
	if steps := t.number("trainer.total_training_steps", -1); steps > 0 {
		t.used["trainer.total_epochs"] = true
		return int(steps), true
	}
	return t.passes()
}

// problems returns the problems of a step, as put.
func (t *verl) problems() int {
	n, err := strconv.Atoi(t.out["train.prompts_per_step"])
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// drawn returns the problems of a batch of the training files, which a pass counts.
func (t *verl) drawn() int {
	if t.async || t.v1 {
		return t.problems()
	}
	if t.prime {
		return int(t.number("data.train_batch_size", 1024) * t.oversampled())
	}
	return int(t.number("data.gen_batch_size", t.number("data.train_batch_size", 1024)))
}

// passes returns the steps in trainer.total_epochs passes over the training files.
func (t *verl) passes() (n int, ok bool) {
	var paths []string
	for _, path := range listOf(t.text("data.train_files", "")) {
		paths = append(paths, place(path))
	}
	count, err := rows.Count(paths...)
	if limit := int(t.number("data.train_max_samples", -1)); err == nil && limit > 0 {
		count = min(count, limit)
	}
	batch := t.drawn()
	if err != nil || count == 0 || batch < 1 {
		return 0, false
	}
	return max(1, count/batch*int(t.number("trainer.total_epochs", 30))), true
}

// sampling translates rollouts and validation.
func (t *verl) sampling() {
	t.putNumber("rollout.top_k", max(t.number(rollout+"top_k", -1), 0))
	t.penalties()
	longest := t.number("data.max_prompt_length", 512) + t.number("data.max_response_length", 512)
	if longest > 4096 { // the default; a sequence must fit
		t.putNumber("compute.micro_batch_tokens", longest)
	}
	t.turns()
	t.validation()
	if save := t.number("trainer.save_freq", -1); save > 0 {
		t.putNumber("checkpoint.every_steps", save)
	}
	if keep := t.text("trainer.max_actor_ckpt_to_keep", ""); keep != "" {
		t.put("checkpoint.keep", keep)
	}
}

// penalty is a penalty of vLLM's, and ours, with the value that is off.
type penalty struct {
	name string
	off  float64
}

func penalties() []penalty {
	return []penalty{{"repetition_penalty", 1}, {"presence_penalty", 0}, {"frequency_penalty", 0}}
}

// penalties translates the penalties of rollouts.
func (t *verl) penalties() {
	for _, p := range penalties() {
		value := t.number(rollout+p.name, p.off)
		if t.putNumber("rollout."+p.name, value); value != p.off {
			t.note("%s%s %g: verl's agent loop samples without penalties all the same; versions before it, and "+
				"patched ones, obey", rollout, p.name, value)
		}
	}
}

// putPenalties translates the penalties of validations, which are the rollouts' unless val_kwargs sets its own.
func (t *verl) putPenalties(to string) {
	for _, p := range penalties() {
		t.putNumber(to+p.name, t.number(rollout+"val_kwargs."+p.name, t.number(rollout+p.name, p.off)))
	}
}

// validation translates val_kwargs, for evaluations on the way and the final one. verl validates on all
// problems.
func (t *verl) validation() {
	const val = rollout + "val_kwargs."
	every := max(t.number("trainer.test_freq", -1), 0)
	if t.async {
		every = max(t.number("rollout.test_freq", every), 0)
	}
	if t.out["data.val.source"] == "none" {
		every = 0
	}
	t.putNumber("eval.online.every_steps", every)
	temperature, n := t.text(val+"temperature", "0"), t.text(val+"n", "1")
	if t.number(val+"temperature", 0) == 0 && t.number(val+"n", 1) > 1 && t.out["data.val.source"] != "none" {
		t.note("%sn %s: at temperature 0 all completions of a problem are the same, so there is one", val, n)
		n = "1"
	}
	if hot := t.number(val+"temperature", 0); !t.on(val+"do_sample", false) && hot > 0 {
		t.note("%sdo_sample is off: verl's agent loop samples at %stemperature %g all the same; versions "+
			"before it took the likeliest token", val, val, hot)
	}
	top, share := max(t.number(val+"top_k", -1), 0), t.number(val+"top_p", 1)
	least := t.number(val+"min_p", 0)
	if t.out["data.val.source"] == "none" {
		return
	}
	t.put("eval.final.n", n)
	t.put("eval.final.temperature", temperature)
	t.putNumber("eval.final.top_k", top)
	t.putNumber("eval.final.top_p", share)
	t.putNumber("eval.final.min_p", least)
	t.putPenalties("eval.final.")
	if every == 0 {
		t.note("trainer.test_freq is not set: verl validates once, before training; eval.online.every_steps does it " +
			"on the way")
		return
	}
	t.put("eval.online.problems", "0")
	t.put("eval.online.n", n)
	t.put("eval.online.temperature", temperature)
	t.putNumber("eval.online.top_k", top)
	t.putNumber("eval.online.top_p", share)
	t.putNumber("eval.online.min_p", least)
	t.putPenalties("eval.online.")
}
