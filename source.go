// Package exp holds the module's own sources, embedded, so that a run's record can
// say which code produced it and give that code back: the digest in the record is
// the digest of the sources the binary was built from, not of whatever lies in a working
// tree.
package exp

import "embed"

// Sources are the sources of the module with go.mod and go.sum, by their
// paths in the repository. Tests are among them because patterns cannot leave them
// out; digests do (harness/stage).
//
//go:embed go.mod go.sum *.go
//go:embed kernels/*.go kernels/*/*.go kernels/*/*.c kernels/*/*.h kernels/*/*/*.c kernels/*/*/*.h
//go:embed kernels/cpu/level/*.go kernels/cpu/level/*/*.go kernels/cpu/level/*/*.c
//go:embed kernels/cuda/*.cu kernels/cuda/*.ptx kernels/cuda/*.sh kernels/cuda/lib/libcuda.a
//go:embed kernels/cuda/cublaslt/*.go kernels/cuda/cublaslt/*/*.c
//go:embed kernels/peers/*.py kernels/peers/*.sh
//go:embed train/*.go train/*/*.go train/*/*/*.go train/published/models.jsonl
//go:embed eval/*.go eval/*/*.go eval/*/*/*.go eval/grade/instruct/*.txt
//go:embed eval/layout/*.py eval/published/*.json
//go:embed experiments/*/*.go
//go:embed harness/*/*.go harness/*/*/*.go harness/*/*/*.c harness/*/*/*.h harness/*/*/*/*.c
//go:embed harness/cluster/scripts/* harness/diversity/judge.txt
//go:embed reports/*.go reports/page.css reports/page.tmpl reports/*/*.go reports/serve/assets/*
//go:embed sandbox/*.go sandbox/*/*.go sandbox/*.s sandbox/*.py sandbox/hostile.txt
//go:embed cmd/exp/*.go cmd/exp/*/*.go
//go:embed cmd/exp/cli/completion.bash cmd/exp/cli/completion.fish cmd/exp/cli/completion.zsh
var Sources embed.FS
