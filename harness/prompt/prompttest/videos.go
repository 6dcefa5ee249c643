package prompttest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// VideoFolder is PictureFolder for a Qwen model that reads videos, too, at most 6 frames: </s> stands for a video,
// between <s>.
func VideoFolder(t *testing.T, conf string) string {
	t.Helper()
	var x map[string]any
	if err := json.Unmarshal([]byte(conf), &x); err != nil {
		t.Fatal(err)
	}
	x["video_token_id"], x["vision_start_token_id"], x["vision_end_token_id"] = 257, 256, 256
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	dir := PictureFolder(t, string(text))
	path := filepath.Join(dir, "chat_template.jinja")
	template, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		path: strings.NewReplacer("<s><pad></s>", "<s><pad><s>", "{% elif 'text'",
			"{% elif c.type == 'video' %}<s></s><s>{% elif 'text'").Replace(string(template)),
		filepath.Join(dir, "video_preprocessor_config.json"): `{"patch_size": 4, "max_frames": 6,
			"size": {"shortest_edge": 64, "longest_edge": 4096}}`} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
