package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/forecast"
	"exp/harness/plan"
	"exp/harness/stage"
)

// teacher trains a model wider and deeper than the recipe's and returns its merged folder.
func (l *lab) teacher(sets ...string) string {
	l.t.Helper()
	res, _ := l.execute(l.plan(0, append([]string{"name=teacher", "algo.kind=grpo", "model.arch={width: 64, layers: 3, ffn: 128}",
		"train.steps=1", "eval.online.every_steps=0"}, sets...)...))
	return filepath.Join(l.db.RunDir(res.Run.RID), "model")
}

// taught are the settings of a run that learns from a teacher alone.
func taught(folder string) []string {
	return []string{"algo.kind=distill", "algo.reference=" + folder, "train.steps=12", "train.optim.lr=5e-3", "rollout.n=8",
		"eval.online.every_steps=0"}
}

// A run learns from another model: it comes closer, verifies, has the memory that its plan says, and another
// teacher makes another run.
func TestTeacher(t *testing.T) {
	l := newLab(t)
	folder := l.teacher()
	p := l.plan(1, taught(folder)...)
	res, _ := l.execute(p)
	curves, err := l.db.Metrics(context.Background(), res.Run.ID, "kl/ref_k1", 1, 12)
	if err != nil || len(curves) != 1 {
		t.Fatalf("%d curves, %v", len(curves), err)
	}
	kl := curves[0].Values
	if first, last := kl[0], kl[len(kl)-1]; !(first > 0.1 && last < 0.9*first) {
		t.Errorf("the distance to the teacher went from %.3f to %.3f", first, last)
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verification: %+v", v)
	}
	other := l.plan(1, taught(l.teacher("model.seed=5"))...)
	if other.RID == p.RID || other.XID == p.XID {
		t.Error("another teacher is the same run")
	}
	if again, _ := l.execute(other); l.stageOf(again.Run.ID, "train").Status != store.Done {
		t.Error("a run with another teacher takes over what the first one taught")
	}
	for _, k := range []string{"0", "9"} {
		sets := append(taught(folder), "compute.threads=2", "algo.distill.top_k="+k)
		for kind, use := range memoryOfRun(t, "smoke_cpu.yaml", sets) {
			if x := float64(use.Peak) / float64(use.Planned); kind == string(config.Train) && !(x <= 1.05 && x > 0.8) {
				t.Errorf("top_k=%s: the peak is %.2f of the plan", k, x)
			}
		}
	}
}

// With adapters the teacher is a model of its own beside the frozen base. A policy can also mix a teacher with
// rewards, in FlowRL's residual or as a KL in the loss.
func TestTeacherElsewhere(t *testing.T) {
	l := startedLab(t)
	folder := l.teacher()
	for name, sets := range map[string][]string{
		"adapters":         append(taught(folder), "train.lora={rank: 2, alpha: 4}", "train.steps=1"),
		"FlowRL":           {"algo.kind=flowrl", "algo.reference=" + folder, "train.steps=1"},
		"KL in the loss":   {"algo.kind=grpo", "algo.kl={loss_coef: 0.5, loss_estimator: k2}", "algo.reference=" + folder, "train.steps=1"},
		"likeliest tokens": append(taught(folder), "algo.distill={top_k: 9, max: 2, floor: -8}", "train.steps=1"),
		"likeliest tokens and adapters": append(taught(folder), "algo.distill.top_k=9", "train.lora={rank: 2, alpha: 4}",
			"train.steps=1"),
		"with rewards": {"algo.kind=grpo", "algo.distill={coef: 0.3, max: 2}", "algo.reference=" + folder, "train.steps=1"},
	} {
		t.Run(name, func(t *testing.T) {
			l.t = t
			p := l.plan(1, sets...)
			res, _ := l.execute(p)
			if res.Run.Status != store.Done {
				t.Fatalf("the run ended as %s", res.Run.Status)
			}
			curves, err := l.db.Metrics(context.Background(), res.Run.ID, "*ref*k*", 1, 1)
			if err != nil || len(curves) == 0 || curves[0].Values[0] == 0 {
				t.Errorf("no distance to the teacher: %+v, %v", curves, err)
			}
		})
	}
}

