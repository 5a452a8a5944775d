# The sidecar as a static binary in an image with nothing else in it, run without root.
#
#   docker build -t neardup-sidecar .
#   docker run --rm -v "$PWD/config.yaml:/etc/neardup/config.yaml:ro" -p 127.0.0.1:9201:9201 neardup-sidecar
#
# In a container, let the engine's listen be 0.0.0.0:9201: an address of loopback can't be reached from outside.
#
# The image is made from scratch rather than from a distroless one. What gcr.io/distroless/static has beyond scratch is certificates, time
# zones, /tmp and names of users: certificates and /tmp stand here too, and the program needs no more. So there is no base image
# whose digest has to be followed. Whose policy asks for a common base changes the last FROM to it, with its digest.

# Built on the builder's own platform, for the target's: docker buildx build --platform linux/amd64,linux/arm64
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=
ARG REVISION=
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
      -ldflags "-s -w -buildid= -X main.version=${VERSION} -X main.revision=${REVISION}" -o /sidecar ./cmd/sidecar && \
    mkdir -p /image/tmp && chmod 1777 /image/tmp

# Nothing but the program, the certificates that it trusts, and a folder for the temporary files of jobs.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /image/ /
COPY --from=build /sidecar /usr/local/bin/sidecar
COPY LICENSE NOTICE /usr/share/doc/neardup/
WORKDIR /etc/neardup
USER 65532:65532
EXPOSE 9201 8109
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/sidecar", "ready"]
ENTRYPOINT ["/usr/local/bin/sidecar"]
CMD ["serve"]
