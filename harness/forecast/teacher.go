package forecast

import (
	"reflect"
	"slices"
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

// teacher is a model that algo.reference or algo.teachers names.
type teacher struct {
	name  string
	arch  model.Config
	known bool // whether arch is known; other parts of the plan report missing models
}

// teachersOf returns them, the one of algo.reference first, if it is one.
func teachersOf(c *config.Run) (list []teacher) {
	names := c.Algo.Teachers
	if c.Algo.HasTeacher() {
		names = append([]string{c.Algo.Reference}, names...)
	}
	for _, folder := range names {
		x := teacher{name: folder}
		var err error
		if x.arch, err = stage.ReadTeacher(folder); err == nil {
			x.known = true
		} else {
			name, _, _ := strings.Cut(strings.TrimPrefix(folder, "hub:"), "@")
			x.arch, x.known = published.Model(name)
		}
		list = append(list, x)
	}
	return list
}

// parameters returns the size of the teacher, 0 if it is not known.
func (x teacher) parameters() int {
	if !x.known {
		return 0
	}
	n, _ := model.Parameters(x.arch, model.Heads{LM: true})
	return n
}

// held returns the memory of the teacher's weights in training, on each of the ranks that share its products.
func (x teacher) held(c *config.Run, shared int) int {
	if !x.known {
		return 0
	}
	held := kernels.BF16 // of a published model that is not here
	if t, err := checkpoint.OpenFolder(x.name); err == nil {
		held = t.Frozen()
		t.Close()
	}
	h, copies, operand := model.Heads{LM: true}, copiesOf(c), stage.Operand(c)
	return x.arch.BackboneBytes(true, held, copies, operand, shared) + x.arch.AdapterBytes(h, false, copies, operand)
}

// heldTeachers returns the memory of all teachers' weights.
func heldTeachers(c *config.Run, shared int) (n int) {
	for _, x := range teachersOf(c) {
		n += x.held(c, shared)
	}
	return n
}

// heldReference returns the memory of the reference policies' weights in training, on each of the ranks that
// share their products.
func heldReference(c *config.Run, arch model.Config, shared int) int {
	n := heldTeachers(c, shared)
	switch {
	case c.Algo.HasTeacher():
	case c.Algo.ReferenceEvery > 0: // its weights are its own
		n += arch.ModelBytes(model.Heads{LM: true}, false, copiesOf(c), stage.Operand(c), shared)
	default:
		n += referenceBytes(c, arch, shared)
	}
	return n
}

// teacherRooms returns the activations of teachers' passes, and the workspace of their operations; both 0
// without one, and in other stages than training. Teachers of one architecture share them, and so does one of the
// policy's, arch. longest is the length of a sequence.
func teacherRooms(kind config.Stage, c *config.Run, arch model.Config, limit capacities, longest int, w stage.Crew) (
	activations, scratch int) {
	if kind != config.Train {
		return 0, 0
	}
	w.Learns = false
	operand := stage.Operand(c)
	none := generate.Options{PageTokens: c.Rollout.PageTokens}
	made := []model.Config{arch}
	for _, x := range teachersOf(c) {
		same := func(other model.Config) bool { return reflect.DeepEqual(other, x.arch) }
		if !x.known || slices.ContainsFunc(made, same) {
			continue
		}
		made = append(made, x.arch)
		activations += x.arch.WorkspaceBytes(model.Heads{LM: true}, limit.scored, model.KeepNothing, operand, w.Tensor)
		scratch = max(scratch, workspace{config.Train, c, x.arch, none, limit.scored, longest, w, false,
			restricts(config.Train, c)}.bytes()+
			tensor.RoomBytes(x.arch, limit.tokens, 0, w.Tensor, operand, copiesOf(c), false))
	}
	return activations, scratch
}
