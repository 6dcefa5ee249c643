package eval

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"exp/train/rollout"
)

func TestGenerate(t *testing.T) {
	sampler := &fakeSampler{}
	params := rollout.Params{Temperature: 0.6, TopK: 50, TopP: 0.95, MaxNewTokens: 9}
	g := &Generator{Sampler: sampler, Prompt: encodeBytes, Seed: labelSeed, Params: params}
	problems := []rollout.Problem{{ID: "b", Prompt: "x"}, {ID: "a", Prompt: "yz"}}
	finished := 0
	got, err := g.Generate(context.Background(), problems, 0, 2, func(n int) { finished = n })
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, s := range got {
		order = append(order, SampleLabel(s.ProblemID, s.K))
	}
	want := []string{"prompt=b/sample=0", "prompt=b/sample=1", "prompt=a/sample=0", "prompt=a/sample=1"}
	if !slices.Equal(order, want) {
		t.Errorf("samples %q, want %q", order, want)
	}
	if !reflect.DeepEqual(sampler.params, params) {
		t.Errorf("sampled with %+v, want %+v", sampler.params, params)
	}
	if got, want := sampler.requests[1].Prompt, []int32{'y', 'z'}; !slices.Equal(got, want) {
		t.Errorf("prompt %v, want %v", got, want)
	}
	if finished != 2 {
		t.Errorf("done was told %d, want 2", finished)
	}
}

// Sample k of a problem does not depend on the number of samples or on other problems.
func TestGenerateSamplesStandAlone(t *testing.T) {
	g := &Generator{Sampler: &fakeSampler{}, Prompt: encodeBytes, Seed: labelSeed}
	problems := []rollout.Problem{{ID: "a", Prompt: "a"}, {ID: "b", Prompt: "b"}}
	many, err := g.Generate(context.Background(), problems, 0, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	few, err := g.Generate(context.Background(), problems[1:], 0, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(few, many[8:11]) {
		t.Errorf("3 samples of b alone: %+v\nof 8 next to a: %+v", few, many[8:11])
	}
	rest, err := g.Generate(context.Background(), problems[1:], 3, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rest, many[11:]) {
		t.Errorf("5 samples of b after its first 3: %+v\nof 8: %+v", rest, many[11:])
	}
	asked := g.Sampler.(*fakeSampler).requests
	if len(asked) != 1 || len(asked[0].Seeds) != 5 {
		t.Errorf("the sampler was asked for %+v, want 5 completions of b", asked)
	}
	if none, err := g.Generate(context.Background(), problems, 8, 8, nil); err != nil || len(none) != 0 {
		t.Errorf("%d samples from 8 to 7, %v", len(none), err)
	}
	different := make(map[string]bool)
	for _, s := range many {
		different[s.Completion.Text] = true
	}
	if len(different) < 3 {
		t.Errorf("16 samples with different seeds are only %v", different)
	}
}

func TestGenerateErrors(t *testing.T) {
	g := &Generator{Sampler: &fakeSampler{err: context.Canceled}, Prompt: encodeBytes, Seed: labelSeed}
	if _, err := g.Generate(context.Background(), []rollout.Problem{{ID: "a", Prompt: "x"}}, 0, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the sampler's", err)
	}
	_, err := g.Generate(context.Background(), []rollout.Problem{{ID: "p1", Prompt: "x!"}}, 0, 1, nil)
	if err == nil || !strings.Contains(err.Error(), "p1") {
		t.Errorf("error %v, want one that names problem p1", err)
	}
}
