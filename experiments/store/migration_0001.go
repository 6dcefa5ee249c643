package store

import (
	"context"
	"crypto/rand"
	"database/sql"
)

// migration0001 makes the tables that DESIGN.md describes. Digests are 32-byte
// blobs, times milliseconds since 1970 UTC, text that holds JSON is checked.
func migration0001(ctx context.Context, tx *sql.Tx) error {
	for _, text := range []string{schema0001Record, schema0001Runs, schema0001Steps, schema0001Samples,
		schema0001Views} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO meta (key, value) VALUES
		('store', ?), ('created', strftime('%Y-%m-%dT%H:%M:%SZ'))`, rand.Text())
	return err
}

// What digests stand for.
const schema0001Record = `
CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
	digest  BLOB PRIMARY KEY CHECK (length(digest) = 32),
	size    INTEGER NOT NULL,
	kind    TEXT NOT NULL,
	created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE configs (
	digest  BLOB PRIMARY KEY CHECK (length(digest) = 32),
	json    TEXT NOT NULL CHECK (json_valid(json)),
	source  TEXT NOT NULL,
	origins TEXT NOT NULL CHECK (json_valid(origins))
) STRICT;

CREATE TABLE sources (
	code    BLOB PRIMARY KEY CHECK (length(code) = 32),
	go      TEXT NOT NULL,
	files   TEXT NOT NULL CHECK (json_valid(files)),
	archive BLOB NOT NULL REFERENCES blobs
) STRICT;
`

const schema0001Runs = `
CREATE TABLE runs (
	id          INTEGER PRIMARY KEY,
	rid         BLOB NOT NULL UNIQUE CHECK (length(rid) = 32),
	xid         BLOB NOT NULL CHECK (length(xid) = 32),
	name        TEXT NOT NULL,
	task        TEXT NOT NULL,
	algo        TEXT NOT NULL,
	model       TEXT NOT NULL,
	seed        INTEGER NOT NULL,
	numerics    TEXT NOT NULL,
	device      TEXT NOT NULL DEFAULT '',
	status      TEXT NOT NULL DEFAULT 'pending'
		CHECK (status IN ('pending', 'running', 'done', 'failed', 'interrupted')),
	created     INTEGER NOT NULL,
	started     INTEGER,
	ended       INTEGER,
	steps       INTEGER NOT NULL DEFAULT 0,
	steps_total INTEGER NOT NULL DEFAULT 0,
	tokens      INTEGER NOT NULL DEFAULT 0,
	wall_s      REAL NOT NULL DEFAULT 0,
	config      BLOB NOT NULL REFERENCES configs,
	code        BLOB,
	chain       BLOB,
	headline    TEXT NOT NULL DEFAULT '',
	h1          REAL,
	h2          REAL,
	h3          REAL,
	parent      INTEGER REFERENCES runs,
	deleted     INTEGER
) STRICT;
CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_xid ON runs (xid);
CREATE INDEX runs_status ON runs (status);
CREATE INDEX runs_name ON runs (name);

CREATE TABLE run_tags (
	run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	tag TEXT NOT NULL,
	PRIMARY KEY (run, tag)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_tags_tag ON run_tags (tag);

CREATE TABLE run_notes (
	id   INTEGER PRIMARY KEY,
	run  INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	t    INTEGER NOT NULL,
	text TEXT NOT NULL
) STRICT;
CREATE INDEX run_notes_run ON run_notes (run);

CREATE TABLE attempts (
	id        INTEGER PRIMARY KEY,
	run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	n         INTEGER NOT NULL,
	kind      TEXT NOT NULL CHECK (kind IN ('run', 'resume', 'verify', 'forced')),
	host      TEXT NOT NULL,
	pid       INTEGER NOT NULL,
	device    TEXT NOT NULL,
	build     TEXT NOT NULL,
	started   INTEGER NOT NULL,
	ended     INTEGER,
	status    TEXT NOT NULL DEFAULT 'running'
		CHECK (status IN ('running', 'done', 'failed', 'interrupted')),
	exit_code INTEGER,
	env       TEXT NOT NULL CHECK (json_valid(env)),
	UNIQUE (run, n)
) STRICT;

CREATE TABLE stages (
	id          INTEGER PRIMARY KEY,
	sid         BLOB NOT NULL CHECK (length(sid) = 32),
	run         INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	attempt     INTEGER REFERENCES attempts,
	kind        TEXT NOT NULL,
	label       TEXT NOT NULL,
	status      TEXT NOT NULL DEFAULT 'running'
		CHECK (status IN ('running', 'done', 'cached', 'repeated', 'diverged', 'failed', 'interrupted')),
	home        INTEGER REFERENCES stages,
	reused_from INTEGER REFERENCES stages,
	params      TEXT NOT NULL CHECK (json_valid(params)),
	code        BLOB,
	numerics    TEXT NOT NULL,
	seed        TEXT NOT NULL,
	started     INTEGER NOT NULL,
	ended       INTEGER,
	wall_s      REAL NOT NULL DEFAULT 0,
	cpu_s       REAL NOT NULL DEFAULT 0,
	peak_mem    INTEGER NOT NULL DEFAULT 0,
	result      TEXT NOT NULL DEFAULT 'null' CHECK (json_valid(result)),
	error       TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX stages_sid ON stages (sid, status);
CREATE UNIQUE INDEX stages_original ON stages (sid) WHERE status = 'done';
CREATE INDEX stages_run ON stages (run);
CREATE INDEX stages_attempt ON stages (attempt);
CREATE INDEX stages_home ON stages (home);
CREATE INDEX stages_reused_from ON stages (reused_from) WHERE reused_from IS NOT NULL;

CREATE TABLE stage_io (
	stage  INTEGER NOT NULL REFERENCES stages ON DELETE CASCADE,
	dir    TEXT NOT NULL CHECK (dir IN ('in', 'out')),
	role   TEXT NOT NULL,
	digest BLOB NOT NULL CHECK (length(digest) = 32),
	size   INTEGER,
	PRIMARY KEY (stage, dir, role)
) STRICT, WITHOUT ROWID;
CREATE INDEX stage_io_digest ON stage_io (digest);

CREATE TABLE artifacts (
	id     INTEGER PRIMARY KEY,
	run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	stage  INTEGER NOT NULL REFERENCES stages,
	name   TEXT NOT NULL,
	media  TEXT NOT NULL,
	digest BLOB NOT NULL REFERENCES blobs,
	UNIQUE (run, name)
) STRICT;
CREATE INDEX artifacts_stage ON artifacts (stage);

CREATE TABLE events (
	id      INTEGER PRIMARY KEY,
	run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	attempt INTEGER REFERENCES attempts,
	t       INTEGER NOT NULL,
	level   TEXT NOT NULL CHECK (level IN ('debug', 'info', 'warn', 'error')),
	kind    TEXT NOT NULL,
	data    TEXT NOT NULL CHECK (json_valid(data))
) STRICT;
CREATE INDEX events_run ON events (run, t);
CREATE INDEX events_attempt ON events (attempt);

CREATE TABLE divergences (
	id      INTEGER PRIMARY KEY,
	t       INTEGER NOT NULL,
	run     INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	attempt INTEGER REFERENCES attempts,
	sid     BLOB,
	kind    TEXT NOT NULL,
	step    INTEGER,
	field   TEXT NOT NULL,
	want    BLOB,
	got     BLOB,
	host    TEXT NOT NULL
) STRICT;
CREATE INDEX divergences_run ON divergences (run);
CREATE INDEX divergences_attempt ON divergences (attempt);
`

const schema0001Steps = `
CREATE TABLE steps (
	run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	step     INTEGER NOT NULL,
	t        INTEGER NOT NULL,
	tokens   INTEGER NOT NULL,
	items    BLOB,
	sampled  BLOB,
	logprobs BLOB,
	rewards  BLOB,
	params   BLOB,
	chain    BLOB NOT NULL CHECK (length(chain) = 32),
	PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE series (
	id        INTEGER PRIMARY KEY,
	run       INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	name      TEXT NOT NULL,
	unit      TEXT NOT NULL,
	det       INTEGER NOT NULL CHECK (det IN (0, 1)),
	n         INTEGER NOT NULL DEFAULT 0,
	last      REAL,
	last_step INTEGER,
	min       REAL,
	max       REAL,
	argmin    INTEGER,
	argmax    INTEGER,
	UNIQUE (run, name)
) STRICT;

CREATE TABLE metrics (
	run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	step   INTEGER NOT NULL,
	series INTEGER NOT NULL,
	value  REAL,
	PRIMARY KEY (run, step, series)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
	id     INTEGER PRIMARY KEY,
	run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	step   INTEGER NOT NULL,
	t      INTEGER NOT NULL,
	digest BLOB NOT NULL CHECK (length(digest) = 32),
	chain  BLOB NOT NULL CHECK (length(chain) = 32),
	bytes  INTEGER NOT NULL,
	UNIQUE (run, step)
) STRICT;
`

const schema0001Samples = `
CREATE TABLE suites (
	id      INTEGER PRIMARY KEY,
	digest  BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
	name    TEXT NOT NULL,
	version TEXT NOT NULL,
	scorer  TEXT NOT NULL,
	license TEXT NOT NULL,
	n_items INTEGER NOT NULL
) STRICT;

CREATE TABLE items (
	suite      INTEGER NOT NULL REFERENCES suites ON DELETE CASCADE,
	item       TEXT NOT NULL,
	cluster    TEXT NOT NULL,
	difficulty REAL,
	PRIMARY KEY (suite, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE evals (
	id           INTEGER PRIMARY KEY,
	run          INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
	stage_gen    INTEGER REFERENCES stages,
	stage_score  INTEGER NOT NULL REFERENCES stages,
	suite        INTEGER NOT NULL REFERENCES suites,
	protocol     BLOB NOT NULL CHECK (length(protocol) = 32),
	n            INTEGER NOT NULL,
	metric       TEXT NOT NULL,
	value        REAL,
	se           REAL,
	lo           REAL,
	hi           REAL,
	n_items      INTEGER NOT NULL,
	n_clusters   INTEGER NOT NULL,
	infra_errors INTEGER NOT NULL,
	UNIQUE (stage_score, metric)
) STRICT;
CREATE INDEX evals_run ON evals (run);
CREATE INDEX evals_stage_gen ON evals (stage_gen);
CREATE INDEX evals_suite ON evals (suite);

CREATE TABLE samples (
	id            INTEGER PRIMARY KEY,
	stage         INTEGER NOT NULL REFERENCES stages ON DELETE CASCADE,
	scope         TEXT NOT NULL,
	step          INTEGER NOT NULL,
	item          TEXT NOT NULL,
	k             INTEGER NOT NULL,
	prompt_tokens INTEGER NOT NULL,
	out_tokens    INTEGER NOT NULL,
	finish        TEXT NOT NULL,
	reward        REAL,
	logprob_sum   REAL,
	pack          BLOB REFERENCES blobs,
	off           INTEGER,
	len           INTEGER,
	UNIQUE (stage, scope, step, item, k)
) STRICT;

CREATE TABLE scorers (
	id     INTEGER PRIMARY KEY,
	digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
	name   TEXT NOT NULL
) STRICT;

CREATE TABLE verdicts (
	sample  INTEGER NOT NULL REFERENCES samples ON DELETE CASCADE,
	scorer  INTEGER NOT NULL REFERENCES scorers,
	correct INTEGER CHECK (correct IN (0, 1)),
	reward  REAL,
	answer  TEXT NOT NULL,
	reason  TEXT NOT NULL,
	cpu_ms  REAL,
	wall_ms REAL,
	mem_kb  INTEGER,
	PRIMARY KEY (sample, scorer)
) STRICT, WITHOUT ROWID;
`

// Views are for people with a sqlite3 shell; no code reads them.
const schema0001Views = `
CREATE VIEW run_list AS
SELECT lower(hex(substr(rid, 1, 4))) AS run, name, seed, algo, model, status, steps, steps_total,
	h1, h2, h3, round(wall_s, 1) AS wall_s, datetime(created / 1000, 'unixepoch') AS created,
	lower(hex(rid)) AS rid, lower(hex(xid)) AS xid, id
FROM runs WHERE deleted IS NULL;

CREATE VIEW metric_points AS
SELECT lower(hex(substr(r.rid, 1, 4))) AS run, r.name AS run_name, r.seed, s.name AS metric, m.step, m.value, r.id AS run_id
FROM metrics m JOIN series s ON s.id = m.series JOIN runs r ON r.id = m.run;

CREATE VIEW eval_results AS
SELECT lower(hex(substr(r.rid, 1, 4))) AS run, r.name AS run_name, r.seed, u.name AS suite, e.metric, e.value, e.lo, e.hi,
	e.n, e.n_items, e.n_clusters, e.infra_errors, r.id AS run_id
FROM evals e JOIN runs r ON r.id = e.run JOIN suites u ON u.id = e.suite;
`
