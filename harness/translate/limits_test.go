package translate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// A script or its files that would never end are read as far as is reasonable, or refused.
func TestLimits(t *testing.T) {
	const command = "python3 -m verl.trainer.main_ppo data.train_batch_size=256 data.train_files=a.parquet algorithm.adv_estimator=grpo " +
		"actor_rollout_ref.model.path=m actor_rollout_ref.rollout.n=4"
	files := map[string]string{
		"double.sh":   "x=aaaaaaaaaa\n" + strings.Repeat("x=$x$x\n", 60) + command + " trainer.experiment_name=$x\n",
		"append.sh":   "x=aaaaaaaaaa\n" + strings.Repeat("x+=$x\n", 60) + command + "\n",
		"elements.sh": "x=(trainer.n=1 b)\n" + strings.Repeat("x=(\"${x[@]}\" \"${x[@]}\")\n", 60) + command + " \"${x[@]}\"\n",
		"circle.sh":   strings.Repeat("source circle.sh\n", 20) + command + "\n",
		"nested.sh":   "x=" + strings.Repeat("$(", 200) + "echo" + strings.Repeat(")", 200) + "\n" + command + "\n",
		"lists.yaml":  "algorithm: {adv_estimator: grpo}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n",
		"f16.yaml":    "algorithm: {adv_estimator: grpo}\n",
	}
	for i := range 9 {
		files["lists.yaml"] += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 10))
	}
	for i := range 16 {
		files[fmt.Sprintf("f%d.yaml", i)] = fmt.Sprintf("defaults: [%s]\n", strings.Repeat(fmt.Sprintf("f%d, ", i+1), 9))
	}
	dir := tree(t, files)
	for _, name := range []string{"double.sh", "append.sh", "elements.sh", "circle.sh", "nested.sh"} {
		t.Run(name, func(t *testing.T) {
			checkRecipe(t, filepath.Join(dir, name), Options{}, true, "prompts_per_step: 256", `base: "m"`)
		})
	}
	for name, want := range map[string]string{"lists.yaml": "lists.yaml holds over 65536 settings", "f0.yaml": "lists of defaults name over 1024 files"} {
		if _, err := From(filepath.Join(dir, name), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
