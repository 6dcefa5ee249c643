package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/task"
)

// The words of task.math.grader are the graders that there are.
func TestMathGraders(t *testing.T) {
	if d := cmp.Diff(task.Graders(), mathGraders()); d != "" {
		t.Errorf("(-task +config)\n%s", d)
	}
}

// The words of task.kind are the tasks that there are.
func TestTaskKinds(t *testing.T) {
	if d := cmp.Diff(task.Kinds(), lookup("task.kind").Words); d != "" {
		t.Errorf("(-task +config)\n%s", d)
	}
	if d := cmp.Diff(task.PartKinds(), MixedParts()); d != "" {
		t.Errorf("parts of a mixed task (-task +config)\n%s", d)
	}
	if d := cmp.Diff(task.GeneratedKinds(), GeneratedParts()); d != "" {
		t.Errorf("generated parts of a mixed task (-task +config)\n%s", d)
	}
}
