package translate

// environment translates the environment of a script for verl-agent, and reports whether there is one.
func (t *verl) environment() bool {
	name := t.text("env.env_name", "")
	if name == "" {
		return false
	}
	t.put("rollout.tools.kind", "agent")
	t.out["rollout.tools.command"] = "[./agent]"
	t.putNumber("rollout.tools.max_turns", t.number("env.max_steps", 50))
	t.putNumber("rollout.n", t.number("env.rollout.n", 1))
	t.note("env.env_name=%s: write the environment as a program ./agent that asks the policy by OpenAI's API and "+
		"rewards turns; exp config explain rollout.tools.conversations shows what it reads and writes", name)
	delete(t.out, "train.prompts_per_update")
	if t.has(actor + "ppo_mini_batch_size") {
		t.note("%sppo_mini_batch_size counts steps of episodes in verl-agent: here an update takes all problems of a "+
			"step, or train.prompts_per_update", actor)
	}
	return true
}

// stepGroups translates verl-agent's settings of GiGPO.
func (t *verl) stepGroups() {
	t.putNumber("algo.gigpo.weight", t.number("algorithm.gigpo.step_advantage_w", 1))
	t.putNumber("algo.gigpo.gamma", t.number("algorithm.gamma", 1))
	t.put("algo.scale_std", map[bool]string{true: "false", false: "true"}[t.text("algorithm.gigpo.mode",
		"mean_std_norm") == "mean_norm"])
	if t.on("algorithm.gigpo.enable_similarity", false) {
		t.note("algorithm.gigpo.enable_similarity: states are equal here if their texts are")
	}
}
