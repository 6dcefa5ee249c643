// Command distance is an example of a reward program: it scores countdown completions
// by how near their value comes to the target.
//
//	exp run configs/command_reward_cpu.yaml
//
// It reads a JSON line for each completion and answers with one, as exp config explain
// reward.command says. Two components tell what the score is made of:
//
//	distance  1/(1 + |value - target|); 0 without a valid expression
//	short     1/(1 + characters/10)
//	score     0.9 distance + 0.1 short
//
// Whether the completion is right, and uses only the numbers given, it leaves to the
// task.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"os"
	"regexp"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout) // writes each line at once
	for in.Scan() {
		a, err := score(in.Bytes())
		if err == nil {
			err = out.Encode(a)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "distance:", err)
			os.Exit(1)
		}
	}
}

// answer is a line of output.
type answer struct {
	ID         string             `json:"id"`
	Score      float64            `json:"score"`
	Components map[string]float64 `json:"components"`
}

// score answers a line of input.
func score(line []byte) (answer, error) {
	var row struct {
		ID       string `json:"id"`
		Response string `json:"response"`
		Extra    struct {
			Target float64 `json:"target"`
		} `json:"extra"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return answer{}, err
	}
	near := 0.0
	if v, ok := value(row.Response); ok {
		near = 1 / (1 + math.Abs(v-row.Extra.Target))
	}
	short := 1 / (1 + float64(len(row.Response))/10)
	return answer{ID: row.ID, Score: 0.9*near + 0.1*short, Components: map[string]float64{"distance": near,
		"short": short}}, nil
}

var integer = regexp.MustCompile(`\d+`)

// value computes an expression of numbers, + - * / and parentheses, by the constant
// arithmetic of Go's own type checker, which is exact.
func value(text string) (float64, bool) {
	if len(text) > 200 || !regexp.MustCompile(`^[-+*/()\d]+$`).MatchString(text) {
		return 0, false
	}
	exact := integer.ReplaceAllString(text, "$0.0") // 7/2 is 3.5
	tv, err := types.Eval(token.NewFileSet(), nil, token.NoPos, exact)
	if err != nil || tv.Value == nil {
		return 0, false
	}
	v, _ := constant.Float64Val(constant.ToFloat(tv.Value))
	return v, !math.IsInf(v, 0) && !math.IsNaN(v)
}
