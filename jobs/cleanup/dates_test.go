package cleanup

import "testing"

// TestDates reads years, and takes small numbers for no dates.
func TestDates(t *testing.T) {
	for text, want := range map[string]string{
		"2024": "1704067200000", "1704067200": "1704067200000", "1704067200000": "1704067200000", "20240101": "1704067200000", "2024-01-01": "1704067200000",
		"0": "", "12": "", "202401": "", "2024.5": "", "NaN": "",
	} {
		if digits, ok := Milliseconds(text); ok != (want != "") || ok && digits != want {
			t.Errorf("%s: %s, %t", text, digits, ok)
		}
	}
}
