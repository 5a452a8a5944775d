# The sidecar as a static binary in an image with nothing else in it, run without root.
#
#   docker build -t neardup-sidecar .
#   docker run --rm -v "$PWD/config.yaml:/etc/neardup/config.yaml:ro" -p 127.0.0.1:9201:9201 neardup-sidecar
#
# In a container, let the engine's listen be 0.0.0.0:9201: an address of loopback can't be reached from outside.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /sidecar ./cmd/sidecar

# Nothing but the program and the certificates that it trusts.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /sidecar /usr/local/bin/sidecar
WORKDIR /etc/neardup
USER 65532:65532
EXPOSE 9201 8109
ENTRYPOINT ["/usr/local/bin/sidecar"]
CMD ["serve"]
