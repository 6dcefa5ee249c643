package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/harness/differ"
)

func TestDiffPages(t *testing.T) {
	dir := fixtureStore(t)
	golden(t, "diff_80", pages(t, fixtureCall(t, 80, false), dir, "diff flowrl-a#0 ppo-b#0", "diff flowrl-a#0 flowrl-a#0", "diff flowrl-a#1 flowrl-a#2",
		"diff ppo-b#0 ppo-b#1 --traj", "diff grpo-c ppo-b#0 --traj", "diff flowrl-a#0 ppo-b#0 --env --code"))
	golden(t, "diff_120_color", pages(t, fixtureCall(t, 120, true), dir, "diff flowrl-a#0 ppo-b#0"))
	golden(t, "diff_json", pages(t, fixtureCall(t, 0, false), dir, "diff flowrl-a#0 ppo-b#0 --json"))
}

func TestDiffErrors(t *testing.T) {
	dir := fixtureStore(t)
	for args, want := range map[string]string{
		"diff ppo-b#0":               "exp diff needs A B, but only 1 given",
		"diff ppo-b#0 ppo-b#7":       "no run matches \"ppo-b#7\"",
		"diff flowrl-a ppo-b#0":      "matches 3 runs",
		"diff ppo-b#0 ppo-b#1 @last": "takes no argument",
	} {
		if got := (call{now: fixtureNow}).run(append(strings.Fields(args), "--store", dir)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("exp %s: %+v, want %q", args, got, want)
		}
	}
}

// TestDiffSmoke compares runs that were really executed.
func TestDiffSmoke(t *testing.T) {
	dir := smokeStore(t)
	read := func(args ...string) (d struct{ Data differ.Diff }) {
		t.Helper()
		got := call{}.run(append([]string{"diff", "--store", dir, "--json"}, args...)...)
		if err := json.Unmarshal([]byte(got.stdout), &d); err != nil || got.code != 0 {
			t.Fatalf("%q: %v: %+v", args, err, got)
		}
		return d
	}
	seeds := read("smoke#0", "smoke#1").Data
	want := []differ.ConfigChange{{Key: "seed", A: 0.0, B: 1.0, Class: "replicate", Set: true}}
	if diff := cmp.Diff(want, seeds.Config); diff != "" {
		t.Errorf("two seeds (-want +got):\n%s", diff)
	}
	if len(seeds.Code)+len(seeds.Inputs)+len(seeds.Env) > 0 || seeds.Identical || seeds.A.XID != seeds.B.XID {
		t.Errorf("two seeds: %+v", seeds)
	}
	if tr := seeds.Trajectory; tr.Step != 1 || tr.Field != "items" || tr.StepsA != 4 {
		t.Errorf("two seeds: %+v", tr)
	}
	arms := read("smoke#0", "smoke-ppo").Data
	for _, c := range arms.Config {
		if strings.HasPrefix(c.Key, "algo.") != (c.Class == "treatment" || c.Key == "algo.flowrl.preset") || c.Key != "name" && !strings.HasPrefix(c.Key, "algo.") {
			t.Errorf("two arms: %+v", c)
		}
	}
	text := func(args ...string) string {
		return call{}.run(append([]string{"diff", "smoke#0", "smoke-ppo", "--config", "--store", dir}, args...)...).stdout
	}
	short := text()
	for _, want := range []string{"configuration\n  key        A       B          class\n  name       smoke   smoke-ppo  free\n" +
		"  algo.kind  flowrl  ppo        treatment\n\nconfiguration: defaults that differ\n" +
		"  key        A       B    class\n  algo.loss  flowrl  ppo  treatment\n",
		"  A  algo.flowrl.* (18), algo.reference",
		"  B  algo.advantage, algo.clip.* (3), algo.gamma"} {
		if !strings.Contains(short, want) {
			t.Errorf("exp diff:\n%s\nlacks\n%s", short, want)
		}
	}
	if all := text("--all"); strings.Contains(short, "algo.flowrl.beta") || !strings.Contains(all, "algo.flowrl.beta") ||
		!strings.Contains(all, "algo.critic.lambda              –          null        treatment") {
		t.Errorf("exp diff --all:\n%s", all)
	}
	// With one seed both begin with the same rollouts; the first update tells them apart.
	if tr := arms.Trajectory; tr.Step != 1 || tr.Field != "params" || len(arms.Inputs) > 0 {
		t.Errorf("two arms: %+v, inputs %v", tr, arms.Inputs)
	}
	if same := read("smoke#1", "smoke#1").Data; !same.Identical || same.Trajectory.Step != 0 || same.Trajectory.Equal != 4 {
		t.Errorf("one run: %+v", same)
	}
	if part := read("smoke#0", "smoke#1", "--code").Data; part.Config != nil || part.Trajectory != nil || part.Code == nil || !part.Identical {
		t.Errorf("--code alone: %+v", part)
	}
}
