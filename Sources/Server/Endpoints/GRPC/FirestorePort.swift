// The Firestore port put together: gRPC streams, and plain HTTP in both versions.

package import FirestoreEngine
import FirestoreModel
package import Logging
import NIOCore

extension PortProtocols {
  /// The protocols of the Firestore port: gRPC and plain HTTP over HTTP/2, plain HTTP over HTTP/1.1.
  /// - Parameter handlers: handlers of further plain HTTP paths.
  package static func firestore(
    _ engine: FirestoreEngine, authentication: FirestoreAuthentication, limits: PortLimits = PortLimits(),
    handlers: [any FirestoreRouteHandler] = [], log: Logger
  ) -> PortProtocols {
    let limits = limits.admitting(engine.limits)
    let service = FirestoreService(engine: engine, authentication: authentication)
    let http = FirestoreHTTPService(
      rest: FirestoreREST(
        methods: service.methods, log: log, documentBytes: engine.limits.data.documentBytes,
        endTransaction: service.endTransaction(ofRefused:_:)),
      handlers: handlers,
      webChannel: WebChannelService(service, limits))
    return PortProtocols(
      http1: http.http1(limits),
      http2: grpcStreams(service.methods, limits: limits, log: log, fallback: http.http2(limits)))
  }
}

extension PortLimits {
  /// The limits of a port that lets through what the engine does: the defaults for the product's own limits.
  func admitting(_ limits: EngineLimits) -> PortLimits {
    var port = self
    let document = limits.data.documentBytes - FirestoreLimits.standard.documentBytes
    let request = limits.maximumRequestBytes - EngineLimits.standard.maximumRequestBytes
    // Calls wait for room for the largest document, so that there has to be room for some of them.
    port.http2.expectedAnswerBytes += document
    port.http2.maximumQueuedAnswerBytes += 16 * document
    port.maximumRequestBody += request
    // What WebChannel carries is percent-encoded: up to three bytes for one.
    port.webChannel.maximumRequestBody += 3 * request
    port.webChannel.maximumWaitingBytes += 2 * request
    return port
  }
}
