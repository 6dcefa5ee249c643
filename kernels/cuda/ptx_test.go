package cuda

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func sources(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("*.cu")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// included are the headers of the kernels, in the order that ptx.sh reads them.
func included() []string {
	return []string{"gpu.h", "args.h", "num.h", "wide.h", "warp.h", "sums.h", "row.h", "softmax.h", "sum.h", "sequence.h", "matrix.h", "steps.h", "tile.h", "products.h",
		"warpgroup.h", "wgmma.h", "turned.h", "heads.h", "span.h", "ring.h", "turns.h", "panel.h", "warpattention.h", "panelattention.h", "paneldq.h", "paneldkv.h",
		"attend.h", "delta.h", "deltarow.h"}
}

// Each PTX carries the digest of what it was compiled from (ptx.sh). `make ptx` compiles it again.
func TestPTXIsFresh(t *testing.T) {
	for _, source := range sources(t) {
		h := sha256.New()
		for _, f := range append(append([]string{"ptx.sh"}, included()...), source) {
			h.Write([]byte(read(t, f)))
		}
		name := strings.TrimSuffix(source, ".cu") + ".ptx"
		first, _, _ := strings.Cut(read(t, name), "\n")
		if want := fmt.Sprintf("// %x", h.Sum(nil)); first != want {
			t.Errorf("%s is not compiled from these sources: run make ptx", name)
		}
	}
	modules, err := filepath.Glob("*.ptx")
	if err != nil || len(modules) != len(sources(t)) {
		t.Errorf("%d PTX files for %d sources: %v", len(modules), len(sources(t)), err)
	}
}

// Where the compiler is, it must give the text that is committed: of every third kernel, with EXP_TEST_ALL=1 of all.
func TestPTXIsReproducible(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Skip(err)
	}
	var compiled []string
	for i, source := range sources(t) {
		if i%3 == 0 || os.Getenv("EXP_TEST_ALL") != "" {
			compiled = append(compiled, source)
		}
	}
	dir := t.TempDir()
	for _, f := range append(append([]string{"ptx.sh"}, included()...), compiled...) {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(read(t, f)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("/bin/sh", filepath.Join(dir, "ptx.sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, source := range compiled {
		name := strings.TrimSuffix(source, ".cu") + ".ptx"
		if read(t, filepath.Join(dir, name)) != read(t, name) {
			t.Errorf("%s differs from what the compiler gives", name)
		}
	}
}

func TestPTXRounds(t *testing.T) {
	for _, source := range sources(t) {
		name := strings.TrimSuffix(source, ".cu") + ".ptx"
		text := read(t, source)
		fuses := strings.Contains(text, "fma") || !strings.Contains(text, `#include "gpu.h"`) // the other headers do
		onCores := strings.HasPrefix(name, "matrix") || strings.HasPrefix(name, "wgmma")
		if !onCores && strings.Contains(read(t, name), "mma.") {
			t.Errorf("%s computes on tensor cores, which only class matrix/16x25 does", name)
		}
		for _, complaint := range lint(read(t, name), fuses) {
			t.Errorf("%s: %s", name, complaint)
		}
	}
}

// Kernels by wgmma are for compute capability 9.0 alone, products in clusters; other modules are for all.
func TestPTXTargets(t *testing.T) {
	for _, source := range sources(t) {
		name := strings.TrimSuffix(source, ".cu") + ".ptx"
		text, target, clusters := read(t, name), "sm_80", 0
		threads, blocks := 384, 2
		if strings.HasPrefix(name, "wgmma") {
			target, clusters = "sm_90a", strings.Count(text, ".visible .entry ")
		}
		switch name {
		case "wgmmathin.ptx", "wgmmaslim.ptx":
			threads, blocks = 256, 2
		case "wgmmaattention.ptx", "wgmmaattentiondq.ptx", "wgmmaattentiondkv.ptx":
			clusters = 0
		}
		if !strings.Contains(text, "\n.version 8.0\n.target "+target+"\n") {
			t.Errorf("%s is not for %s by PTX 8.0", name, target)
		}
		bounds := fmt.Sprintf(".maxntid %d, 1, 1\n.explicitcluster\n.reqnctapercluster %d, 1, 1\n", threads, blocks)
		if n := strings.Count(text, bounds); n != clusters {
			t.Errorf("%s has %d kernels with clusters of %d blocks of %d threads, want %d", name, n, blocks, threads,
				clusters)
		}
		if clusters == 0 && strings.Contains(text, "ctapercluster") {
			t.Errorf("%s wants clusters", name)
		}
	}
}

var (
	instruction = regexp.MustCompile(`^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)\s`)
	arithmetic  = regexp.MustCompile(`^(?:add|sub|mul|mad|fma|div|rcp|sqrt|rsqrt)\..*f(?:16|16x2|32|64)$`)
	rounded     = regexp.MustCompile(`^(?:add|sub|mul|fma|div|rcp|sqrt)\.rn\.f(?:32|64)$`)
	narrowing   = regexp.MustCompile(`^cvt\..*(?:f32\.f64|f(?:32|64)\.[su]\d+)$`)
	inexact     = regexp.MustCompile(`\.(?:ftz|approx|full|sat)\b|^(?:ex2|lg2|sin|cos|tanh)\.|^(?:red|atom)\..*[fb]\d+$`)
)

// lint returns the instructions of a module that the numerics class forbids: float arithmetic
// without a rounding mode, which the assembler may fuse, approximations, and sums in no fixed
// order. Fused products are for kernels that write them.
func lint(ptx string, fuses bool) (complaints []string) {
	for i, line := range strings.Split(ptx, "\n") {
		m := instruction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		op := m[1]
		switch {
		case inexact.MatchString(op), arithmetic.MatchString(op) && !rounded.MatchString(op),
			narrowing.MatchString(op) && !strings.HasPrefix(op, "cvt.rn."), strings.HasPrefix(op, "fma.") && !fuses:
			complaints = append(complaints, fmt.Sprintf("line %d: %s", i+1, op))
		}
	}
	return complaints
}

func TestLint(t *testing.T) {
	for _, tt := range []struct {
		line  string
		fuses bool
		want  bool // lawful
	}{
		{"add.rn.f32 	%f3, %f1, %f2;", false, true},
		{"add.f32 	%f3, %f1, %f2;", false, false},
		{"@%p1 mul.f32 	%f3, %f1, %f2;", false, false},
		{"mul.rn.f64 	%fd3, %fd1, %fd2;", false, true},
		{"mul.f64 	%fd3, %fd1, %fd2;", false, false},
		{"mad.rn.f32 	%f3, %f1, %f2, %f4;", true, false},
		{"fma.rn.f32 	%f3, %f1, %f2, %f4;", true, true},
		{"fma.rn.f32 	%f3, %f1, %f2, %f4;", false, false},
		{"fma.rn.ftz.f32 	%f3, %f1, %f2, %f4;", true, false},
		{"div.approx.f32 	%f3, %f1, %f2;", true, false},
		{"div.full.f32 	%f3, %f1, %f2;", true, false},
		{"div.rn.f32 	%f3, %f1, %f2;", false, true},
		{"sqrt.approx.ftz.f32 	%f3, %f1;", false, false},
		{"rsqrt.approx.f32 	%f3, %f1;", false, false},
		{"ex2.approx.f32 	%f3, %f1;", false, false},
		{"red.global.add.f32 	[%rd1], %f1;", false, false},
		{"atom.global.add.f32 	%f2, [%rd1], %f1;", false, false},
		{"atom.shared.add.u32 	%r2, [%r1], %r3;", false, true},
		{"cvt.rn.f32.f64 	%f1, %fd1;", false, true},
		{"cvt.rz.f32.f64 	%f1, %fd1;", false, false},
		{"cvt.f64.f32 	%fd1, %f1;", false, true},
		{"cvt.rn.f32.s32 	%f1, %r1;", false, true},
		{"cvt.rzi.s32.f32 	%r1, %f1;", false, true},
		{"add.s64 	%rd13, %rd12, %rd9;", false, true},
		{"mul.wide.u32 	%rd4, %r1, %r2;", false, true},
		{"ld.global.f32 	%f1, [%rd10];", false, true},
		{"mov.f32 	%f1, 0f00000000;", false, true},
	} {
		if got := len(lint("\t"+tt.line, tt.fuses)) == 0; got != tt.want {
			t.Errorf("%s (fuses %v): lawful %v, want %v", tt.line, tt.fuses, got, tt.want)
		}
	}
}
