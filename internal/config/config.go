// Package config reads, checks and prints config.yaml, and fills in presets and defaults. config.yaml at the root of the repository explains
// every key.
package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/sketch"
)

// Config is a configuration file.
type Config struct {
	Log   Log    `yaml:"log"`
	Admin string `yaml:"admin"`
	// Playground serves the playground page on the admin listener. By default it is on if Admin is a loopback address and no engine asks its
	// clients for a certificate: the page would search without one.
	Playground bool `yaml:"playground"`
	// ReloadFailing lets a configuration with a failing case replace the previous one.
	ReloadFailing bool     `yaml:"reload_with_failing_cases"`
	Traces        Traces   `yaml:"traces"`
	Sketch        Sketch   `yaml:"sketch"`
	Engines       []Engine `yaml:"engines"`

	// File is the file's name, for messages.
	File string `yaml:"-"`
}

// Log is the section log.
type Log struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format"`
}

// Traces is the section traces.
type Traces struct {
	Endpoint string  `yaml:"endpoint"`
	Sample   float64 `yaml:"sample"`
}

// defaultSample is the share that is recorded of the traces that begin in the sidecar.
const defaultSample = 0.01

// Sketch is the section sketch.
type Sketch struct {
	Family     string   `yaml:"family"`
	Features   string   `yaml:"features"`
	Words      int      `yaml:"words"`
	Characters int      `yaml:"characters"`
	Positions  int      `yaml:"positions"`
	Content    string   `yaml:"content"`
	Keep       []string `yaml:"keep"`
	Seed       Secret   `yaml:"seed"`

	AdvancedSketch `yaml:"advanced"`
}

// AdvancedSketch is the section advanced of sketch.
type AdvancedSketch struct {
	Bits    int `yaml:"bits"`
	Modulus int `yaml:"modulus"`
	Repeats int `yaml:"repeats"`
}

// The values of keep.
const (
	keepCase        = "case"
	keepAccents     = "accents"
	keepPunctuation = "punctuation"
)

// Scheme returns the section as a scheme.
func (s Sketch) Scheme() sketch.Scheme {
	return sketch.Scheme{
		Family: sketch.Family(s.Family), Features: sketch.Features(s.Features), Words: s.Words, Characters: s.Characters,
		Positions: s.Positions, Bits: s.Bits, Modulus: s.Modulus, Repeats: s.Repeats, Content: sketch.Content(s.Content),
		Keep: sketch.Keep{
			Case:        slices.Contains(s.Keep, keepCase),
			Accents:     slices.Contains(s.Keep, keepAccents),
			Punctuation: slices.Contains(s.Keep, keepPunctuation),
		},
		Seed: s.Seed.Reveal(),
	}
}

// Engine is one entry of engines.
type Engine struct {
	Name        string      `yaml:"name"`
	Listen      string      `yaml:"listen"`
	Kind        string      `yaml:"kind"`
	URLs        []string    `yaml:"urls"`
	ListenTLS   ListenTLS   `yaml:"listen_tls"`
	Credentials Credentials `yaml:"credentials"`
	TLS         TLS         `yaml:"tls"`
	OnFailure   string      `yaml:"on_failure"`
	// RewriteSniffing and Advertise are for the kinds elasticsearch and opensearch.
	RewriteSniffing bool    `yaml:"rewrite_sniffing"`
	Advertise       string  `yaml:"advertise"`
	Limits          Limits  `yaml:"limits"`
	Decided         Decided `yaml:"decided"`
	Indices         []Index `yaml:"indices"`
	// Sketch is the section sketch of the whole configuration.
	Sketch Sketch `yaml:"-"`
}

// Decided is the section decided: how often decided pairs are read, for searches to obey them; 0 is never.
type Decided struct {
	Refresh Span `yaml:"refresh"`
}

// Credentials are what jobs and setup send to an engine. Live traffic has its client's own.
type Credentials struct {
	APIKey   Secret `yaml:"api_key"`
	Username Secret `yaml:"username"`
	Password Secret `yaml:"password"`
	Bearer   Secret `yaml:"bearer"`
}

// ListenTLS is the section listen_tls. Without a certificate the listener speaks plain HTTP.
type ListenTLS struct {
	CertFile     string `yaml:"cert_file"`
	KeyFile      string `yaml:"key_file"`
	ClientCAFile string `yaml:"client_ca_file"`
}

