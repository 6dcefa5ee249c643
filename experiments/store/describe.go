package store

// Description says in words what a table or view holds, and what its columns mean
// where their names do not say it.
type Description struct {
	Table   string
	Text    string
	Columns map[string]string
}

// Descriptions returns the words for all tables and views, in the order in which a
// reader meets them. A test sees to it that none is missing.
func Descriptions() []Description {
	return []Description{
		{"run_list", "view: the runs that are not deleted, for people", map[string]string{
			"run": "the first 8 digits of rid", "rid": "hexadecimal", "xid": "hexadecimal", "created": "UTC, as text",
			"id": "runs.id"}},
		{"metric_points", "view: every metric of every step, with names",
			map[string]string{"run": "the first 8 digits of rid", "run_id": "runs.id"}},
		{"eval_results", "view: every score of every run on every suite",
			map[string]string{"run": "the first 8 digits of rid", "run_id": "runs.id"}},
		{"runs", "one experiment with one seed", map[string]string{
			"rid": "identity: equal rid, equal bits", "xid": "identity without the seed",
			"model":    "layers x width, or the base model",
			"numerics": "class inside which bits are equal", "device": "of the newest attempt",
			"status": "running may also mean killed: the lock tells",
			"steps":  "recorded", "steps_total": "that it will have", "tokens": "sampled in training",
			"wall_s": "seconds, of all attempts",
			"code":   "digest of training's sources", "chain": "after the last recorded step",
			"headline": "names of h1, h2, h3, with commas between",
			"parent":   "the run that it continues", "deleted": "when; NULL: not deleted"}},
		{"run_tags", "tags; pinned and pinned@STEP are pins", nil},
		{"run_notes", "remarks", nil},
		{"configs", "resolved configurations; json -> '$.train.steps' looks into one", map[string]string{
			"json": "nested, every key", "source": "the same as YAML", "origins": "where each key's value came from"}},
		{"sources", "what a code digest stands for", map[string]string{"go": "Go version",
			"files": "JSON: path and sha256", "archive": "blob: all sources of the module"}},
		{"attempts", "one execution of a run", map[string]string{"n": "counts within the run",
			"env": "JSON: machine and libraries"}},
		{"stages", "one execution, or reuse, of a unit of work", map[string]string{
			"sid": "identity: equal sid, equal outputs", "label": "the suite of an evaluation",
			"home":        "first row of the sid; samples hang on it",
			"reused_from": "of a cached stage, where its outputs are", "params": "JSON: the keys that it reads",
			"seed":     "label of its random streams",
			"peak_mem": "bytes", "result": "JSON", "status": "done: the original of its sid"}},
		{"stage_io", "lineage: a stage read (in) or wrote (out) a digest",
			map[string]string{"size": "bytes; NULL for what is no blob"}},
		{"artifacts", "files for people", map[string]string{"media": "MIME type"}},
		{"steps", "one finished step of training", map[string]string{
			"items": "digest of the problems' ids", "sampled": "digest of the tokens", "logprobs": "digest",
			"rewards": "digest",
			"params":  "digest of the parameters, where taken",
			"chain":   "SHA-256 of the chain before and all of this"}},
		{"series", "a metric of a run, with its summary", map[string]string{"det": "1: part of the chain",
			"argmin": "step", "argmax": "step", "last_step": "step"}},
		{"metrics", "a point; NULL is NaN", map[string]string{"series": "series.id"}},
		{"events", "what happened and is no number", map[string]string{"data": "JSON"}},
		{"checkpoints", "saved states", map[string]string{"digest": "of the manifest"}},
		{"suites", "sets of problems", nil},
		{"items", "their problems", map[string]string{"cluster": "problems that are not independent"}},
		{"evals", "a score of a run on a suite", map[string]string{
			"protocol": "equal: comparable", "n": "samples a problem", "se": "standard error",
			"lo": "of the 95% interval", "hi": "of the 95% interval",
			"infra_errors": "completions that could not be graded"}},
		{"samples", "a completion that was kept", map[string]string{
			"stage": "stages.home", "scope": "train, val or eval", "k": "which of the problem's samples",
			"logprob_sum": "under the policy",
			"pack":        "blob with text and tokens, at off, len bytes"}},
		{"scorers", "graders by their sources", nil},
		{"verdicts", "what a grader said of a sample", map[string]string{"correct": "NULL: not graded"}},
		{"divergences", "the same work gave other bits", map[string]string{"want": "recorded first",
			"got": "discarded"}},
		{"verifications", "one proof, or refutation, of what is recorded of a run", map[string]string{
			"level":     "blobs, score, prefix or full: each includes the one before",
			"from_step": "first that was executed again", "to_step": "last",
			"ok": "1: all as recorded", "detail": "JSON: what was checked and found"}},
		{"blobs", "files by content, in blobs/sha256", nil},
		{"meta", "facts about the store", nil},
	}
}
