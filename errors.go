package grove

import (
	"errors"

	"grove/constrain"
	"grove/internal/compute"
	"grove/internal/engine"
	"grove/internal/kv"
	"grove/internal/sample"
)

// The kinds of errors, for [errors.Is]. The messages of the errors that wrap them have the numbers. [OptionError] and
// [PromptError] are types, for [errors.As].
var (
	// ErrBusy reports that as many answers are computed and queued as [Options.Parallel] and [Options.Queue] allow, or that a fork finds no free slot.
	ErrBusy = engine.ErrBusy

	// ErrContext reports that a text does not fit the context; see [PromptError].
	ErrContext = engine.ErrContext

	// ErrClosed reports a model that was closed, see [Model.Close], or a sequence that was closed and is used again.
	ErrClosed = engine.ErrClosed

	// ErrCancelled reports a [Sequence] that one of its forks, or the one that it was forked from, has cancelled.
	ErrCancelled = engine.ErrCancelled

	// ErrPanic reports a stage, a method or a rule that panicked while it worked for a request: that request alone fails.
	ErrPanic = engine.ErrPanic

	// ErrEncoder reports that a text was asked of a model that gives embeddings alone.
	ErrEncoder = engine.ErrEncoder
	// ErrSource reports what an encoder-decoder does not do: conversations without a template, sessions, logits of a text alone, drafts for another model.
	ErrSource = engine.ErrSource

	// ErrPrefix reports a prompt of [Request.Prefix] whose tokens cannot see each other; it is inside an [*OptionError].
	ErrPrefix = engine.ErrPrefix

	// ErrSession reports that the file of [Request.Session] cannot be read or written.
	ErrSession = engine.ErrSession

	// ErrSessionFile reports that the file of [Request.Session] is damaged, or belongs to another model, cache type or salt.
	ErrSessionFile = kv.ErrFile

	// ErrCost reports that [Model.Tune] cannot save the cost of steps.
	ErrCost = errors.New("the cost of steps cannot be saved")

	// ErrCacheFull reports that the cache has no free page.
	ErrCacheFull = kv.ErrFull

	// ErrMemory reports that the weights or the cache do not fit the memory; see [Options.Memory].
	ErrMemory = kv.ErrMemory

	// ErrCacheRange reports a key or a value that is beyond the range of [Options.CacheType].
	ErrCacheRange = compute.ErrCacheRange

	// ErrNotFinite reports that the model gives NaN or infinity.
	ErrNotFinite = compute.ErrNotFinite

	// ErrConstraint reports a text that cannot go on under [Request.Constraint]: no token of the vocabulary is legal, or the grammar takes
	// more work than its limits allow.
	ErrConstraint = constrain.ErrConstraint

	// ErrAllMasked reports that biases and penalties forbid every token.
	ErrAllMasked = sample.ErrAllMasked
)
