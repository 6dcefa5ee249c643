package checkpoint

// For tests that import package published, which imports this one.
var ConfigJSON = configJSON

const (
	Qwen25Published = qwen25Published
	Qwen3Published  = qwen3Published
)
