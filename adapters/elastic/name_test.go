package elastic

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestRuleName(t *testing.T) {
	for _, c := range []struct{ index, elasticsearch, opensearch string }{
		{"news-1", "news-1", "news-1"},
		{".ds-logs-x-2026.11.21-000001", "logs-x", "logs-x-2026.11.21"},
		{".ds-logs-x-000001", "logs-x", "logs-x"},
		{".ds-logs-x-1234567", "logs-x", "logs-x"},
		{".ds-logs-x-12345", ".ds-logs-x-12345", ".ds-logs-x-12345"},
		{".ds-000001", ".ds-000001", ".ds-000001"},
		{".ds-2026.11.21-000001", "2026.11.21", "2026.11.21"}, // without a stream in front it is the stream
		{".ds-.hidden-000001", ".hidden", ".hidden"},
		{"restored-.ds-logs-x-2026.11.21-000001", "logs-x", "logs-x-2026.11.21"},
		{"partial-restored-.ds-logs-x-000007", "logs-x", "logs-x"},
	} {
		expect.Same(t, c.elasticsearch, (Dialect{}).ruleName(c.index), "%q: on Elasticsearch", c.index)
		expect.Same(t, c.opensearch, (Dialect{OpenSearch: true}).ruleName(c.index), "%q: on OpenSearch", c.index)
	}
}

func TestDaily(t *testing.T) {
	for name, want := range map[string]bool{
		"<logs-{now/d}>": true, "<logs-{now/M{yyyy.MM}}>": true, "<hours-{now-1d/d{yyyy.MM.dd}}-ms>": true, "<logs>": true,
		"<logs-{now/h}>": false, "<logs-{now/d{yyyy.MM.dd|+01:00}}>": false, "<logs-{now-3h{yyyy.MM.dd}}>": false,
		"<logs-{now{yyyy.MM.dd.HH}}>": false, "<logs-{now/d}-{now/m{mm}}>": false, "<a\\{h-{now/d}>": true, "<logs-{now/s}>": false,
	} {
		expect.Same(t, want, daily(name), "%s", name)
	}
}
