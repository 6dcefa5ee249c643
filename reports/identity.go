package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/experiments/store"
	"exp/harness/config"
)

// identitySection identifies the runs and shows what was proved about them.
func (s *source) identitySection() section {
	return section{ID: "identity", Title: "Identity and verification", Blocks: []block{
		s.runGrid(),
		s.proofGrid(),
		s.codeGrid(),
	}}
}

func (s *source) runGrid() *grid {
	g := &grid{Columns: []column{left("arm"), right("seed"), left("run"), left("experiment"), left("numerics"),
		left("status"), right("steps"), left("chain")},
		Note: text("A run's id is a hash of its configuration, data, initial weights, sources, seed and numerics " +
			"class; the chain is a hash over every step's tokens, rewards and metrics. The same id must give the " +
			"same chain, bit for bit.")}
	for a, r := range eachRun(s.arms) {
		g.add(line{a.span()}, text("%d", r.Seed), digest(r.RID), digest(r.XID), text("%s", r.Numerics),
			text("%s", string(r.Status)),
			text("%d / %d", r.Steps, r.StepsTotal), digest(r.Chain))
	}
	return g
}

// proofGrid shows the checks that runs made on themselves.
func (s *source) proofGrid() *grid {
	g := &grid{Caption: "Checks made by the runs", Columns: []column{left("arm"), right("seed"),
		right("sampler vs. trainer"), left("merged weights"), right("divergences"), right("warnings"),
		left("re-executed")},
		Note: text("Sampler vs. trainer: the largest difference between a token’s probability as recorded by the " +
			"sampler and as computed by the trainer’s forward pass on the same weights, over all checked rollouts; " +
			"0 means equal bits. Merged weights: logits of the exported model against the last checkpoint.")}
	for a, r := range eachRun(s.arms) {
		again := line{styled(muted, "no")}
		if n := r.attemptsOf(store.AttemptVerify); n > 0 {
			again = text("%s", quantity.Plural(n, "time"))
		}
		g.add(line{a.span()}, text("%d", r.Seed), r.samplerProof(), r.probe(), text("%d", len(r.diverged)),
			text("%d", r.warnings()), again)
	}
	return g
}

// samplerProof formats the largest difference between sampler and trainer.
func (r *run) samplerProof() line {
	c, ok := r.curves["training/rollout_probs_diff_max"]
	if !ok || c.N == 0 || math.IsNaN(c.Max) {
		return line{styled(muted, "not checked")}
	}
	if c.Max == 0 {
		return text("0 in %s", quantity.Plural(int(c.N), "step"))
	}
	return line{styled(bad, fmt.Sprintf("%s in %s", quantity.TypesetShort(c.Max), quantity.Plural(int(c.N), "step")))}
}

// probe formats the result of the merge stage's check.
func (r *run) probe() line {
	for _, st := range r.stages {
		var result struct {
			Probe string `json:"probe"`
		}
		if st.Kind == string(config.Merge) && json.Unmarshal(st.Result, &result) == nil && result.Probe != "" {
			return text("%s", result.Probe)
		}
	}
	return line{styled(muted, "not merged")}
}

func (r *run) attemptsOf(kind store.AttemptKind) (n int) {
	for _, a := range r.attempts {
		if a.Kind == kind && a.Status == store.Done {
			n++
		}
	}
	return n
}

func (r *run) warnings() (n int) {
	for _, e := range r.events {
		if e.Level == store.LevelWarn || e.Level == store.LevelError {
			n++
		}
	}
	return n
}

// codeGrid shows the sources of each kind of stage, on one line if all arms agree.
func (s *source) codeGrid() *grid {
	g := &grid{Caption: "Sources", Columns: []column{left("stage"), left("source digest"), left("arms")},
		Note: line{{Text: "The store holds the sources: "}, styled(mono, "exp show RUN --source DIR"),
			{Text: " writes them out."}}}
	for _, kind := range s.stageKinds() {
		by := map[ident.Digest][]string{}
		for a, r := range eachRun(s.arms) {
			for _, st := range r.stages {
				if st.Kind == kind && !slices.Contains(by[st.Code], a.Name) {
					by[st.Code] = append(by[st.Code], a.Name)
				}
			}
		}
		for _, d := range slices.SortedFunc(maps.Keys(by),
			func(a, b ident.Digest) int { return cmp.Compare(a.String(), b.String()) }) {
			who := "all"
			if len(by[d]) < len(s.arms) {
				who = listed(by[d])
			}
			g.add(text("%s", kind), digest(d), text("%s", who))
		}
	}
	return g
}

// stageKinds lists the kinds in execution order.
func (s *source) stageKinds() []string {
	var kinds []string
	for _, r := range eachRun(s.arms) {
		for _, st := range r.stages {
			if !slices.Contains(kinds, st.Kind) {
				kinds = append(kinds, st.Kind)
			}
		}
	}
	return kinds
}

func digest(d ident.Digest) line {
	if d.IsZero() {
		return line{styled(muted, absent)}
	}
	return line{styled(mono, d.Short())}
}

// environment is a combination of machine and build that executed attempts.
type environment struct {
	Build   string `json:"build"`
	Go      string `json:"go"`
	System  string `json:"system"`
	CPU     string `json:"cpu"`
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memory_bytes"`
	Backend string `json:"backend"`
	Runs    int    `json:"runs"`
}

// environments lists the distinct environments with their numbers of runs.
func (s *source) environments() []environment {
	count := map[environment]int{}
	for _, r := range eachRun(s.arms) {
		seen := map[environment]bool{}
		for _, at := range r.attempts {
			var env struct {
				Go, OS, Arch, CPU, Backend string
				CPUs                       int
				Memory                     int64 `json:"memory_bytes"`
			}
			if json.Unmarshal(at.Env, &env) != nil {
				continue // recorded by a program with other fields
			}
			e := environment{Build: at.Build, Go: env.Go, System: strings.Trim(env.OS+"/"+env.Arch, "/"),
				CPU: env.CPU, CPUs: env.CPUs,
				Memory: env.Memory, Backend: cmp.Or(env.Backend, at.Device)}
			if !seen[e] {
				seen[e] = true
				count[e]++
			}
		}
	}
	out := []environment{}
	for e, n := range count {
		e.Runs = n
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b environment) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return out
}

func (s *source) environmentSection() section {
	g := &grid{Columns: []column{right("runs"), left("build"), left("system"), left("processor"), right("CPUs"),
		right("memory"), left("backend")}}
	for _, e := range s.environments() {
		g.add(text("%d", e.Runs), text("%s", e.Build), text("%s", e.System), text("%s", e.CPU), text("%d", e.CPUs),
			text("%s", quantity.Bytes(e.Memory)), text("%s", e.Backend))
	}
	blocks := []block{g}
	if first, last := s.period(); first != "" {
		blocks = append(blocks, paragraph{text("Executed between %s and %s (UTC).", first, last)})
	}
	return section{ID: "environment", Title: "Environment", Blocks: blocks}
}

// period returns when the runs were executed, as recorded in the store.
func (s *source) period() (first, last string) {
	for _, r := range eachRun(s.arms) {
		if r.Started.IsZero() || r.Ended.IsZero() {
			continue
		}
		const layout = "2006-01-02 15:04"
		from, to := r.Started.UTC().Format(layout), r.Ended.UTC().Format(layout)
		if first == "" || from < first {
			first = from
		}
		last = max(last, to)
	}
	return first, last
}
