package store

// Description explains a table or view, and the columns whose names are not enough.
type Description struct {
	Table   string
	Text    string
	Columns map[string]string
}

// Descriptions returns the descriptions of all tables and views, in reading order. A test
// ensures that none is missing.
func Descriptions() []Description {
	return append(views(), []Description{
		{"runs", "one experiment with one seed", map[string]string{
			"rid": "identity: equal rid, equal bits", "xid": "identity without the seed",
			"model":    "layers x width, or the base model",
			"numerics": "class of machines that compute equal bits", "device": "of the newest attempt",
			"status": "running may also mean killed: check the lock",
			"steps":  "recorded", "steps_total": "planned", "tokens": "sampled in training",
			"wall_s": "seconds, of all attempts",
			"code":   "digest of training's sources", "chain": "hash over all recorded steps",
			"headline": "names of h1, h2, h3, separated by commas",
			"parent":   "the run that it continues", "deleted": "when; NULL: not deleted"}},
		{"run_tags", "tags; pinned and pinned@STEP are pins", nil},
		{"run_notes", "remarks", nil},
		{"configs", "resolved configurations; json -> '$.train.steps' looks into one", map[string]string{
			"json": "nested, every key", "source": "the same as YAML", "origins": "where each key's value came from"}},
		{"sources", "source files by code digest", map[string]string{"go": "Go version",
			"files": "JSON: path and sha256", "archive": "blob: all sources of the module"}},
		{"attempts", "one execution of a run", map[string]string{"n": "counts within the run",
			"env": "JSON: machine and libraries"}},
		{"stages", "one execution or reuse of a unit of work", map[string]string{
			"sid": "identity: equal sid, equal outputs", "label": "the suite of an evaluation",
			"home":        "first row of the sid; samples refer to it",
			"reused_from": "for a cached stage, the stage with its outputs", "params": "JSON: the keys that it reads",
			"seed":     "label of its random streams",
			"peak_mem": "bytes", "result": "JSON", "status": "done: the original of its sid"}},
		{"stage_io", "lineage: a stage read (in) or wrote (out) a digest",
			map[string]string{"size": "bytes; NULL if not a blob"}},
		{"artifacts", "files for users, and images that agents brought", map[string]string{"media": "MIME type"}},
		{"steps", "one finished step of training", map[string]string{
			"items": "digest of the problems' ids", "sampled": "digest of the tokens", "logprobs": "digest",
			"rewards": "digest",
			"params":  "digest of the parameters, if taken",
			"chain":   "SHA-256 of the previous chain and this step"}},
		{"series", "a metric of a run, with its summary", map[string]string{"det": "1: part of the chain",
			"argmin": "step", "argmax": "step", "last_step": "step"}},
		{"metrics", "a point; NULL is NaN", map[string]string{"series": "series.id"}},
		{"events", "what happened, other than metrics", map[string]string{"data": "JSON"}},
		{"checkpoints", "saved states", map[string]string{"digest": "of the manifest"}},
		{"suites", "sets of problems", nil},
		{"items", "their problems", map[string]string{"cluster": "groups problems that are not independent"}},
		{"evals", "a score of a run on a suite", map[string]string{
			"protocol": "equal: comparable", "n": "samples per problem", "se": "standard error",
			"lo": "of the 95% interval", "hi": "of the 95% interval",
			"infra_errors": "completions that could not be graded"}},
		{"samples", "one stored completion", map[string]string{
			"stage": "stages.home", "scope": "train, val or eval", "k": "index among the problem's samples",
			"logprob_sum": "under the policy",
			"pack":        "blob with text and tokens, at off, len bytes"}},
		{"scorers", "graders by their sources", nil},
		{"verdicts", "a grader's verdict on a sample", map[string]string{"correct": "NULL: not graded"}},
		{"divergences", "the same work gave different bits", map[string]string{"want": "recorded first",
			"got": "discarded"}},
		{"verifications", "one check of a run's record against a new execution", map[string]string{
			"level":     "blobs, score, sample, prefix or full: each includes the one before",
			"from_step": "first step executed again", "to_step": "last",
			"ok": "1: all matches the record", "detail": "JSON: checks and results"}},
		{"blobs", "files by content, in blobs/sha256", nil},
		{"meta", "facts about the store", nil},
	}...)
}

func views() []Description {
	return []Description{
		{"v_runs", "view for other programs, stable over versions: the runs that are not deleted (docs/python.md)",
			map[string]string{"created": "UTC, as text", "config": "JSON: every key, nested"}},
		{"v_metrics", "view for other programs: every metric of every step", nil},
		{"v_results", "view for other programs: the newest scores of every evaluation", map[string]string{
			"samples": "per problem", "problems": "number of problems", "protocol": "equal ones may be compared"}},
		{"v_samples", "view for other programs: every completion with its verdict", map[string]string{
			"k": "counts among the problem's samples", "tokens": "of the completion",
			"protocol": "as in v_results, of the newest score; NULL in training"}},
		{"run_list", "view: the runs that are not deleted, for reading", map[string]string{
			"run": "the first 8 digits of rid", "rid": "hexadecimal", "xid": "experiment id",
			"created": "UTC, as text", "id": "runs.id",
		}},
		{"metric_points", "view: every metric of every step, with names",
			map[string]string{"run": "the first 8 digits of rid", "run_id": "runs.id"}},
		{"eval_results", "view: every score of every run on every suite",
			map[string]string{"run": "the first 8 digits of rid", "run_id": "runs.id"}},
	}
}
