package config

import "net/url"

// Traces is the section traces.
type Traces struct {
	Endpoint string  `mapstructure:"endpoint"`
	Sample   float64 `mapstructure:"sample"`
}

// defaultSample is the share of traces that are recorded of those that begin here.
const defaultSample = 0.01

func (c Traces) validate(f *faults, key string) {
	if c.Sample < 0 || c.Sample > 1 {
		f.add(key+".sample", "%v is out of range: use 0 to 1", c.Sample)
	}
	if c.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.add(key+".endpoint", "%q is no URL of a receiver: write one such as http://127.0.0.1:4318", shownURL(c.Endpoint))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.add(key+".endpoint", "must not hold credentials or a query: put them into OTEL_EXPORTER_OTLP_HEADERS")
	}
}
