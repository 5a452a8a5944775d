package flink

import (
	"encoding/json"
	"fmt"
	"strings"
)

// refusal returns the error for a reply other than 200. A gateway sends two texts: a sentence that says nothing, and
// a trace of Java's stack. Only the causes in that are kept.
func refusal(status string, body []byte) error {
	var reply struct{ Errors []string }
	if json.Unmarshal(body, &reply) != nil || len(reply.Errors) == 0 {
		return fmt.Errorf("flink answered %s: %.200q", status, body)
	}
	return fmt.Errorf("flink: %s", cause(strings.Join(reply.Errors, "\n")))
}

const (
	noSlot      = "no task slot is free: start taskmanagers, or ask for less with --parallelism"
	notShared   = "the directory of --shared must be the same on every taskmanager, and readable there"
	notWritable = "the user that runs Flink must be able to read and write the directory of --shared"
)

// hints are what an operator can do about causes that come often.
var hints = []struct{ in, hint string }{
	{"NoResourceAvailableException", noSlot},
	{"Could not acquire the minimum required resources", noSlot},
	{"Insufficient number of network buffers", "raise taskmanager.memory.network.max, or ask for less with --parallelism"},
	{"Could not allocate the required slot", noSlot},
	{"does not exist or the user running Flink", notShared},
	{"FileNotFoundException", notShared},
	{"Permission denied", notWritable},
	{"Mkdirs failed", notWritable},
	{"Connection refused", "the gateway can't reach Flink's jobmanager: see rest.address in its configuration"},
	{"OutOfMemoryError", "a taskmanager has too little memory: see taskmanager.memory in its configuration"},
	{"Not found: /v1/", "this may be Flink's web interface: give the address of its SQL gateway, port 8083 by default"},
	{"Session '", "the gateway was started anew, or closed the session: run the command again"},
}

// causes shown of a trace, the deepest last.
const causes = 2

// cause shortens a trace to its deepest causes, and adds what to do about it where that is known.
func cause(trace string) string {
	var list []string
	for line := range strings.Lines(trace) {
		line = strings.TrimSpace(line)
		rest, caused := strings.CutPrefix(line, "Caused by: ")
		if !caused && (line == "" || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "... ") || len(list) > 0) {
			continue
		}
		text := rest
		if class, said, ok := strings.Cut(rest, ": "); ok && strings.Contains(class, ".") && !strings.Contains(class, " ") {
			text = class[strings.LastIndexByte(class, '.')+1:] + ": " + said // of a class the packages say nothing
		}
		text = strings.TrimSpace(text)
		if text != "" && text != "Internal server error." && (len(list) == 0 || list[len(list)-1] != text) {
			list = append(list, text)
		}
	}
	if len(list) == 0 {
		return "no reason given"
	}
	short := strings.Join(list[max(0, len(list)-causes):], ": ")
	if len(short) > 600 {
		short = short[:600] + "…"
	}
	for _, h := range hints {
		if strings.Contains(trace, h.in) {
			return short + " (" + h.hint + ")"
		}
	}
	return short
}
