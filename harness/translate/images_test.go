package translate

import (
	"strings"
	"testing"
)

// verl's column of images is the recipe's; the default is not written.
func TestImageKey(t *testing.T) {
	const script = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=./m data.train_files=geo3k.parquet " +
		"trainer.total_training_steps=1 data.image_key="
	for key, want := range map[string]bool{"photos": true, "images": false} {
		r := translated(t, "run.sh", script+key, nil)
		if got := strings.Contains(r.Text, `image_key: "`+key+`"`); got != want {
			t.Errorf("%s: written %t, want %t", key, got, want)
		}
	}
}
