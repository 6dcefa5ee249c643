package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got with testdata/name, which -update rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// failure loads a configuration that must be refused and returns the errors.
func failure(t *testing.T, in Input) Errors {
	t.Helper()
	r, err := Load(in)
	var errs Errors
	if !errors.As(err, &errs) || r != nil {
		t.Fatalf("Load(%s, sets %q): got error %v, want Errors", in.File, in.Sets, err)
	}
	return errs
}

func TestBrokenFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("broken files: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			in := Input{File: file}
			if filepath.Base(file) == "spec_example.yaml" {
				in.Sets = []string{"seed=1", "rollout.temprature=0.7"}
			}
			errs := failure(t, in)
			for _, e := range errs {
				if !regexp.MustCompile(`^E1[0-9][0-9]$`).MatchString(e.Code) {
					t.Errorf("code %q of %v", e.Code, e)
				}
			}
			golden(t, strings.TrimPrefix(strings.TrimSuffix(file, ".yaml"), "testdata/")+".golden", errs.Text(false)+"\n")
		})
	}
}

func TestBrokenSets(t *testing.T) {
	var b strings.Builder
	for _, sets := range [][]string{
		{"train.steps"},
		{"=3"},
		{"train.steps="},
		{"train.stpes=3"},
		{"trian.steps=3"},
		{"steps=3"},
		{"beta=3"},
		{"xyzzy=3"},
		{"optim={lr: 3}"},
		{"train=3"},
		{"train={steps: x, optim: {lr: 2}}"},
		{"train.steps.of=3"},
		{"seed=1", "train.steps=1.5"},
		{"train.steps=[1"},
		{`train.steps="3"`, `rollout.n="many"`},
		{"rollout.stop=a: b: c"},
		{"train.steps+=3"},
		{"eval.final.pass_k+=3"},
		{"train.nothing+=3"},
		{"eval.final.suites+=[val, aime@99]"},
		{"eval.final.suites+=test"},
		{"algo.flowrl.beta=null"},
		{"algo=null"},
		{"ppo_mini_batch_size=3"},
		{"actor_rollout_ref.actor.optim.lr_scheduler_type=cosine"},
		{"train.optim.lr_warmup_steps_ratio=0.1", "train.optim.betas=[0.9, 0.99]"},
		{"actor_rollout_ref.model.target_modules=all-linear"},
		{"trainer.critic_warmup=20"},
		{"trainer.n_gpus_per_node=8", "trainer.val_before_train=true", "trainer.logger=[console]"},
		{"actor_rollout_ref.actor.use_dynamic_bsz=true"},
		{"rollout.gpu_memory_utilization=0.6"},
		{"algo.gamma=1", "algo.kind=ppo", "algo.flowrl.beta=3"},
		{"algo.flowrl.beta=3", "algo.kind=ppo"},
		{"algo.flowrl.weight.low=7"},
		{"rollout.n=1"},
		{"name=a\nb"},
		{"train.optim.lr=&x 3"},
		{"model.seed=-1"},
		{"extends=base.yaml"},
		{"rollout..n=1"},
		{"..=1"},
	} {
		errs := failure(t, Input{File: "testdata/base.yaml", Sets: sets})
		fmt.Fprintf(&b, "$ --set %s\n%s\n\n", strings.Join(quoteAll(sets), " --set "), errs.Text(false))
	}
	golden(t, "sets.golden", b.String())
}

