package config

import (
	"slices"
	"time"
)

// Keys of the tools that a policy calls within a completion.

// toolsPath begins their paths.
const toolsPath = "rollout.tools."

func toolsKeys() []Key {
	ofKind := func(kinds ...string) []Clause { return []Clause{only(toolsPath+"kind", kinds...)} }
	ofFormat := func(names ...string) []Clause { return []Clause{only(toolsPath+"format", names...)} }
	used := block(ofKind("python", "command"), at(Train, EvalGen), []Key{
		{Path: toolsPath + "format", Kind: Enum, Words: []string{"hermes", "fence", "tags", "user"},
			Default: is("hermes"),
			Help: "how calls are written: JSON in <tool_call> tags, a fenced block of Python, text between " +
				"rollout.tools.call, or every turn, which a user answers"},
		{Path: toolsPath + "call", Kind: String, List: true, Pattern: anyText(),
			Default: is([]string{"<code>", "</code>"}),
			When:    ofFormat("tags"),
			Help:    "the two texts around a call; an empty first one is the beginning of the line"},
		{Path: toolsPath + "answer", Kind: String, List: true, Pattern: anyText(),
			Default: is([]string{"\n<interpreter>\n", "\n</interpreter>\n"}), When: ofFormat("tags"),
			Help: "the two texts around an answer"},
		{Path: toolsPath + "max_calls", Kind: Int, Default: is(1), Range: atLeast(1), Unit: "calls",
			When: ofFormat("hermes"),
			Help: "calls of a turn that are answered, in order; further ones are dropped"},
		{Path: toolsPath + "max_output", Kind: Int, Default: is(1024), Range: atLeast(1), Unit: "characters",
			Help: "longest answer; longer ones are cut"},
		{Path: toolsPath + "keep", Kind: Enum, Words: []string{"left", "middle", "right"}, Default: is("middle"),
			Help: "what stays of an answer that is cut: its beginning, both ends or its end"},
	})
	python := block(ofKind("python"), at(Train, EvalGen), []Key{
		{Path: toolsPath + "cpu_limit", Kind: Duration, Default: is(5 * time.Second),
			Range: above(0).upTo(float64(time.Hour)),
			Help:  "CPU time that a program may use"},
		{Path: toolsPath + "mem_limit", Kind: Size, Default: is(512 << 20), Range: atLeast(1 << 20),
			Help: "memory that a program and its processes may use"},
	})
	programs := block(ofKind("command", "agent"), at(Train, EvalGen), []Key{
		{Path: toolsPath + "command", Kind: String, List: true,
			Help: "program and arguments that answer calls, or play episodes: one JSON line in and one out for each"},
		{Path: toolsPath + "files", Kind: String, List: true, Default: is([]string{}), Role: External,
			Help: "files and folders that the program reads in addition to those on its command line"},
		{Path: toolsPath + "workers", Kind: Int, Default: by(toolsPath+"kind", is(1), when("agent", is(32))),
			Range: between(1, 256), Unit: "processes", Role: Nonsemantic,
			Help: "copies of the program that run at once; an agent's play rollout.tools.episodes each"},
		{Path: toolsPath + "limit", Kind: Duration,
			Default: by(toolsPath+"kind", is(time.Minute), when("agent", is(10*time.Minute))), Range: above(0),
			Role: Nonsemantic,
			Help: "longest time for an answer, or that an agent takes without asking; then the program is restarted " +
				"and asked again"},
		{Path: toolsPath + "retries", Kind: Int, Default: is(2), Range: between(0, 100), Role: Nonsemantic,
			Help: "how often to ask again about a call or an episode after the program died or fell silent"},
	})
	turns := block(ofKind("python", "command", "agent"), at(Train, EvalGen), []Key{
		{Path: toolsPath + "max_turns", Kind: Int, Default: by(toolsPath+"kind", is(5), when("agent", is(50))),
			Range: atLeast(1), Unit: "turns",
			Help: "turns of the policy; a call at the end of the last one ends the completion"},
	})
	agent := block(ofKind("agent"), at(Train, EvalGen), []Key{
		{Path: toolsPath + "episodes", Kind: Int, Default: is(1), Range: between(1, 1024), Unit: "episodes",
			Role: Nonsemantic, Late: true,
			Help: "episodes that each of the rollout.tools.workers processes plays at once: 64 for an asyncio " +
				"program with workers: 1; changes no result"},
		{Path: toolsPath + "conversations", Kind: Enum, Words: []string{"one", "last", "all"}, Default: is("one"),
			Help: "one: a request that does not continue the conversation is an error; last, all: it begins " +
				"another, and the run learns from the last one, or from all of them"},
		{Path: toolsPath + "max_conversations", Kind: Int, Default: is(8), Range: between(1, 1000),
			Unit: "conversations", When: []Clause{only(toolsPath+"conversations", "all")},
			Help: "most conversations of an episode; memory is planned for all of them at full length"},
	})
	kind := Key{Path: toolsPath + "kind", Kind: Enum, Words: []string{None, "python", "command", "agent"},
		Default: is(None), Stages: at(Train, EvalGen),
		Help: "what answers the policy's calls within a completion: nothing, Python in the sandbox, or a program " +
			"of yours; or an agent, a program of yours that asks the policy itself"}
	return slices.Concat([]Key{kind}, used, turns, python, programs, agent)
}

