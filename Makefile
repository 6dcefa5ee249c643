# Each target is a command that a person could type. On a fresh machine with Go
# and gcc, `make demo` and `make test` need nothing else: Go fetches the modules.

GO      ?= go

# Programs and tests are built with one set of flags, so that C is compiled once for both. Debugging
# information, which bin/exp and the programs of `go test` leave out, would take a tenth of the time.
# Tag cuda adds the backend for NVIDIA GPUs; it needs neither a GPU nor a toolkit.
PLATFORM := $(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)
TAGS := $(if $(filter linux/amd64 linux/arm64,$(PLATFORM)),cuda)
QUICK_GO := -trimpath -gcflags=all=-dwarf=false
export GOFLAGS += $(QUICK_GO) $(TAGS:%=-tags=%)

# C is compiled without debugging information, which is a sixth of SQLite's time, and SQLite with
# what makes -O1 nearly as fast as -O2 in half the time to compile (our own C sets -O2). Package
# gorgonia.org/cu includes <cuda.h>, and CPATH names ours: unlike a flag it leaves the key
# alone under which Go keeps compiled C, so that checkouts share it. But gcc looks in CPATH
# last, so flags it must be where a toolkit of NVIDIA lies in a folder that cu names.
CUDA_INCLUDE := $(CURDIR)/kernels/cuda/include
QUICK_C := -O1 -finline-small-functions -findirect-inlining -fpartial-inlining -fstrict-aliasing
ifneq ($(wildcard /usr/local/cuda*/include/cuda.h /usr/local/cuda*/targets/*/include/cuda.h /opt/cuda/include/cuda.h),)
export CGO_CFLAGS := $(QUICK_C) -I$(CUDA_INCLUDE)
else
export CGO_CFLAGS := $(QUICK_C)
export CPATH := $(CUDA_INCLUDE)
endif

DEMO    ?= demo
BENCH   ?= .
FUZZTIME ?= 10s
SOURCES = cmd configs eval experiments harness kernels reports sandbox train source.go

.PHONY: build demo test cuda cuda-kernels cuda-runs cuda-gpu cuda-without fake ptx assemble gpu amx race lint bench golden fuzz clean help

help:            ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The compiler takes a fifth less time if it collects garbage less often, and so do many tests.
QUICKLY := GOGC=400 $(GO)
# Linux maps some 25 MiB more of a file that the linker wrote than of a copy, so that small runs take more than planned.
build:           ## bin/exp
	$(QUICKLY) build -ldflags=-s -o bin/exp ./cmd/exp
	@cp bin/exp bin/exp.copy && mv bin/exp.copy bin/exp

# The recipes of the study in configs/studies/countdown, with a third of their steps.
demo: build      ## train FlowRL and PPO on Countdown and write demo/report: the main job, some minutes
	bin/exp run configs/countdown_cpu_flowrl.yaml configs/countdown_cpu_ppo.yaml --store $(DEMO)/.exp \
	  --set sft.steps=270 --set train.steps=40
	bin/exp compare countdown-flowrl countdown-ppo --store $(DEMO)/.exp
	bin/exp report countdown-flowrl countdown-ppo --store $(DEMO)/.exp --out $(DEMO)/report
	@echo "Open $(DEMO)/report/index.html"

# `go vet` and `go test` vet separately, both with all packages that ours import. So
# `go test` does it with all analyzers, once: all but cgocall, which opens sources under the
# name that they had when C was compiled. That may have been another checkout of the same
# sources, removed since.
comma := ,
space := $(subst ,, )
ANALYZERS = $(or $(subst $(space),$(comma),$(filter-out cgocall,$(shell \
  $(GO) tool vet help 2>&1 | sed -n '/^Registered/,/^By default/s/^    \([a-z]*\) .*/\1/p'))),$(error go tool vet help lists no analyzers))

# Runs of tests wait for the disk some hundred times each, so their files are kept in memory
# where it has room and may hold programs.
define IN_MEMORY
dir=/dev/shm; test "$$(df --output=avail $$dir 2>/dev/null | tail -1)" -gt 4000000 2>/dev/null || exit; \
  program=$$(mktemp -p $$dir) || exit; echo '#!/bin/sh' >$$program; chmod +x $$program; \
  $$program 2>/dev/null && echo TMPDIR=$$dir; rm -f $$program
endef
# Some tests wait, for programs or for time to pass, so one more runs than there are processors.
MORE := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
# Programs of tests, unlike bin/exp, profile their memory, which takes a twentieth of the time of those that run recipes.
RUN_TESTS = $(QUICKLY) test -ldflags=-s -p $(MORE) -exec 'env GODEBUG=memprofilerate=0 $(shell $(IN_MEMORY))' -vet=$(ANALYZERS)
test: build      ## every test; needs no GPU, no network once the modules are there
	$(RUN_TESTS) -timeout 20m ./...
	$(MAKE) -j 2 --output-sync=line cuda amx

# PLAIN are tests that need no driver: `go test ./...` runs them.
PLAIN = PTX|Assemble|GPU$$|Lint|FindTheirLines
ON_FAKE = FAKECUDA= LD_LIBRARY_PATH=$(CURDIR)/build/fake
cuda: cuda-kernels cuda-runs cuda-gpu cuda-without ## the backend for GPUs on a driver without hardware, and a build without it
cuda-kernels: fake
	$(ON_FAKE) $(RUN_TESTS) -timeout 20m -skip '$(PLAIN)' ./kernels/cuda/... ./harness/ranks/nccl
cuda-runs: fake
	$(ON_FAKE) $(RUN_TESTS) -timeout 20m -run 'CUDA' ./cmd/exp ./harness/forecast ./harness/run ./train/tensor ./train/vision
	FAKECUDA=order=1 LD_LIBRARY_PATH=$(CURDIR)/build/fake $(RUN_TESTS) -count=1 -run 'TestTrainOnCUDA' ./harness/selftest
cuda-gpu: fake build
	$(QUICKLY) test -c -o build/cuda.test ./kernels/cuda
	$(ON_FAKE) BENCH='Rope$$' CHECKS=Rope RUNS=matrix kernels/cuda/gpu.sh
cuda-without:    # what a plain `go build ./cmd/exp` compiles
	GOFLAGS='$(QUICK_GO)' $(QUICKLY) build -o /dev/null ./cmd/exp
	GOFLAGS='$(QUICK_GO)' $(RUN_TESTS) -run '^$$' ./kernels/cuda
	GOFLAGS='$(QUICK_GO)' $(RUN_TESTS) ./harness/device

fake:            ## in build/fake, a CUDA driver for tests that runs kernels on the CPU, its NCCL and its cuBLASLt
	@$(MAKE) --no-print-directory -j $$(getconf _NPROCESSORS_ONLN) -f kernels/cuda/fake/Makefile
	@$(MAKE) --no-print-directory -f kernels/cuda/cublaslt/fake/Makefile
	@$(MAKE) --no-print-directory -f harness/ranks/nccl/fake/Makefile

ptx:             ## compile changed kernels for GPUs again; needs clang-19 (Debian and Ubuntu have it)
	kernels/cuda/ptx.sh

assemble:        ## registers of each kernel on each kind of GPU, by ptxas from PyPI: kernels/cuda/ASSEMBLY.md
	kernels/cuda/assemble.sh

gpu: build       ## for machines with a GPU: tests and figures in under ten minutes, to kernels/cuda/RESULTS.md
	$(QUICKLY) test -c -o build/cuda.test ./kernels/cuda
	kernels/cuda/gpu.sh

amx:             ## the kernels of level amx on an emulated matrix unit, for machines without one
	$(RUN_TESTS) -tags emulate_amx$(TAGS:%=,%) -run 'Conformance/bf16/amx|Tile/amx|SwiGLUInParts/amx|TestTrain$$' ./kernels/cpu ./harness/selftest

race:            ## the packages whose Go code is concurrent, under the race detector
	$(GO) test -race -short ./cmd/... ./experiments/... ./harness/... ./eval/... ./reports/... ./kernels/cpu ./sandbox ./train/generate ./train

# Vet has all analyzers here, so it compiles this checkout's C under its own name, once.
# Tests are left out of staticcheck and deadcode: what only tests reach is dead. Fixtures of
# several packages' tests may be: an artifact, and ranks within one process.
lint:            ## formatting, vet, staticcheck, unreachable functions, lengths, and the modules' sums
	@test -z "$$(gofmt -l $(SOURCES))" || { gofmt -l $(SOURCES) ; exit 1; }
	GOFLAGS=$(TAGS:%=-tags=%) $(GO) vet ./...
	$(GO) tool staticcheck -tests=false ./...
	@dead="$$($(GO) tool deadcode ./cmd/exp ./configs/... | grep -v train/ranks/inprocess.go)"; \
	  test -z "$$dead" || { echo "$$dead"; exit 1; }
	$(GO) test ./cmd/exp/arch
	$(GO) mod verify

bench:           ## benchmarks; BENCH=Matmul picks some
	$(GO) test -run '^$$' -bench '$(BENCH)' ./...

golden:          ## rewrite the golden files; read the diff like code
	$(GO) test $$(grep -rl '"update"' --include=*_test.go . | xargs -n1 dirname | sort -u) -update

fuzz:            ## each fuzz target for FUZZTIME
	@for d in $$(grep -rl '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -rhoE '^func Fuzz[A-Za-z0-9_]*' $$d/*_test.go | sed 's/func //'); do \
	    echo "$$d $$f"; $(GO) test $$d -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) || exit 1; done; done

clean:           ## what the targets above made
	rm -rf bin build $(DEMO)
