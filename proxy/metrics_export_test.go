package proxy

// ReasonOf returns the value that a label takes for a reason.
func ReasonOf(m *Metrics, text string) string { return m.reason(text) }
