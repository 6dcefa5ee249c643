package translate

import "regexp"

// ofMegatron matches the arguments that only Megatron's RL trainer has.
var ofMegatron = regexp.MustCompile(`^--(perform-rl-step|grpo-[a-z-]+|rl-[a-z-]+|langrl-env-config)(=|$)`)

func (r *reader) arguments() {}
