package config

// Keys of the run as a whole: how it is stored and executed.

func rootKeys() []Key {
	return []Key{
		{Path: "version", Kind: Int, Range: between(1, 1), Role: Nonsemantic,
			Help: "version of this configuration format"},
		{Path: "name", Kind: String, Role: Nonsemantic,
			Pattern: pattern("a name (letters of ASCII, digits, '.', '_', '-')", `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`),
			Help:    "name of the runs in listings and reports"},
		{Path: "seed", Kind: Int, Default: is(0), Range: atLeast(0), Role: Replicate, Stages: at(Train, EvalGen),
			Help: "root of all random streams of a run; runs that differ only in it are replicates"},
	}
}

// controlKeys end a run early. A condition does not enter a run's id: the steps before the end
// are the same bits with and without it. A run that it ended is recorded as stopped, its training
// stage is not done, and nothing reuses it; without the condition it continues where it stopped and
// becomes the run with that id.
func controlKeys() []Key {
	return block(nil, at(Train), []Key{
		{Path: "run.stop_if", Kind: String, List: true, Default: is([]string{}), Role: Nonsemantic,
			Help: "conditions on a step's metrics, such as kl/ref_k3 > 1, actor/entropy < 0.1 or nonfinite > 0 (the " +
				"number of metrics that are NaN or infinite), with = != < <= > >= and or not ( ); after a step " +
				"where one holds, the run saves a checkpoint and stops"},
	})
}

// noticeKeys say whom to tell that a run ended.
func noticeKeys() []Key {
	return block(nil, at(Train), []Key{
		{Path: "notify.command", Kind: String, List: true, Default: is([]string{}), Role: Nonsemantic,
			Help: "program and arguments to start when a run is done, failed, stopped or diverged; it reads a JSON " +
				"object on stdin, has 10 s, and cannot fail the run"},
		{Path: "notify.webhook", Kind: String, Default: is(None), Role: Nonsemantic,
			Pattern: pattern("a URL, env:NAME or none", `https?://[^\s]+|env:[A-Za-z_][A-Za-z0-9_]*|none`),
			Help: "URL that gets the same JSON by POST; env:NAME takes it from the environment, so that a secret " +
				"in it is not recorded"},
	})
}

func checkpointKeys() []Key {
	return block(nil, at(SFT, RewardModel, Prefer, Train), []Key{
		{Path: "checkpoint.every_steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "steps",
			Role: Nonsemantic,
			Help: "steps between checkpoints to resume from; 0 leaves them to checkpoint.every_minutes; a run that " +
				"stops is always saved"},
		{Path: "checkpoint.every_minutes", Kind: Float, Default: is(15.0), Range: atLeast(0), Unit: "minutes",
			Role: Nonsemantic,
			Help: "training, and stages before it that learn, save a checkpoint after a step if the last one is at " +
				"least this old; 0: only checkpoint.every_steps decides. A killed run loses at most this and a step"},
		{Path: "checkpoint.keep", Kind: Int, Default: is(2), Range: atLeast(1), Unit: "checkpoints",
			Role: Nonsemantic,
			Help: "number of latest checkpoints to keep"},
	})
}

func compareKeys() []Key {
	return []Key{
		{Path: "compare.vary", Kind: String, List: true, Default: is([]string{"algo"}), Role: Nonsemantic,
			Help: "keys or blocks (globs allowed) that are the treatment when this run is compared; all others must " +
				"match"},
		{Path: "compare.min_seeds", Kind: Int, Default: is(3), Range: atLeast(1), Unit: "seeds", Role: Nonsemantic,
			Help: "fewest seeds per arm for which a comparison reports training-seed variance"},
	}
}

func storeKeys() []Key {
	return []Key{
		{Path: "store.samples.train", Kind: Share, Default: is(1.0), Role: Nonsemantic, Stages: at(Train),
			Help: "which training rollouts are stored with text, tokens and log-probs"},
		{Path: "store.samples.eval", Kind: Share, Default: is(1.0), Role: Nonsemantic, Stages: at(EvalGen),
			Help: "which final-evaluation completions keep their text after scoring"},
		{Path: "store.tensorboard", Kind: String, Default: is(None), Pattern: pattern("a folder, or none", `.+`),
			Role: Nonsemantic, Stages: at(Train),
			Help: "folder for TensorBoard events, or none; the run writes them while it runs: metrics, " +
				"hyperparameters and some completions (tensorboard --logdir DIR). A failing write never fails the " +
				"run"},
	}
}