// TLS is the section tls: how to verify an engine's certificate, and which certificate to present to it.
type TLS struct {
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// Limits is the section limits. The last four are for all requests to the engine together.
type Limits struct {
	MaxReply      Size `yaml:"max_reply"`
	EngineMaxBody Size `yaml:"engine_max_body"`
	MaxWindow     int  `yaml:"max_window"`
	Deadline      Span `yaml:"deadline"`
	// CursorMemory and CursorTTL are for the kinds elasticsearch and opensearch.
	CursorMemory Size `yaml:"cursor_memory"`
	CursorTTL    Span `yaml:"cursor_ttl"`
	MaxSearches  int  `yaml:"max_searches"`
	MaxHeld      Size `yaml:"max_held"`

	AdvancedLimits `yaml:"advanced"`
}

// AdvancedLimits is the section advanced of limits.
type AdvancedLimits struct {
	MaxSearchBody Size    `yaml:"max_search_body"`
	FallbackShare float64 `yaml:"fallback_share"`
	HeaderTimeout Span    `yaml:"header_timeout"`
	IdleTimeout   Span    `yaml:"idle_timeout"`
}

// Defaults of keys that the file leaves out.
const (
	DefaultAdmin  = "127.0.0.1:7610"
	defaultPreset = "default"
	DefaultWindow = 1000
	// Ten pages of ten neighbours, or fewer if many fold.
	defaultVectorWindow = 100
)

// Default returns the configuration of an empty file.
func Default() Config {
	s := sketch.DefaultScheme()
	return Config{
		Log:   Log{Level: "info", Format: "text"},
		Admin: DefaultAdmin, Playground: true,
		Traces: Traces{Sample: defaultSample},
		Sketch: Sketch{
			Family: string(s.Family), Features: string(s.Features), Words: s.Words, Characters: s.Characters, Positions: s.Positions,
			Content: string(s.Content), Keep: []string{}, AdvancedSketch: AdvancedSketch{s.Bits, s.Modulus, s.Repeats},
		},
	}
}

// DefaultEngine returns the defaults of an entry of engines. The default of the name is the kind.
func DefaultEngine() Engine {
	return Engine{
		OnFailure: "open",
		Sketch:    Default().Sketch,
		Limits: Limits{
			MaxReply: proxy.DefaultMaxReply, EngineMaxBody: proxy.DefaultEngineMaxBody, MaxWindow: proxy.DefaultMaxWindow,
			Deadline: Span(proxy.DefaultDeadline), MaxSearches: proxy.DefaultMaxSearches, MaxHeld: proxy.DefaultMaxHeld,
			CursorMemory: proxy.DefaultCursorMemory, CursorTTL: Span(proxy.DefaultCursorTTL),
			AdvancedLimits: AdvancedLimits{
				MaxSearchBody: proxy.DefaultMaxSearchBody, FallbackShare: proxy.DefaultFallbackShare,
				HeaderTimeout: Span(ReadHeaderTimeout), IdleTimeout: Span(IdleTimeout),
			},
		},
	}
}

// DefaultIndex returns the defaults of an entry of indices.
func DefaultIndex() Index { return PresetOf(defaultPreset).Start(Default().Sketch) }

// Size is a number of bytes, written as 64MB. As in the engines' own settings a KB is 1024 bytes.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes Size
}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"B", 1}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}}

// UnmarshalText reads a size; it implements [encoding.TextUnmarshaler].
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := strings.ToUpper(strings.TrimSpace(string(text))), Size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || Size(n) > math.MaxInt64/unit {
		return errors.New("is not a size: use one such as 512m or 4g")
	}
	*s = Size(n) * unit
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns the size in the largest unit that leaves a whole number.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s >= u.bytes && s%u.bytes == 0 {
			return fmt.Sprintf("%d%s", s/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%dB", int64(s))
}

const (
	// ReadHeaderTimeout and IdleTimeout are the defaults of header_timeout and idle_timeout. A connection has no other time limit: a
	// write may stream its body for hours, and a search may take as long as the engine allows.
	ReadHeaderTimeout = 30 * time.Second
	IdleTimeout       = 2 * time.Minute
)