// anyText allows empty texts, too.
func anyText() *Pattern { return pattern("a text", `(?s).*`) }

func toolsChecks() []check {
	pair := func(path string, of func(t Tools) []string) check {
		return check{[]string{path}, func(r *Run) (string, string) {
			if r.Rollout.Tools.Format == "tags" && len(of(r.Rollout.Tools)) != 2 {
				return path + " needs two texts, before and after", `such as ["<code>", "</code>"]`
			}
			return "", ""
		}}
	}
	return []check{
		pair(toolsPath+"call", func(t Tools) []string { return t.Call }),
		pair(toolsPath+"answer", func(t Tools) []string { return t.Answer }),
		{[]string{toolsPath + "call"}, func(r *Run) (string, string) {
			if c := r.Rollout.Tools.Call; r.Rollout.Tools.Format == "tags" && len(c) == 2 && c[1] == "" {
				return toolsPath + "call has no text that ends a call", `such as ["<code>", "</code>"]`
			}
			return "", ""
		}},
		{[]string{toolsPath + "command"}, func(r *Run) (string, string) {
			if t := r.Rollout.Tools; t.Program() && (len(t.Command) == 0 || t.Command[0] == "") {
				return toolsPath + "command names no program",
					"list the program and its arguments: [./my-tool, --strict]"
			}
			return "", ""
		}},
		{[]string{toolsPath + "format", toolsPath + "kind"}, func(r *Run) (string, string) {
			switch t := r.Rollout.Tools; {
			case t.Kind == "python" && t.Format == "user":
				return toolsPath + "format is user, but Python answers programs, not every turn",
					toolsPath + "kind: command, with a program that answers as the user"
			case t.Kind == "command" && t.Format == "fence":
				return toolsPath + "format is fence, which marks programs in Python",
					toolsPath + "kind: python, or another format"
			}
			return "", ""
		}},
		{[]string{toolsPath + "kind", "compute.rollout_tensor_parallel"}, func(r *Run) (string, string) {
			if r.Rollout.Tools.Agent() && r.Compute.SampleTensor() > 1 {
				return toolsPath + "kind is agent, whose requests come at any time, but ranks that share products " +
					"take every step together", "compute.rollout_tensor_parallel: 1"
			}
			return "", ""
		}},
		{[]string{toolsPath + "kind", "rollout.source"}, func(r *Run) (string, string) {
			if r.Rollout.Tools.Used() && r.Rollout.Source == "recorded" {
				return toolsPath + "kind is " + r.Rollout.Tools.Kind + ", but recorded rollouts are not sampled",
					toolsPath + "kind: none; rows say which of their tokens tools wrote (inserted)"
			}
			return "", ""
		}},
	}
}

