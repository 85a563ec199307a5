// The Firestore port put together: gRPC streams, and plain HTTP in both versions.

public import FirestoreEngine
public import Logging
import NIOCore

extension PortProtocols {
  /// What the Firestore port speaks: gRPC and plain HTTP over HTTP/2, plain HTTP over HTTP/1.1.
  public static func firestore(
    _ engine: FirestoreEngine, authentication: FirestoreAuthentication, limits: PortLimits = PortLimits(),
    log: Logger
  ) -> PortProtocols {
    let service = FirestoreService(engine: engine, authentication: authentication)
    let http = FirestoreHTTPService(
      rest: FirestoreREST(methods: service.methods, log: log),
      emulator: authentication.isEmulator ? FirestoreEmulator(engine, log: log) : nil,
      webChannel: WebChannelService(service, limits))
    return PortProtocols(
      http1: http.http1(limits),
      http2: grpcStreams(service.methods, limits: limits, log: log, fallback: http.http2(limits)))
  }
}
