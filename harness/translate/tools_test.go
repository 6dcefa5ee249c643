package translate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"exp/harness/config"
)

const schema = `    tool_schema:
      type: function
      function:
        name: %s
        description: "Runs <code> & \"more\""
        parameters: {type: object, properties: {code: {type: string}}, required: [code]}
`

// A file of verl's tools: Python becomes ours, any other tool a program that runs verl's.
func TestTools(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	python := write("python.yaml", "tools:\n  - class_name: \"verl.tools.sandbox_fusion_tools.SandboxFusionTool\"\n    config: {default_timeout: 30, type: native}\n"+
		fmt.Sprintf(schema, "code_interpreter"))
	search := write("search.yaml", "tools:\n  - class_name: verl.tools.search_tool.SearchTool\n    config: {type: native}\n"+fmt.Sprintf(schema, "search"))
	const base = "python3 -m verl.trainer.main_ppo data.train_files=t.parquet actor_rollout_ref.model.path=./m " +
		"algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4 trainer.total_training_steps=10 "
	const at = "actor_rollout_ref.rollout.multi_turn."
	run := func(path string) *Recipe {
		return translated(t, "run.sh", base+at+"enable=True "+at+"max_assistant_turns=4 "+at+"max_tool_response_length=512 "+at+"tool_response_truncate_side=left "+
			at+"tool_config_path="+path, nil)
	}
	for path, want := range map[string][]string{
		python: {"kind: python", "cpu_limit: 30s", "max_turns: 4", "max_output: 512", "keep: left", `"code_interpreter`},
		search: {"kind: command", "command: [python3, -c,", search, "keep: [extra_info]", "needs verl"},
	} {
		r := run(path)
		if r.Errs != nil {
			t.Errorf("%s: %v", path, r.Errs)
		}
		for _, w := range want {
			if !strings.Contains(r.Text, strings.Trim(w, `"`)) {
				t.Errorf("%s lacks %q:\n%s", path, w, r.Text)
			}
		}
		var list []map[string]any
		c, err := config.Load(config.Input{File: "run.yaml", Data: []byte(r.Text)})
		if err == nil {
			err = json.Unmarshal([]byte(c.Run.Data.Tools), &list)
		}
		if err != nil || len(list) != 1 || list[0]["type"] != "function" {
			t.Errorf("%s: the definitions are %v: %v", path, list, err)
		}
	}
}

// The program that runs verl's tools, with a stand-in for verl.
func TestToolAdapter(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	module := filepath.Join(dir, "verl", "tools", "utils")
	if err := os.MkdirAll(module, 0o777); err != nil {
		t.Fatal(err)
	}
	fake := `class Said:
    def __init__(self, text): self.text = text
class Tool:
    name = "add"
    async def create(self, create_kwargs): print("noise"); return create_kwargs.get("start", 0), None
    async def execute(self, instance, args): return Said(str(instance + args["x"])), 0.0, {}
    async def release(self, instance): pass
def initialize_tools_from_config(path): return [Tool()]
`
	if err := os.WriteFile(filepath.Join(module, "tool_registry.py"), []byte(fake), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", toolAdapter, "tools.yaml")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	cmd.Stdin = strings.NewReader(`{"id": "1", "name": "add", "arguments": {"x": 2}}
{"id": "2", "name": "add", "arguments": {"x": 2}, "extra": {"columns": {"extra_info": {"tools_kwargs": {"add": {"create_kwargs": {"start": 40}}}}}}}
{"id": "3", "name": "add", "arguments": {}}
{"id": "4", "name": "sub", "arguments": {}}
`)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id": "1", "output": "2"}
{"id": "2", "output": "42"}
{"id": "3", "output": "Error when executing tool: 'x'"}
{"id": "4", "output": "Error when executing tool: there is no tool 'sub'"}
`
	if string(out) != want {
		t.Errorf("it wrote\n%s\nwant\n%s", out, want)
	}
}