// aboutAgents explains rollout.tools.kind: agent.
const aboutAgents = `
  An agent is a program of yours that works on problems with the policy: a loop with tools, an
  environment, a harness that knows OpenAI's API. It is started once for each of
  rollout.tools.workers, with your rights and environment and without a sandbox. For every
  episode, which becomes one completion, it reads a line like the first below. With
  rollout.tools.episodes above 1 it must play so many at once, as asyncio, threads or
  goroutines do: further lines come while episodes are under way, each is to be begun when it
  comes, and they may end in any order.

    {"id": "7", "base_url": "http://127.0.0.1:40123/episode/…/v1", "api_key": "…",
     "model": "policy", "problem": "gsm-12", "prompt": "…", "messages": […], "gold": "…",
     "data_source": "…", "extra": {…}}

  asks chat/completions behind base_url (completions, if the run has no chat template), and
  writes a line when the episode is over:

    {"id": "7"}                               the run's own graders judge the last turn
    {"id": "7", "score": 0.5}                 the reward; "correct" says whether it is right
                                              (else from 1 on), "answer" what the answer is
    {"id": "7", "turns": [{"reward": 0.1, "state": "kitchen; door open"}, …]}
                                              what each turn earned, and in which state
    {"id": "7", "error": "the site is down"}  nothing to learn from; such completions are not
                                              graded, as after an agent that died or hung.
                                              Above reward.max_not_graded in training, or
                                              eval.final.max_not_graded, the run ends (exit 8)

  turns has one entry for each answer of the policy, in their order; a refused request has
  none. A turn's reward is 0 unless it is given, and its state is a text that is the same where
  the state is, by default what the request added to its conversation: its new messages, or
  text. Without a score the episode's is the sum of the rewards, if there are any. With one,
  what the rewards leave of it counts for the last turn. Entries of a named conversation
  (below) have its name, "conversation": "critic 2", and are counted within it. With last,
  turns of earlier conversations have entries too: their rewards are part of the score, and
  teach no turn. An episode whose turns are others than its answers is not graded.

  Everything else belongs on standard error, which exp shows: a line that is not JSON, or whose
  id no open episode of the process has, ends the run. An episode is played again, up to
  rollout.tools.retries times, if the program dies, or takes rollout.tools.limit without a
  request and is stopped. A program that dies takes all its open episodes with it, and each has
  used up a try; the last try has a process for itself, so one bad episode fails alone (with
  retries: 0, all fail). A program that is stopped for one episode costs its others no try. If
  fresh processes die or fall silent in 8 episodes, and none ends in between, the program is
  broken, and the run ends.

  If the problem shows images, they are in messages, as parts image_url with data: URLs, to be
  passed on. Messages of users and tools may show other images, too, if the model reads images:
  as such parts, with PNG, JPEG, WebP, GIF or BMP files, such as a part of one, a plot or a
  screenshot. They count as tokens (data.image_min_pixels and data.image_max_pixels size them),
  and are kept in the store once. One that cannot be read gets an error that names its part.

  The conversation is the completion. Its first messages are the prompt (at most
  data.max_prompt_tokens); the policy's answers are learned, token by token as they were
  drawn; what the agent said between them is context. A request must repeat what was said
  before it adds messages; thoughts may be left out of answers, and stay in the policy's
  context. A request that does not is refused (one), or begins another conversation: the only
  one to learn from (last), or one of up to rollout.tools.max_conversations (all). Then a
  request continues the one that it repeats most of (a prompt with an empty answer, asked
  again, begins another), and the episode's reward is for all; reward.command reads them one
  after another, without the later prompts.
  Requests of an episode are answered one after another. With all, an agent may name
  conversations, and ask in several at the same time: metadata: {"conversation": "critic 2"},
  a text or number. A request with a name continues that conversation or begins it; what the
  policy says depends on the name and on nothing in other conversations, and max_turns counts
  its turns apart. Named conversations stand behind those without a name, by name, shorter
  names first.
  rollout.max_new_tokens covers all after a conversation's prompt. A later prompt may be longer
  than data.max_prompt_tokens, with as many fewer tokens after it. A request beyond, or beyond
  rollout.tools.max_turns, gets an error (context_length_exceeded, too_many_turns,
  too_many_conversations).

  Requests may set tools, tool_choice, max_tokens, stop and stream, and ask for an answer of a
  form (response_format, or vLLM's structured_outputs). Temperature and other parameters of
  sampling are the run's, whatever a request says. Where a request has tools, calls come back
  as tool_calls: those in the form of the chat template, or else JSON in <tool_call> tags. An
  agent whose requests depend only on its line and on the answers gives the same run again;
  every turn has a seed of its own. The agent's program and the files on its command line are
  part of the experiment.
`