func quoteAll(list []string) []string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, fmt.Sprintf("%q", s))
	}
	return quoted
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("countdown.yaml", "version: 1\n")
	secret := write("secret.yaml", "version: 1\n")
	if err := os.Chmod(secret, 0); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, path, want string }{
		{"empty", write("empty.yaml", ""), "error[E100]: is empty"},
		{"spaces", write("spaces.yaml", "\n \n"), "error[E100]: is empty"},
		{"bom only", write("bom.yaml", "\xef\xbb\xbf"), "error[E100]: is empty"},
		{"binary", write("binary.yaml", "version: 1\n\x00\x01"), "error[E100]: is not a text file: byte 0x00 at offset 11"},
		{"latin-1", write("latin.yaml", "name: caf\xe9\n"), "error[E100]: is not a text file: byte 0xe9 at offset 9"},
		{"huge", write("huge.yaml", strings.Repeat("a: 1\n", 40_000)), "error[E100]: is larger than 128KiB"},
		{"many tokens", write("tokens.yaml", strings.Repeat("a: 1\n", 8_000)), "error[E100]: has more than 20000 YAML tokens"},
		{"deep flow", write("deep.yaml", "a: "+strings.Repeat("[", 9_000)), "error[E101]: values are nested too deeply"},
		{"deep list", write("dashes.yaml", strings.Repeat("- ", 9_000)), "error[E101]: values are nested too deeply"},
		{"missing", filepath.Join(dir, "countdwon.yaml"), "error[E100]: no such file\n   help: did you mean " + filepath.Join(dir, "countdown.yaml")},
		{"missing folder", filepath.Join(dir, "no", "x.yaml"), "error[E100]: no such file\n1 error"},
		{"setting without --set", "train.steps=3", "error[E100]: no such file\n   help: a setting follows --set: --set train.steps=3"},
		{"missing in a folder with =", filepath.Join(dir, "a=b.yaml"), "error[E100]: no such file\n   help: files there"},
		{"block out of line", write("line.yaml", "train:\n  steps: 3\n seed: 4\n"),
			"   help: check the indentation: the keys of one block start in the same column"},
		{"folder", dir, "error[E100]: is a directory\n   help: files there: binary.yaml, bom.yaml"},
		{"device", "/dev/zero", "error[E100]: is larger than 128KiB"},
	}
	if os.Getuid() != 0 {
		cases = append(cases, struct{ name, path, want string }{"permission", secret, "error[E100]: permission denied"})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := failure(t, Input{File: c.path}).Text(false)
			if want := c.path + ": " + c.want; !strings.HasPrefix(got, want) && !strings.Contains(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestColourAddsOnlyEscapes(t *testing.T) {
	errs := failure(t, Input{File: "testdata/broken/conflicts.yaml"})
	plain, coloured := errs.Text(false), errs.Text(true)
	if !strings.Contains(coloured, "\x1b[1;31merror[E120]\x1b[0m") {
		t.Errorf("no colour in %q", coloured)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""); got != plain {
		t.Errorf("without escapes (-plain +coloured):\n%s", cmp.Diff(plain, got))
	}
}

func TestErrorAt(t *testing.T) {
	r, err := Load(Input{File: "testdata/base.yaml", Sets: []string{"compute.threads=3"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{"train.steps", "testdata/base.yaml:12:10: error[E140]: no\n   12 |   steps: 10\n      |          ^~\n   help: do\n"},
		{"compute.threads", "--set #1:17: error[E140]: no\n   help: do\n"},
		{"data.seed", "testdata/base.yaml: error[E140]: no\n   help: do\n"},
	} {
		if got := r.ErrorAt(c.path, CodeDigest, "no", "do").text(false); got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

// Suggestions for a key of another block: deeper in the named block first, else the training's first.
func TestSuggest(t *testing.T) {
	for path, want := range map[string]string{"train.lr": `did you mean "train.optim.lr"?`, "optm.lr": `did you mean "train.optim.lr" or "sft.optim.lr"`,
		"lr": `did you mean "train.optim.lr" or "sft.optim.lr"`} {
		if got := Suggest(path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// What --set, a file and exp config explain say about keys that are misspelt, incomplete or another program's.
func TestUnknownKeys(t *testing.T) {
	for path, want := range map[string]string{
		"train.stps": `did you mean "train.steps"?`, "trian.steps": `did you mean "train.steps"?`,
		"train.optimlr": `did you mean "train.optim.lr"?`, "algo.clp.lwo": `did you mean "algo.clip.low"?`,
		// All words of a name count for more than letters: not page_tokens, keep, label.
		"rollout.max_tokens": `did you mean "rollout.max_new_tokens"?`, "reward.model": `did you mean "reward.judge.model"?`,
		"checkpoint.every":   `did you mean "checkpoint.every_steps" or "checkpoint.every_minutes"?`,
		"rollout.pge_tokens": `did you mean "rollout.page_tokens"?`, "model.layers": `did you mean "model.arch.layers"?`,
		// Names of TRL and verl.
		"learning_rate": `it is called train.optim.lr here`, "algo.epsilon": "there are algo.clip.low and algo.clip.high",
		"train.optim.epsilon": "it is called eps here",
		"model.path":          "it is called model.base here", "train.epochs": "the length of a run is train.steps",
		"actor_rollout_ref.rollout.n": "actor_rollout_ref is a block of verl's; exp config translate writes a recipe of its " +
			"settings\n   help: did you mean \"rollout.n\"?",
		"actor_rollout_ref.actor.optim.lr": `did you mean "train.optim.lr" or `, "trainer.foo": "of its settings\n",
	} {
		_, err := Load(Input{File: "testdata/base.yaml", Sets: []string{path + "=1"}})
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	for path, want := range map[string]string{
		"rollout.max_tokens": `did you mean "rollout.max_new_tokens"?`, "train.optimlr": `did you mean "train.optim.lr"?`,
		"num_generations": "it is called rollout.n here", "trian": `did you mean "train"?`, "nothing.like_it": "exp config schema lists all keys",
	} {
		if got := Suggest(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
