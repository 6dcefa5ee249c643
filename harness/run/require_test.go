package run

import (
	"errors"
	"strings"
	"testing"

	"exp/harness/device"
	"exp/harness/forecast"
)

// The ranks of a machine share its memory, and each has a GPU's. Ranks on other machines take none here.
func TestRequireMemory(t *testing.T) {
	r := smoke(t)
	one, err := forecast.Of(r, 1).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	each, err := forecast.Of(r, 4).Estimate()
	if err != nil {
		t.Fatal(err)
	}
	if each.Total() >= one.Total() {
		t.Fatalf("a rank needs %d bytes, one process %d", each.Total(), one.Total())
	}
	gpu := &device.GPU{Index: 3}
	for _, tt := range []struct {
		on   Processes
		gpu  *device.GPU
		have int64
		want string
	}{
		{Alone(), nil, (one.Total() + one.Program), ""},
		{Alone(), nil, (one.Total() + one.Program) - 1, "memory: the run needs"},
		{Processes{4, 1}, nil, (each.Total() + each.Program), ""},
		{Processes{4, 1}, nil, (each.Total() + each.Program) - 1, "memory: the run needs"},
		{Processes{4, 4}, nil, 4 * (each.Total() + each.Program), ""},
		{Processes{4, 4}, nil, 4*(each.Total()+each.Program) - 1, "memory: 4 ranks here need"},
		{Processes{4, 4}, gpu, each.Total(), ""},
		{Processes{4, 4}, gpu, each.Total() - 1, "memory: each rank needs"},
	} {
		e := &RequireError{Estimate: &one}
		if tt.on.Ranks > 1 {
			e.Estimate = &each
		}
		e.lackMemory(tt.gpu, tt.have, 0, tt.on)
		if got := strings.Join(e.Missing, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%+v, %d bytes: %q, want %q", tt.on, tt.have, got, tt.want)
		}
	}
}

// What the ranks here pin together must fit the machine. Pinning less takes less memory in all.
func TestRequirePinned(t *testing.T) {
	const each = 1 << 30
	gpu := &device.GPU{Memory: 1 << 40}
	for _, tt := range []struct {
		on          Processes
		host        int64
		missing, do string
	}{
		{Alone(), each, "", ""},
		{Alone(), each - 1, "memory: the run pins 1.00 GiB", "use more --ranks, a smaller model or fewer " +
			"compute.micro_batch_tokens, or set train.slices: 1"},
		{Processes{8, 4}, 4 * each, "", ""},
		{Processes{8, 4}, 4*each - 1, "memory: 4 ranks here pin 4.00 GiB", "use more --ranks, a smaller model or fewer " +
			"compute.micro_batch_tokens"},
	} {
		e := &RequireError{Estimate: &forecast.Estimate{HostMemory: []forecast.Part{{Name: "moments", Bytes: each}}}}
		e.lackMemory(gpu, gpu.Memory, tt.host, tt.on)
		missing, do := strings.Join(e.Missing, ""), strings.Join(e.Do, "")
		if (missing == "") != (tt.missing == "") || !strings.HasPrefix(missing, tt.missing) || do != tt.do {
			t.Errorf("%+v of %d bytes: %q, %q", tt.on, tt.host, missing, do)
		}
	}
}

// A model that is not here is planned if its sizes are published; otherwise the advice says how to plan it.
func TestRequireModel(t *testing.T) {
	const advice = "put its config.json alone into a folder"
	for base, want := range map[string]string{
		"Qwen/Qwen3.5-4B":             "or fetch it from the hub: --set model.base=hub:Qwen/Qwen3.5-4B@main --get",
		"Org/Unheard-Of":              advice,
		"Qwen/Qwen2.5-7b":             "is it Qwen/Qwen2.5-7B?",
		"hub:Qwen/Qwen3-8B-Base@main": "exp hub get Qwen/Qwen3-8B-Base@main",
		"hub:Org/Unheard-Of@main":     advice,
	} {
		t.Setenv("HF_HUB_CACHE", t.TempDir())
		r := smoke(t, "model={init: pretrained, base: "+base+"}", "tokenizer.kind=model")
		var e *RequireError
		if err := Require(r, Alone()); !errors.As(err, &e) {
			t.Fatalf("%s: %v", base, err)
		}
		do := strings.Join(e.Do, "\n")
		// The plan is printed only if memory is scarce, and then above the missing inputs.
		e.Scarce = true
		table, _, _ := strings.Cut(e.Error(), "  missing")
		if e.Scarce = false; strings.Contains(table, "in all") != (e.Estimate != nil) || strings.Contains(e.Error(), "in all") ||
			!strings.HasSuffix(e.Error(), "\n  to do    "+e.Do[len(e.Do)-1]) {
			t.Errorf("%s:\n%s", table, e)
		}
		if !strings.Contains(do, want) || strings.Contains(do, advice) == (e.Estimate != nil) {
			t.Errorf("%s: an estimate: %v; to do\n%s", base, e.Estimate != nil, do)
		}
	}
}
