package run

import (
	"strings"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/generate"
	"exp/train/model"
	"exp/train/published"
	"exp/train/tensor"
)

// teacherOf returns the architecture of the model that algo.reference names, and false if there is none
// or it is not known, which the plan reports elsewhere.
func teacherOf(c *config.Run) (model.Config, bool) {
	if !c.Algo.HasTeacher() {
		return model.Config{}, false
	}
	if arch, err := stage.ReadTeacher(c.Algo.Reference); err == nil {
		return arch, true
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(c.Algo.Reference, "hub:"), "@")
	return published.Model(name)
}

// teacherSize returns the name of the teacher and its parameters, 0 if its architecture is not known; "" and 0 without
// one.
func teacherSize(c *config.Run) (name string, parameters int) {
	if !c.Algo.HasTeacher() {
		return "", 0
	}
	if own, ok := teacherOf(c); ok {
		parameters, _ = model.Parameters(own, model.Heads{LM: true})
	}
	return c.Algo.Reference, parameters
}

// heldReference returns the memory of the reference policy's weights in training, on each of the ranks that
// share its products.
func heldReference(c *config.Run, arch model.Config, shared int) int {
	if !c.Algo.HasTeacher() {
		return referenceBytes(c, arch, shared)
	}
	own, ok := teacherOf(c)
	if !ok {
		return 0
	}
	held := kernels.BF16 // of a published model that is not here
	if t, err := checkpoint.OpenFolder(c.Algo.Reference); err == nil {
		held = t.Frozen()
		t.Close()
	}
	h, copies, operand := model.Heads{LM: true}, copiesOf(c), stage.Operand(c)
	return own.BackboneBytes(true, held, copies, operand, shared) + own.AdapterBytes(h, false, copies, operand)
}

// teacherRooms returns the activations of a teacher's passes, and the workspace of their operations; both 0
// without one, and in other stages than training. longest is the length of a sequence.
func teacherRooms(kind config.Stage, c *config.Run, limit capacities, longest int, w crew) (activations, scratch int) {
	own, ok := teacherOf(c)
	if !ok || kind != config.Train {
		return 0, 0
	}
	w.learns = false
	operand := stage.Operand(c)
	activations = own.WorkspaceBytes(model.Heads{LM: true}, limit.scored, model.KeepNothing, operand, w.tensor)
	none := generate.Options{PageTokens: c.Rollout.PageTokens}
	scratch = scratchBytes(config.Train, c, own, none, limit.scored, longest, w) +
		tensor.RoomBytes(own, limit.tokens, 0, w.tensor, operand, copiesOf(c), false)
	return activations, scratch
}
