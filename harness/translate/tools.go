package translate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"exp/harness/config"
)

// toolAdapter runs the tools of a verl configuration as a program of rollout.tools.command; verl must be installed.
// As in verl's tool_agent a tool that fails says so to the policy. Its argument is the tools' file.
const toolAdapter = `import asyncio, json, sys
out, sys.stdout = sys.stdout, sys.stderr
from verl.tools.utils.tool_registry import initialize_tools_from_config
tools = {tool.name: tool for tool in initialize_tools_from_config(sys.argv[1])}
async def answer(row):
    name = row.get("name", "")
    if name not in tools:
        return "Error when executing tool: there is no tool %r" % name
    info = ((row.get("extra") or {}).get("columns") or {}).get("extra_info") or {}
    own = (info.get("tools_kwargs") or {}).get(name) or {}
    tool = tools[name]
    try:
        instance, _ = await tool.create(create_kwargs=own.get("create_kwargs") or {})
        said, _, _ = await tool.execute(instance, row["arguments"])
        await tool.release(instance)
    except Exception as e:
        return "Error when executing tool: %s" % e
    return getattr(said, "text", said) or ""
async def main():
    for line in sys.stdin:
        row = json.loads(line)
        print(json.dumps({"id": row["id"], "output": await answer(row)}), file=out, flush=True)
asyncio.run(main())
`

// toolConfig is a file of verl's tools.
type toolConfig struct {
	Tools []struct {
		Class  string         `yaml:"class_name"`
		Config map[string]any `yaml:"config"`
		Schema map[string]any `yaml:"tool_schema"`
	} `yaml:"tools"`
}

// pythonTool ends the class of verl's tool that runs Python.
const pythonTool = ".SandboxFusionTool"

// turns translates multi_turn: tools, and how often the policy may call them.
func (t *verl) turns() {
	const at = rollout + "multi_turn."
	path := t.text("data.tool_config_path", "")
	path = t.text(at+"tool_config_path", path)
	talk := t.text(at+"interaction_config_path", "")
	if t.agent() || t.environment() {
		return
	}
	some := path != "" || talk != "" // a script with tools leaves enable to a file of Hydra's
	switch enabled := t.on(at+"enable", some); {
	case enabled && !some:
		t.note("%senable without tools or interactions: the policy answers in one turn", at)
		return
	case !enabled:
		return
	}
	t.putTurns()
	t.putNumber("rollout.tools.max_output", max(1, t.number(at+"max_tool_response_length", 256)))
	t.put("rollout.tools.keep", t.text(at+"tool_response_truncate_side", "middle"))
	if format := t.text(at+"format", "hermes"); format != "hermes" {
		t.note("%sformat=%s: calls are written as hermes writes them, or see rollout.tools.format", at, format)
	}
	if path == "" {
		t.put("rollout.tools.kind", "command")
		t.put("rollout.tools.format", "user")
		t.out["rollout.tools.command"] = "[./interaction]"
		t.note("%sinteraction_config_path: write a program ./interaction that answers each turn; exp config explain "+
			"rollout.tools.command shows what it reads", at)
		return
	}
	t.putNumber("rollout.tools.max_calls", max(1, t.number(at+"max_parallel_calls", 1)))
	if talk != "" {
		t.note("%sinteraction_config_path: a run has tools or a user who answers every turn, not both", at)
	}
	t.tools(t.places.found(path))
}

// putTurns translates how often the policy may answer.
func (t *verl) putTurns() {
	const at = rollout + "multi_turn."
	answers := t.number(at+"max_assistant_turns", math.Inf(1))
	answers = min(answers, t.number(at+"max_user_turns", math.Inf(1))+1)
	if math.IsInf(answers, 1) { // verl has no limit but the response's length
		answers = 1000
	}
	t.putNumber("rollout.tools.max_turns", max(1, answers))
}

// agent translates an agent loop of the user's, and reports whether there is one.
func (t *verl) agent() bool {
	const at = rollout + "agent."
	path := t.text(at+"agent_loop_config_path", "")
	if path == "" {
		return false
	}
	name := t.text(at+"default_agent_loop", "")
	t.put("rollout.tools.kind", "agent")
	t.out["rollout.tools.command"] = "[./agent]"
	t.putTurns()
	if name != "" {
		name = ", default_agent_loop=" + name
	}
	t.note("%sagent_loop_config_path=%s%s: write the loop as a program ./agent that asks the policy by OpenAI's API; "+
		"exp config explain rollout.tools.conversations shows what it reads and writes", at, path, name)
	return true
}

// tools translates a file of tools.
func (t *verl) tools(path string) {
	var conf toolConfig
	b, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(b, &conf)
	}
	switch {
	case err != nil && strings.Contains(path, "sandbox_fusion"):
		t.put("rollout.tools.kind", "python")
		t.note("the tools' file is not here, and its name says that it runs Python (%v)", err)
	case err != nil:
		t.note("the tools' file is not here: give data.tools the definitions in it; without them no prompt offers a "+
			"tool (%v)", err)
	case len(conf.Tools) == 1 && strings.HasSuffix(conf.Tools[0].Class, pythonTool):
		t.put("rollout.tools.kind", "python")
		if n, ok := conf.Tools[0].Config["default_timeout"].(uint64); ok {
			t.put("rollout.tools.cpu_limit", fmt.Sprintf("%ds", n))
		}
	default:
		for _, tool := range conf.Tools {
			if strings.HasSuffix(tool.Class, pythonTool) {
				t.note("%s runs Python, which rollout.tools.kind: python does without a server, but next to other "+
					"tools the program below must", tool.Class)
			}
		}
	}
	if schemas := conf.schemas(); schemas != "" {
		t.putText("data.tools", schemas)
	}
	if t.out["rollout.tools.kind"] == "python" {
		return
	}
	t.put("rollout.tools.kind", "command")
	t.out["rollout.tools.command"] = fmt.Sprintf("[python3, -c, %q, %q]", toolAdapter, path)
	if kind := t.out["task.kind"]; kind == mathKind || kind == config.MixedTask {
		t.keep("extra_info")
	}
	t.note("the program that runs verl's tools needs verl, and keeps nothing from one call to the next; rewards " +
		"that tools give are dropped")
}

// schemas returns the definitions of tools as JSON; empty for none.
func (c toolConfig) schemas() string {
	var list []any
	for _, tool := range c.Tools {
		if tool.Schema != nil {
			list = append(list, tool.Schema)
		}
	}
	if len(list) == 0 {
		return ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(list); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
