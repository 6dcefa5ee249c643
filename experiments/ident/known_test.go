package ident

import (
	"encoding/hex"
	"math"
	"testing"
	"testing/fstest"
)

// The answers come from testdata/known_answers.py, which builds the same
// bytes with Python's struct and hashlib. They never change: a definition that
// changes gets a new tag.

func TestEncodeKnownAnswer(t *testing.T) {
	got, err := Encode(map[string]any{"b": 1, "a": []any{true, false, nil, math.Copysign(0, -1), "é"}})
	if err != nil {
		t.Fatal(err)
	}
	// m 2; "a": l 5 (t f n d+0 s"é"); "b": i 1
	const want = "6d00000002" +
		"730000000161" + "6c00000005" + "74" + "66" + "6e" + "640000000000000000" + "7300000002c3a9" +
		"730000000162" + "690000000000000001"
	if hex.EncodeToString(got) != want {
		t.Errorf("Encode = %x, want %s", got, want)
	}
}

func TestHashKnownAnswer(t *testing.T) {
	got, err := Hash("exp/test/1", nil)
	check(t, "Hash(exp/test/1, nil)", got, err, "3abcba5f4f941d01acc792fb9edd8ca01ed911bf40363089584cbc7112212ec2")
}

func TestSeedKnownAnswer(t *testing.T) {
	if got, want := Seed(7, "rollout/step=12/prompt=p7/sample=3"), uint64(0xcf943fed1cdfdf8d); got != want {
		t.Errorf("Seed(7, …) = %#x, want %#x", got, want)
	}
	if got, want := Seed(-1, ""), uint64(0xc8f32a4e49a0f566); got != want {
		t.Errorf("Seed(-1, \"\") = %#x, want %#x", got, want)
	}
}

func TestKeysKnownAnswer(t *testing.T) {
	xid, err := Experiment{
		Config:    map[string]any{"algo": map[string]any{"kind": "ppo"}, "lr": 1e-3, "n": 8},
		Data:      map[string]Digest{"train": Sum([]byte("train"))},
		Tokenizer: Sum([]byte("tok")),
		Code:      map[string]Digest{"train": Sum([]byte("code"))},
	}.XID()
	check(t, "XID", xid, err, "15f4ef0b20e14dfb86d71c023786a30ef470e5586e93b5309288938de2671477")

	rid := RID(xid, 3, "cpu/fma")
	check(t, "RID", rid, nil, "e96307c553edae75847d0a40b6c28c625c06cdcfcc54be27bacf041e3cf9f976")

	sid, err := Stage{
		Kind:     "train",
		Params:   map[string]any{"steps": 10},
		Inputs:   map[string]Digest{"weights": Sum([]byte("w"))},
		Code:     Sum([]byte("code")),
		Seed:     "seed=3",
		Numerics: "cpu/fma",
	}.SID()
	check(t, "SID", sid, err, "9fd61d31c7a04b6c125239aaf1d43f1002bc59e7002385bd248a8d49b72c1724")

	c0 := ChainStart(rid)
	check(t, "ChainStart", c0, nil, "068fe87ba1d6511128c2f95ea660f81aa382b1f256b4677f258caac1d54f3c40")
	c1, err := exampleDet().Next(c0)
	check(t, "Next", c1, err, "58a3e05e38d7c85dd433ce7605f1145571725ae9dc753ea920a3fecf3e950577")
}

// exampleDet is the step of known_answers.py.
func exampleDet() Det {
	return Det{
		Step:     1,
		Items:    Sum([]byte("items")),
		Tokens:   Sum([]byte("tokens")),
		LogProbs: Sum([]byte("lp")),
		Rewards:  Sum([]byte("r")),
		Metrics:  map[string]float64{"loss": math.Copysign(0, -1), "kl": 0.25},
	}
}

func TestWeightsKnownAnswer(t *testing.T) {
	a := Tensor{Name: "a", DType: "F32", Shape: []int{2}, Data: SumLE([]float32{1, -2})}
	b := Tensor{Name: "b", DType: "BF16", Shape: []int{1, 1}, Data: SumLE([]uint16{0x3f80})}
	const want = "7179b8302c472c1505981d8a09cbba642cb52413577c0f8c9bdf05ddfe4ae1de"
	for _, order := range [][]Tensor{{a, b}, {b, a}} {
		got, err := Weights(order)
		check(t, "Weights", got, err, want)
	}
}

func TestRecordsKnownAnswer(t *testing.T) {
	r := NewRecords()
	for _, id := range []string{"p0", "p1"} {
		if err := r.Add(map[string]any{"id": id}); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "Records", r.Digest(), nil, "c1bc8b9b038c78142ec042215bf43aaee4aaf1605e0280b26f6375a1aab1528c")
}

func TestCodeKnownAnswer(t *testing.T) {
	got, _ := codeOf(t, exampleTree(), "go1.26.0")
	check(t, "Code", got, nil, "ffc5cab1533f70c5e40a8cb7cecd055b087efe98a83c37facb9b70560c41a4cf")
}

func exampleTree() fstest.MapFS {
	return fstest.MapFS{
		"go.sum":               {Data: []byte("sum")},
		"train/train.go":       {Data: []byte("train")},
		"train/train_test.go":  {Data: []byte("test")},
		"train/rl/gae.go":      {Data: []byte("gae")},
		"reports/report.go":    {Data: []byte("report")},
		"training/training.go": {Data: []byte("not in train/")},
	}
}

func check(t *testing.T, name string, got Digest, err error, want string) {
	t.Helper()
	if err != nil || got.String() != want {
		t.Errorf("%s = %s, %v, want %s", name, got, err, want)
	}
}
