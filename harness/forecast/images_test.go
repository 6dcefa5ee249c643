package forecast

import (
	"slices"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/prompt"
	"exp/harness/prompt/prompttest"
	"exp/harness/stage"
)

// A plan counts the tower where the data shows images, and Go's memory for their features.
func TestShow(t *testing.T) {
	dir := prompttest.PictureFolder(t, prompttest.PictureConfig)
	r, err := config.Load(config.Input{File: "../../configs/smoke_cpu.yaml", Sets: []string{"task={kind: math, math: {grader: exp}}",
		"reward={correct: 1}", "tokenizer.kind=model", "model={init: pretrained, base: " + dir + "}", "data.train={source: " + dir + "/a.jsonl, size: 0}",
		"data.val={source: none, size: 0}", "data.test={source: none, size: 0}", "eval.online.every_steps=0", "eval.final={suites: [none]}",
		"sft={steps: 3, problems_per_step: 2, source: talks.jsonl, optim: {lr: 0.01}}", "data.max_prompt_tokens=96"}})
	if err != nil {
		t.Fatal(err)
	}
	c := &r.Run
	has := func(list []Part) bool {
		return slices.ContainsFunc(list, func(p Part) bool { return p.Name == towerPart })
	}
	_, image := stage.TowerBytes(c, 6)
	// An image of 6 tokens of 32 floats, and 4 patches of 3·2·4·4 floats for each token.
	const feature, pixels = 4 * 32, 4 * 4 * 3 * 2 * 4 * 4
	for _, tt := range []struct {
		name       string
		plan       prompt.Plan
		train, sft bool
		bytes      int64
	}{
		{"texts", prompt.Plan{SFT: &prompt.ConversationPlan{}}, false, false, 0},
		{"conversations", prompt.Plan{SFT: &prompt.ConversationPlan{Images: &prompt.ImagePlan{Images: 5, Most: 6, Row: 1, Different: 20}}}, false, true,
			2*20*feature + 6*pixels},
		// Six rows in three steps show at most six images of six tokens.
		{"many conversations", prompt.Plan{SFT: &prompt.ConversationPlan{
			Images: &prompt.ImagePlan{Images: 500, Most: 6, Row: 1, Different: 2000}}}, false, true,
			2*36*feature + 6*pixels},
		{"problems", prompt.Plan{SFT: &prompt.ConversationPlan{}, Images: &prompt.ImagePlan{Images: 5, Most: 6, Row: 1, Different: 20}}, true, false,
			2*20*feature + 6*pixels},
	} {
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		if !has(e.Memory) || !has(e.SFTMemory) {
			t.Error("before the data is read, the tower is not planned")
		}
		e.Show(c, tt.plan)
		if has(e.Memory) != tt.train || has(e.SFTMemory) != tt.sft || e.ImageBytes != tt.bytes {
			t.Errorf("%s: tower in training %t, in sft %t, images of %d bytes; want %t, %t, %d", tt.name, has(e.Memory), has(e.SFTMemory),
				e.ImageBytes, tt.train, tt.sft, tt.bytes)
		}
		for _, p := range append(e.Memory, e.SFTMemory...) {
			if p.Name == imagePart && p.Bytes != image {
				t.Errorf("%s: activations of %d bytes, want %d", tt.name, p.Bytes, image)
			}
		}
		if got := strings.Contains(e.Text(""), "features of images"); got != (tt.bytes > 0) {
			t.Errorf("%s: the text has images: %t", tt.name, got)
		}
	}
	// Agents may bring images where problems show none: as many tokens of them as completions have room for.
	// The largest has 64, by max_pixels.
	r.Run.Rollout.Tools = config.Tools{Kind: "agent", MaxConversations: 2}
	r.Run.Train.Steps, r.Run.Train.PromptsPerStep, r.Run.Rollout.N, r.Run.Rollout.MaxNewTokens = 2, 3, 4, 8
	small := image
	_, image = stage.TowerBytes(c, 64)
	if _, most := stage.TowerBytes(c, 1000); small >= image || most != image {
		t.Errorf("an image of 6 tokens takes %d bytes, of 64 %d, the largest %d", small, image, most)
	}
	for _, tt := range []struct {
		problems *prompt.ImagePlan
		bytes    int64
	}{{nil, 2*48*104*feature + 64*pixels}, {&prompt.ImagePlan{Images: 5, Most: 6, Row: 1, Different: 20}, 2*(48*104+20)*feature + 64*pixels}} {
		e, err := Of(r, 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		e.Show(c, prompt.Plan{SFT: &prompt.ConversationPlan{}, Images: tt.problems})
		i := slices.IndexFunc(e.Memory, func(p Part) bool { return p.Name == imagePart })
		if !has(e.Memory) || has(e.SFTMemory) || i < 0 || e.Memory[i].Bytes != image || e.ImageBytes != tt.bytes {
			t.Errorf("an agent's run: tower in training %t, in sft %t, images of %d bytes, want %d", has(e.Memory), has(e.SFTMemory), e.ImageBytes, tt.bytes)
		}
	}
	// More features than a stage keeps are computed again, and one image stays in any case.
	arch, err := architectureOf(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[prompt.ImagePlan]int64{
		{Most: 10, Row: 1, Different: 1 << 30}:      2*stage.ImageRoom + 10*pixels,
		{Most: 1 << 25, Row: 1, Different: 1 << 25}: 2*feature<<25 + pixels<<25,
	} {
		if got := heldImages(c, &x, 0, arch, pixels); got != want {
			t.Errorf("%+v: %d bytes, want %d", x, got, want)
		}
	}
}