// aboutTools returns help that does not fit on a key's help line; empty for most keys.
func aboutTools(path string) string {
	switch path {
	case toolsPath + "kind":
		return `
  python   runs the program of each call in a fresh process of the sandbox, without network
           or files, with the standard library. The policy reads what it prints, the value of
           an expression that ends it, and its traceback if it fails. Programs that read no
           clock print the same every time: hashes, addresses and module random begin alike.
           The interpreter's version is part of the experiment.
  command  asks a program of yours: a search engine, a game, a user (exp config explain
           rollout.tools.command)
  agent    lets a program of yours lead: it plays an episode for each completion and asks the
           policy by OpenAI's API as often as it likes (exp config explain
           rollout.tools.conversations)

  After a call the completion waits, and goes on when its answer is there. What tools write
  is context: no algorithm trains on it, but rollout.max_new_tokens covers it. If an answer
  leaves no room for a further token, the completion ends before it, with finish "length";
  a call beyond rollout.tools.max_turns ends it with "turns". Our graders see what the policy
  itself wrote: its last turn (hermes, user, agents), or all of it (fence, tags).
  reward.command gets the whole conversation. Evaluations use the same tools.

    rollout: {max_new_tokens: 4096, tools: {kind: python}}    # Qwen, Hermes: JSON calls
    rollout: {tools: {kind: python, format: fence}}           # a fenced block, then its output
    rollout: {tools: {kind: python, format: tags}}            # <code> and <interpreter> (ReTool)
    rollout: {tools: {kind: python, format: tags, call: ["", "="], answer: ["", ""]}}  # 6*7=42
    rollout: {tools: {kind: agent, command: [python3, agent.py]}}
    rollout:                                                  # Search-R1
      tools: {kind: command, command: [./search], format: tags, call: ["<search>", "</search>"],
              answer: ["\n\n<information>", "</information>\n\n"]}
`
	case toolsPath + "command":
		return `
  The program is started once for each of rollout.tools.workers, with your rights and
  environment and without a sandbox. For every call it reads a line like

    {"id": "7", "problem": "gsm-12", "turn": 1, "name": "search", "arguments": {"query": "…"},
     "input": "…", "response": "…", "prompt": "…", "gold": "…", "data_source": "…", "extra": {…}}

  and writes a line, flushed before it waits for more input:

    {"id": "7", "output": "what the policy reads"}
    {"id": "7", "end": true}                        ends the completion
    {"id": "7", "error": "the index is missing"}    ends the run (exit 8)

  name and arguments come from a JSON call and are absent in other formats; input is the text of
  the call, response the completion so far. extra is the problem's data; extra.columns has the
  columns that data.keep names. The answer must depend on this line only, or a run cannot be
  repeated. Program, arguments and the files among them are part of the experiment.

  Agents read and write other lines: exp config explain rollout.tools.conversations
`
	case toolsPath + "conversations":
		return aboutAgents
	}
	return ""
}
