package eval

import (
	"fmt"
	"strings"
)

// Protocol is a named way to evaluate. It spells out every setting that changes a score, including those
// that published scripts silently take from a defaults file.
type Protocol struct {
	Name            string   `json:"name"`
	About           string   `json:"about"`
	Source          string   `json:"source"`
	N               int      `json:"n"` // samples per problem
	Temperature     float64  `json:"temperature"`
	TopP            float64  `json:"top_p"`
	TopK            int      `json:"top_k"` // 0: off
	MaxPromptTokens int      `json:"max_prompt_tokens"`
	MaxNewTokens    int      `json:"max_new_tokens"`
	Truncate        string   `json:"truncate"` // side on which a prompt that is too long is cut
	DType           string   `json:"dtype"`
	Prompt          string   `json:"prompt"`
	Metrics         []string `json:"metrics"`
	Grader          string   `json:"grader"`
}

const (
	flowrlSource = "github.com/Xuekai-Zhu/FlowRL@decbc57b verl@Test"
	dapoPrompt   = "DAPO's template (sha256 of prefix 46d554a9, of suffix f5c796ae) in the model's chat template"
)

// Protocols lists the known protocols; Source says where each is published.
func Protocols() []Protocol {
	math := Protocol{
		Name: "flowrl-math", About: "FlowRL's mathematics evaluation as its scripts run it: top-k 50 comes from " +
			"their defaults file", Source: flowrlSource,
		N: 16, Temperature: 0.6, TopP: 0.95, TopK: 50, MaxPromptTokens: 2048, MaxNewTokens: 8192, Truncate: "right",
		DType:  "bf16",
		Prompt: dapoPrompt, Metrics: []string{"avg@16"}, Grader: "Math-Verify: the whole response, gold in a box",
	}
	paper := math
	paper.Name, paper.Source, paper.TopK = "flowrl-math-paper", "arXiv:2509.15207v3", 0
	paper.About = "the same as stated in the paper: no top-k"
	long := paper
	long.Name, long.N, long.Metrics = "flowrl-math-64", 64, []string{"avg@64"}
	long.About = "FlowRL's tables with 64 samples at temperature 0.6"
	hot := long
	hot.Name, hot.Temperature, hot.About = "flowrl-math-64-hot", 1, "FlowRL's tables with 64 samples at temperature 1"
	code := math
	code.Name, code.About = "flowrl-code", "FlowRL's code evaluation"
	code.Prompt = "the question, starter code or an instruction to read stdin, in the model's chat template"
	code.Metrics, code.Grader = []string{"avg@16", "pass@16"}, "all tests of the problem"
	val := math
	val.Name, val.About, val.N, val.Temperature, val.TopP, val.TopK = "flowrl-validation",
		"validation during FlowRL's training: greedy, one sample", 1, 0, 1, 0
	val.Source, val.Truncate, val.Metrics, val.Grader = "github.com/Xuekai-Zhu/FlowRL@decbc57b verl@FlowRL", "left",
		[]string{"mean@1"}, "math_dapo"
	return []Protocol{math, paper, long, hot, code, val}
}

// ProtocolByName finds a protocol.
func ProtocolByName(name string) (Protocol, error) {
	var names []string
	for _, p := range Protocols() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Protocol{}, fmt.Errorf("unknown protocol %q; known: %s", name, strings.Join(names, ", "))
}

// Settings prints every sampling setting of the protocol on one line.
func (p Protocol) Settings() string {
	topK := "off"
	if p.TopK > 0 {
		topK = fmt.Sprint(p.TopK)
	}
	return fmt.Sprintf("n %d, temperature %g, top-p %g, top-k %s, prompt at most %d tokens (cut on the %s), "+
		"response at most %d, %s",
		p.N, p.Temperature, p.TopP, topK, p.MaxPromptTokens, p.Truncate, p.MaxNewTokens, p.DType)
}
