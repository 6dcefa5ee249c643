package run

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	"exp/harness/stage"
	"exp/train/checkpoint"
)

// elements returns the elements of all tensors of weights by name.
func elements(t *testing.T, path string) map[string]string {
	t.Helper()
	x, err := checkpoint.OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	all := map[string]string{}
	for _, s := range x.Sources() {
		var b bytes.Buffer
		if err := s.Raw(&b); err != nil {
			t.Fatal(err)
		}
		all[s.Name] = string(s.DType) + b.String()
	}
	return all
}

// merge.format adds a folder cut over the ranks of another trainer: it holds the bits of
// the Hugging Face folder, its files are blobs, and the cache gives them back.
func TestMergeFormats(t *testing.T) {
	l := startedLab(t)
	plain, _ := l.execute(l.plan(0))
	for _, tt := range []struct {
		set, folder string
		files       []string
		note        string
	}{
		{"merge={format: megatron, tp: 2, pp: 2}", stage.MegatronDir, []string{"huggingface/config.json",
			"huggingface/tokenizer.json", "iter_0000001/mp_rank_00_000/model_optim_rng.pt",
			"iter_0000001/mp_rank_00_001/model_optim_rng.pt", "iter_0000001/mp_rank_01_000/model_optim_rng.pt",
			"iter_0000001/mp_rank_01_001/model_optim_rng.pt", "latest_checkpointed_iteration.txt"},
			"of auxiliary heads: left out"},
		{"merge={format: fsdp, ranks: 3}", stage.FSDPDir, []string{"fsdp_config.json", "huggingface/config.json",
			"model_world_size_3_rank_0.pt", "model_world_size_3_rank_1.pt", "model_world_size_3_rank_2.pt"}, ""},
	} {
		p := l.plan(0, tt.set)
		res, q := l.execute(p)
		if !slices.Contains(q.started, "merge") || slices.Contains(q.started, "train") {
			t.Errorf("%s: executed %q", tt.set, q.started)
		}
		if told := slices.ContainsFunc(q.warnings, func(w string) bool {
			return strings.Contains(w, tt.folder) && strings.Contains(w, tt.note)
		}); told != (tt.note != "") {
			t.Errorf("%s: warnings %q", tt.set, q.warnings)
		}
		dir := l.db.RunDir(res.Run.RID)
		merged, spread := filepath.Join(dir, stage.MergedDir), filepath.Join(dir, tt.folder)
		got, want := elements(t, spread), elements(t, merged)
		for name, bits := range want {
			if got[name] != bits {
				t.Errorf("%s: other bits of %s", tt.set, name)
			}
		}
		if _, logZ := got["proj_z.net.0.weight"]; logZ != (tt.folder == stage.FSDPDir) {
			t.Errorf("%s: the head of log Z is there: %v", tt.set, logZ)
		}
		out := l.outputs(res.Run.ID)
		for _, name := range tt.files {
			d, ok := out["merge[]/"+tt.folder+"/"+name]
			if _, err := os.Stat(filepath.Join(spread, name)); err != nil || !ok {
				t.Errorf("%s: %s has digest %s, %v", tt.set, name, d.Short(), err)
			}
		}
		if a, b := out["merge[]/"+stage.MergedWeights], l.outputs(plain.Run.ID)["merge[]/"+stage.MergedWeights]; a != b {
			t.Errorf("%s: the Hugging Face folder has other weights", tt.set)
		}
		l.checkSpreadKept(p, res, spread)
	}
}

// checkSpreadKept removes the folder and takes it from the cache, executes merge again, and
// damages a file.
func (l *lab) checkSpreadKept(p *plan.Run, res Result, spread string) {
	t := l.t
	t.Helper()
	before := elements(t, spread)
	if err := os.RemoveAll(spread); err != nil {
		t.Fatal(err)
	}
	if _, q := l.execute(p); len(q.started) > 0 {
		t.Errorf("executed %q", q.started)
	}
	if after := elements(t, spread); len(after) != len(before) {
		t.Errorf("the cache gives %d tensors, not %d", len(after), len(before))
	}
	if v := l.verify(p, VerifyOptions{Level: LevelFull}); !v.OK {
		t.Errorf("verify: %+v", v.Findings)
	}
	ranks, err := filepath.Glob(filepath.Join(spread, "*.json"))
	if err != nil || len(ranks) == 0 {
		ranks = []string{filepath.Join(spread, "latest_checkpointed_iteration.txt")}
	}
	if err := os.Remove(ranks[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ranks[0], []byte("2"), 0o666); err != nil {
		t.Fatal(err)
	}
	v := l.verify(p, VerifyOptions{Level: LevelBlobs})
	if v.OK || !strings.HasPrefix(v.Findings[0].Where, filepath.Base(spread)) {
		t.Errorf("a file that was changed is not found: %+v", v.Findings)
	}
}

// A model that cannot be cut as asked is an error of the plan, at the key of each axis.
func TestMergeFormatsThatDoNotFit(t *testing.T) {
	l := newLab(t)
	for _, tt := range []struct{ set, want string }{
		{"merge={format: megatron, tp: 3}", "TP 3 does not divide the model's 2 attention heads"},
		{"merge={format: megatron, pp: 3}", "2 layers do not spread evenly over 3 chunks (PP 3 × VP 1)"},
		{"merge={format: megatron, pp: 2, vp: 2}", "over 4 chunks (PP 2 × VP 2)"},
		{"merge={format: megatron, ep: 2}", "EP 2: this model has no experts to spread"},
	} {
		_, err := plan.New(smoke(t, tt.set), 0, l.be.Class(), l.sources)
		var errs config.Errors
		if !errors.As(err, &errs) || !strings.Contains(err.Error(), tt.want) || errs[0].Code != config.CodeConflict {
			t.Errorf("%s: %v", tt.set, err)
		}
	}
}