func sandboxKeys() []Key {
	return []Key{
		{Path: "sandbox.require", Kind: Enum, Words: []string{"full", "namespaces", "landlock"},
			Default: is("namespaces"), Role: Nonsemantic,
			Stages: at(Train, EvalGen, EvalScore),
			Help: "least isolation for running programs that the model wrote; exp doctor shows what this machine " +
				"offers"},
		{Path: "sandbox.compile", Kind: Int, Default: is(10), Range: between(1, 600), Unit: "seconds",
			Stages: at(Train, EvalScore),
			Help:   "processor time that a compiler may take; a program that needs more does not compile"},
	}
}

func verifyKeys() []Key {
	return block(nil, at(Train), []Key{
		{Path: "verify.logprob_rate", Kind: Float, Default: is(0.015625), Range: between(0, 1), Unit: "fraction",
			Role: Nonsemantic,
			Help: "share of rollouts whose sampled log-probs are checked to equal the trainer's, bit for bit"},
		{Path: "verify.param_every", Kind: Int, Default: is(50), Range: atLeast(1), Unit: "steps",
			Help: "steps between digests of the parameters in the chain (a hash over all steps so far)"},
	})
}

// Values of compute.numerics.
const (
	OwnNumerics    = "device"       // the device's own class for model.dtype
	MatrixNumerics = "matrix/16x25" // the sums of tensor cores
)

// Values of compute.offload.
const (
	OffloadAuto    = "auto"
	OffloadNone    = "none"
	OffloadMoments = "moments"
	OffloadAll     = "all"
)

func computeKeys() []Key {
	return block(nil, at(Init, SFT, RewardModel, Prefer, Train, Merge, EvalGen), []Key{
		{Path: "compute.device", Kind: String, Default: is("cpu"), Role: Nonsemantic,
			Pattern: pattern("cpu, cuda, cuda:N or auto", `cpu|cuda(:[0-9]{1,3})?|auto`),
			Help: "device that the engine runs on: the CPU, the first GPU, GPU number N, or the first GPU that can " +
				"compute the run if there is one; changes no result"},
		{Path: "compute.numerics", Kind: Enum, Words: []string{OwnNumerics, "cpu/fma", "cpu/bf16", MatrixNumerics},
			Default: is(OwnNumerics), Role: Nonsemantic,
			Help: "numerics class, which is part of a run's id: the device's own for model.dtype, or this one; " +
				"matrix/16x25 is the arithmetic of tensor cores: of GPUs of compute capability 9.0 or newer, " +
				"which a CPU emulates at a sixth of its speed in f32"},
		{Path: "compute.threads", Kind: Int, Default: is(0), Range: between(0, 4096), Unit: "threads",
			Role: Nonsemantic,
			Help: "CPU threads; 0 uses every core that the process may use"},
		{Path: "compute.micro_batch_tokens", Kind: Int, Default: is(4096), Range: atLeast(1), Unit: "tokens",
			Role:   Nonsemantic,
			Stages: at(SFT, RewardModel, Prefer, Train),
			Help:   "tokens in one forward and backward pass, prompts included; bounds memory, changes no result"},
		{Path: "compute.recompute", Kind: Bool, Default: is(false), Role: Nonsemantic,
			Stages: at(SFT, RewardModel, Prefer, Train),
			Help:   "recompute activations in the backward pass instead of storing them: less memory, more time"},
		{Path: "compute.offload", Kind: Enum, Words: []string{OffloadAuto, OffloadNone, OffloadMoments, OffloadAll},
			Default: is(OffloadAuto), Role: Nonsemantic, Stages: at(SFT, RewardModel, Prefer, Train),
			Help: "what a GPU keeps in pinned memory of the host: nothing, the optimizer's moments, or also the " +
				"gradients of slices that wait for others; auto: the least with which the run fits; changes no " +
				"result"},
		{Path: "compute.tensor_parallel", Kind: Int, Default: is(1), Range: between(1, 64), Unit: "ranks",
			Role: Nonsemantic, Stages: at(SFT, RewardModel, Prefer, Train),
			Help: "neighbouring ranks that share the products and weights of the layers; --ranks must " +
				"be a multiple of it, and the layers' widths multiples of 32 times it; without --ranks it has " +
				"no effect; changes no result"},
		{Path: "compute.rollout_tensor_parallel", Kind: Int, Default: is(0), Range: between(0, 64), Unit: "ranks",
			Role: Nonsemantic, Stages: at(Train),
			Help: "neighbouring ranks that share the products, weights and cache of sampling; 0: as many as " +
				"compute.tensor_parallel. Another number takes memory for a second copy of the weights, which ranks " +
				"gather before they sample, unless compute.rollout_ranks sets ranks apart for sampling; " +
				"without --ranks it has no effect; changes no result"},
		{Path: "compute.rollout_ranks", Kind: Int, Default: is(0), Range: between(0, 4095), Unit: "ranks",
			Role: Nonsemantic, Stages: at(Train),
			Help: "ranks that only sample and grade, ahead of the others, which only learn; needs " +
				"rollout.staleness of 1 or more, and more --ranks; without --ranks it has no effect; changes no " +
				"result"},
	})
}

