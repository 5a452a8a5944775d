package adapters

// Reason says in one word why a search is left alone, or why it was collapsed in another way than configured. The header of the answer
// and the metrics show it, and docs/controls.md lists all of them. A dialect has further reasons, for what only its engine has.
type Reason string

// Reasons that dialects and the proxy share.
const (
	// ReasonOff: the request said so.
	ReasonOff Reason = "off"
	// ReasonUnconfigured: no rule matches its index.
	ReasonUnconfigured Reason = "unconfigured"
	// ReasonNotUnderstood: it holds something that the dialect does not know, or the reply was of no known form, or the list kept moving.
	ReasonNotUnderstood Reason = "not_understood"
	// ReasonSizeZero: it asks for no hits.
	ReasonSizeZero Reason = "size_zero"
	// ReasonUncountable: its facets were to count groups, and can't.
	ReasonUncountable Reason = "uncountable"
	// ReasonCursor: it goes on from a cursor in a way in which what was shown before can't be known.
	ReasonCursor Reason = "cursor"
	// ReasonExport: it reads the whole index, a piece at a time.
	ReasonExport Reason = "export"
	// ReasonVector: it is a search of nearest neighbours whose list differs with its page.
	ReasonVector Reason = "vector"
	// ReasonRankWindow: it reaches beyond the ranks of a fused list that are the same on every page; beside a collapsed page, these made it shorter.
	ReasonRankWindow Reason = "rank_window"
	// ReasonEngineLimit: it reaches beyond what the engine lets one read; beside a collapsed page, that limit cut it short.
	ReasonEngineLimit Reason = "engine_limit"
	// ReasonFormat: request or reply is not JSON.
	ReasonFormat Reason = "format"
	// ReasonSigned: it is signed over its body.
	ReasonSigned Reason = "signed"
	// ReasonEncoding: its body is compressed in a way that is not read here, or is not what it says.
	ReasonEncoding Reason = "encoding"
	// ReasonTooLarge: its body or the engine's reply is beyond our limits.
	ReasonTooLarge Reason = "too_large"
	// ReasonEngineStatus: the engine refused what we asked, and might grant what the client asked.
	ReasonEngineStatus Reason = "engine_status"
	// ReasonRefused: the engine refused that search of several. Its error is the answer.
	ReasonRefused Reason = "refused"
	// ReasonBudget: too many searches could not be collapsed recently.
	ReasonBudget Reason = "budget"
	// ReasonDeadline: the time for collapsing it was over.
	ReasonDeadline Reason = "deadline"
	// ReasonBusy: too many searches, or bytes of them, are in memory just now.
	ReasonBusy Reason = "busy"
	// ReasonShare: too many bytes of this client are in memory just now.
	ReasonShare Reason = "share"
	// ReasonSlow: its body came too slowly to be kept in memory.
	ReasonSlow Reason = "slow"
)

// Reasons why a search that the engine was to collapse was collapsed at query time.
const (
	// ReasonUnclustered: a document of its list has no id of a cluster, or one that was made under another rule.
	ReasonUnclustered Reason = "unclustered"
	// ReasonNativeRefused: the engine does not collapse by our field.
	ReasonNativeRefused Reason = "native_refused"
	// ReasonMoved: what is stored changed while it was counted.
	ReasonMoved Reason = "moved"
)
