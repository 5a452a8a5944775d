package server

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/neardup/sidecar/internal/config"
)

// sockets are those that the service manager passed (LISTEN_FDS), by name.
type sockets map[string][]net.Listener

// passedSockets takes over the sockets that the service manager passed.
func passedSockets() (sockets, error) {
	var passed sockets
	for _, file := range activation.Files(true) {
		socket, err := net.FileListener(file)
		_ = file.Close() // the listener has its own descriptor
		if err != nil {
			return nil, fmt.Errorf("the passed socket %s accepts no connections: %w: pass one with ListenStream=", file.Name(), err)
		}
		if passed == nil {
			passed = sockets{}
		}
		passed[file.Name()] = append(passed[file.Name()], socket)
	}
	return passed, nil
}

// of returns the sockets with the name or, if there are none, the one that is bound to the address.
func (s sockets) of(name, address string) []net.Listener {
	if list := s[name]; list != nil {
		return list
	}
	for _, list := range s {
		for _, socket := range list {
			if socket.Addr().String() == address {
				return []net.Listener{socket}
			}
		}
	}
	return nil
}

// drop closes the sockets of an endpoint.
func (s sockets) drop(d *endpoint) {
	for name, list := range s {
		s[name] = slices.DeleteFunc(list, func(socket net.Listener) bool {
			its := d.has(socket)
			if its {
				_ = socket.Close() // an error does not matter any more
			}
			return its
		})
	}
}

// systemd notifies the service manager (NOTIFY_SOCKET) of the sidecar's state. Without one it does nothing.
type systemd struct{ log *slog.Logger }

func (m systemd) notify(states ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(states, "\n")); err != nil {
		m.log.Warn("can't notify the service manager", "state", states[0], "error", err.Error())
	}
}

func (m systemd) ready(c *config.Config) {
	m.notify(daemon.SdNotifyReady, fmt.Sprintf("STATUS=serving %d engines by %d rules of %s", len(c.Engines), c.RuleCount(), c.File))
}

func (m systemd) reloading() {
	m.notify(daemon.SdNotifyReloading, strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
}

func (m systemd) stopping() { m.notify(daemon.SdNotifyStopping, "STATUS=draining") }

// watched returns a channel that ticks twice per watchdog interval, or nil if the service manager has no watchdog for us.
func (m systemd) watched() (ticks <-chan time.Time, stop func()) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(every / 2)
	return ticker.C, ticker.Stop
}

func (m systemd) alive() { m.notify(daemon.SdNotifyWatchdog) }