// A data source's teacher teaches its problems, with adapters and with all weights; the start stays the reference of
// the other problems. Another teacher makes another run, and the plan counts the teachers' memory.
func TestTeacherOfSource(t *testing.T) {
	l := newLab(t)
	base, data := publishedFolder(t), verlFile(t) // whose rows are of math_dapo
	tutor := func(seed int) string {
		res, _ := l.execute(chatRun(l, testTemplate, "train.steps=0", "merge.dtype=bf16", "model.arch={qkv_bias: true, layers: 3}",
			fmt.Sprint("model.seed=", seed)))
		return filepath.Join(l.db.RunDir(res.Run.RID), stage.MergedDir)
	}
	one := tutor(8)
	sets := func(teacher string, more ...string) []string {
		return append(append(loraSets(base, data, "distill"), "algo.teachers=["+teacher+"]", "algo.teacher_sources=[math_dapo]"), more...)
	}
	for i, p := range []*plan.Run{l.plan(0, sets(one)...), l.plan(0, slices.DeleteFunc(sets(one, "name=whole"), func(s string) bool {
		return strings.HasPrefix(s, "train.lora=")
	})...)} {
		res, _ := l.execute(p)
		curves, err := l.db.Metrics(context.Background(), res.Run.ID, "kl/ref_k1", 1, 1)
		if err != nil || len(curves) != 1 || !(curves[0].Values[0] > 0.01) {
			t.Errorf("run %d: distances %+v, %v: the policy is the start, and its reference a teacher", i, curves, err)
		}
		for kind, use := range l.memoryOf(res.Run.ID) {
			if x := float64(use.Peak) / float64(use.Planned); kind == string(config.Train) && !(x <= 1.05 && x > 0.8) {
				t.Errorf("run %d: the peak is %.2f of the plan", i, x)
			}
		}
		if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
			t.Errorf("run %d: verification: %+v", i, v)
		}
	}
	two := tutor(9)
	held := func(list, sources string) int64 {
		e, err := forecast.Of(smoke(t, append(sets(one), "algo.teachers="+list, "algo.teacher_sources="+sources)...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return partOf(e.Memory, "reference policy")
	}
	if single, both := held("["+one+"]", "[a]"), held("["+one+","+two+"]", "[a,b]"); single == 0 || both != 2*single {
		t.Errorf("teachers of one size: the plan has %d bytes for one and %d for two", single, both)
	}
	first, other := l.plan(0, sets(one)...), l.plan(0, sets(two)...)
	if first.RID == other.RID || first.XID == other.XID {
		t.Error("another teacher of a data source is the same run")
	}
	// By a field of a column: the same problems have the same teacher, so only the id is another.
	byField := l.plan(0, sets(one, "data.keep=[extra_info]", "algo.teacher_key=extra_info.index", "algo.teacher_sources=[sum-0]")...)
	if byField.XID == first.XID {
		t.Error("another algo.teacher_key is the same experiment")
	}
	if _, err := l.try(context.Background(), byField, &quiet{}); err != nil {
		t.Error(err)
	}
	_, err := l.try(context.Background(), l.plan(0, sets(one, "algo.teacher_sources=[gsm8k]")...), &quiet{})
	if err == nil || !strings.Contains(err.Error(), `no problem of data.train has the data_source "gsm8k"; theirs are math_dapo`) {
		t.Errorf("a data source without problems: %v", err)
	}
}

func TestTeacherRefused(t *testing.T) {
	l := newLab(t)
	folder := l.teacher()
	bend := func(file, old, text string) string {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), old) {
			t.Fatalf("%s lacks %q: %v", path, old, err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, text, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for want, sets := range map[string][]string{
		"a teacher must have the policy's tokens": taught(bend("tokenizer.json", `"7"`, `"q"`)),
		"a teacher must know each token":          taught(bend("config.json", `"vocab_size": 20`, `"vocab_size": 9`)),
		"data.max_prompt_tokens and rollout.max":  taught(bend("config.json", `"max_position_embeddings": 64`, `"max_position_embeddings": 20`)),
		"but the policy has 20 tokens":            append(taught(folder), "algo.distill.top_k=21"),
		"no such file":                            taught(filepath.Join(t.TempDir(), "nothing")),
	} {
		_, err := stage.Externals(smoke(t, sets...))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		if _, err := plan.New(smoke(t, sets...), 0, l.be.Class(), l.sources); err == nil {
			t.Errorf("%s: planned", want)
		}
	}
}

// Ranks share the teacher's products too, so they must be able to.
func TestTeacherThatRanksCannotShare(t *testing.T) {
	l := newLab(t)
	sets := []string{"model.arch={width: 128, heads: 4, kv_heads: 2, head_size: 32, ffn: 256}", "compute.tensor_parallel=2"}
	if err := forecast.CheckRanks(smoke(t, append(sets, "algo.kind=grpo")...), 2); err != nil {
		t.Fatal(err)
	}
	folder := l.teacher()
	err := forecast.CheckRanks(smoke(t, append(taught(folder), sets...)...), 2)
	if err == nil || !strings.Contains(err.Error(), "the teacher "+folder+": compute.tensor_parallel is 2") {
		t.Errorf("a teacher of width 64 for two ranks: %v", err)
	}
}
