package checkpoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a broken download leaves is told apart from a damaged file.
func TestStandIns(t *testing.T) {
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 988097824\n"
	page := "\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>"
	for _, name := range []string{configFile, weightsFile, indexFile} {
		for text, want := range map[string]string{pointer: "pointer of git-lfs", page: "is a web page", "": "is a link to gone"} {
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, configFile), []byte(qwen25Published))
			path := filepath.Join(dir, name)
			os.Remove(path)
			if text != "" {
				writeFile(t, path, []byte(text))
			} else if err := os.Symlink("gone", path); err != nil {
				t.Fatal(err)
			}
			d, err := Describe(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(d.Reason, "\n"); !strings.Contains(got, want) || !strings.Contains(got, name) {
				t.Errorf("%s: reasons %q, want %q", name, got, want)
			}
		}
	}
}

func TestMissingShard(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, indexFile), []byte(`{"weight_map": {"a": "model-00001-of-00002.safetensors"}}`))
	_, err := OpenFolder(dir)
	if e, ok := err.(*Error); !ok || !strings.Contains(e.Hint, "a shard that "+indexFile+" lists is missing") || !strings.Contains(e.Path, "00001") {
		t.Errorf("got %v", err)
	}
}

func TestJSONWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"hidden_size": "8"}`: "hidden_size is \"8\": want a whole number, got string",
		`{"rope_theta": []}`:   "rope_theta is []: want a number, got array",
		`{"architectures": 1}`: "architectures is 1: want a list, got number",
		`{"rope_scaling": 2}`:  "rope_scaling is 2: want an object, got number",
		`{"hidden_act": 1}`:    "hidden_act is 1: want a text, got number",
		`[]`:                   "want an object, got array",
	} {
		full := text
		if strings.HasPrefix(text, "{") {
			full = `{"model_type": "llama", ` + text[1:]
		}
		if _, err := ParseConfig("f", []byte(full)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