func clusterKeys() []Key {
	text := func(path, help string) Key {
		return Key{Path: "cluster." + path, Kind: String, Default: is(""), Role: Nonsemantic, Help: help,
			Pattern: pattern("a line of text, or empty", `.*`)}
	}
	lines := func(path, help string) Key {
		return Key{Path: "cluster." + path, Kind: String, List: true, Default: is([]string{}), Role: Nonsemantic,
			Help: help, Pattern: pattern("a line of text", `.+`)}
	}
	return []Key{
		text("spool", "directory that all nodes see, for --on slurm: programs, job lists, bundles, logs"),
		text("store", "directory on a node's own disk for the store of a job; empty: SLURM_TMPDIR, TMPDIR or /tmp"),
		text("slurm.partition", "partition of the jobs; empty: Slurm's default"),
		text("slurm.account", "account of the jobs; empty: Slurm's default"),
		text("slurm.qos", "quality of service of the jobs; empty: Slurm's default"),
		text("slurm.time", "time limit of an attempt, as sbatch takes it; a longer run continues in the next"),
		text("slurm.gres", "generic resources of a job, such as gpu:1; with --ranks, each rank on a GPU gets one"),
		{Path: "cluster.slurm.ranks_per_node", Kind: Int, Default: is(0), Range: between(0, 4096), Unit: "ranks",
			Role: Nonsemantic, Help: "ranks on each node, with --ranks; 0: where Slurm finds room"},
		text("slurm.mpi", "what starts ranks: srun with a type of srun --mpi=list, such as pmix for Open MPI, or "+
			"mpirun; empty: srun with Slurm's default"),
		text("slurm.mem", "memory of a job, as sbatch takes it"),
		text("slurm.exclude", "nodes to avoid"),
		{Path: "cluster.slurm.cpus", Kind: Int, Default: is(1), Range: between(1, 4096), Unit: "processors",
			Role: Nonsemantic, Help: "processors of a job, or of each of its ranks, and threads of its run"},
		{Path: "cluster.slurm.signal_before", Kind: Int, Default: is(120), Range: between(0, 65535), Unit: "seconds",
			Role: Nonsemantic, Help: "time before the limit at which a run is asked to save and to queue again"},
		{Path: "cluster.slurm.max_restarts", Kind: Int, Default: is(20), Range: atLeast(0), Unit: "restarts",
			Role: Nonsemantic, Help: "restarts of a job after which a crash of its program ends it"},
		{Path: "cluster.slurm.max_parallel", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "jobs",
			Role: Nonsemantic, Help: "runs that an array executes at once; 0: as many as the cluster has room for"},
		lines("slurm.extra", "further lines of options for sbatch, without #SBATCH"),
		lines("slurm.prolog", "lines of shell before the program starts, such as module load"),
		{Path: "cluster.ssh.dir", Kind: String, Default: is("exp-spool"), Role: Nonsemantic,
			Pattern: pattern("a directory", `.+`),
			Help:    "directory of --on ssh on each host, relative to the home directory: program, inputs, results"},
		text("kubernetes.image", "image of the pods, any with /bin/sh, grep and glibc, such as debian:12"),
		text("kubernetes.claim", "persistent volume claim, ReadWriteMany, that holds the spool"),
		text("kubernetes.mount", "where pods mount the claim, by the same path as here; empty: the spool"),
		text("kubernetes.namespace", "namespace of the Jobs; empty: kubectl's"),
		text("kubernetes.memory", "memory of a pod, such as 64Gi; empty: no limit"),
		{Path: "cluster.kubernetes.cpus", Kind: Int, Default: is(1), Range: between(1, 4096), Unit: "processors",
			Role: Nonsemantic, Help: "processors of a pod, and threads of its run"},
		{Path: "cluster.kubernetes.gpus", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "GPUs",
			Role: Nonsemantic, Help: "GPUs of a pod (nvidia.com/gpu)"},
		{Path: "cluster.kubernetes.max_restarts", Kind: Int, Default: is(20), Range: atLeast(0), Unit: "restarts",
			Role: Nonsemantic, Help: "crashes of a run after which it ends (backoffLimitPerIndex)"},
		{Path: "cluster.kubernetes.max_parallel", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "pods",
			Role: Nonsemantic, Help: "runs that a Job executes at once; 0: as many as the cluster has room for"},
	}
}
